package dropdown_test

import (
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/people/dropdown"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpdropdown "castellan/http/people/dropdown"
	"castellan/persistence"
	"castellan/persistence/people"
)

// REQ-INF-01 to REQ-INF-03.
func TestOptions(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := people.NewDropdowns(db)
		for _, o := range []dropdown.Option{
			{Group: "FRUIT", Code: "APPLE", English: "Apple", Turkish: "Elma", Arabic: "تفاح"},
			{Group: "FRUIT", Code: "OTHER", English: "Other", Turkish: "Diğer", Arabic: "أخرى", ExplainMandatory: true},
			{Group: "COLOUR", Code: "OTHER", English: "Another", Turkish: "Başka", Arabic: "آخر", ExplainMandatory: true},
		} {
			_, err := store.Add(t.Context(), o)
			storetest.Must(t, err)
		}
		s := apitest.Serve(t, edge.Options{}, httpdropdown.Group{Store: store}).As("nobody").Below("/dropdown/")
		const (
			apple  = `{"id":1,"code":"FRUIT","name":"Apple","isExplainMandatory":false}`
			other  = `{"id":2,"code":"FRUIT","name":"Other","isExplainMandatory":true}`
			colour = `{"id":3,"code":"COLOUR","name":"Another","isExplainMandatory":true}`
		)
		for query, want := range map[string]string{ // D-INF-01
			"": apple + "," + other + "," + colour, "?dropdownCode=FRUIT": apple + "," + other,
			"?code=FRUIT": apple + "," + other, "?code=OTHER": other + "," + colour, "?code=OTHER&dropdownCode=COLOUR": colour,
			"?dropdownCode=OTHER": "", "?code=apple": "", "?code=%27%20OR%201=1--": "",
			// D-INF-02, D-GEN-16
			"?code=APPLE&_requesterLanguage=ar": `{"id":1,"code":"FRUIT","name":"تفاح","isExplainMandatory":false}`,
			"?code=APPLE&_requesterLanguage=de": apple,
		} {
			s.Wants("GET get-parameter"+query, "", 200, "["+want+"]")
		}
		s.Wants("GET get-parameter", `{"code":"APPLE","_requesterLanguage":"tr"}`, 200,
			`[{"id":1,"code":"FRUIT","name":"Elma","isExplainMandatory":false}]`)
		s.Wants("GET get-parameter", `{"code":5,"dropdownCode":["a"],"_requesterLanguage":7}`, 400,
			"INVALID_FIELD code dropdownCode _requesterLanguage")
		s.Wants("GET get-parameter?code=a%00&dropdownCode=%ff", "", 400, "INVALID_FIELD code dropdownCode")
	})
}

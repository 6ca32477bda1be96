package people_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/dropdown"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpdropdown "castellan/http/people/dropdown"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func group(db *persistence.DB) httpdropdown.Group {
	return httpdropdown.Group{Service: &dropdown.Service{Store: people.NewDropdowns(db),
		Changes: admin.Changes{Commit: db, Now: time.Now}}}
}

// REQ-INF-01 to REQ-INF-03.
func TestOptions(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := people.NewDropdowns(db)
		for _, o := range []dropdown.Option{
			{Group: "FRUIT", Code: "APPLE", English: "Apple", Turkish: "Elma", Arabic: "تفاح"},
			{Group: "FRUIT", Code: "OTHER", English: "Other", Turkish: "Diğer", Arabic: "أخرى", ExplainMandatory: true},
			{Group: "COLOUR", Code: "OTHER", English: "Another", Turkish: "Başka", Arabic: "آخر", ExplainMandatory: true},
		} {
			storetest.Must(t, storetest.Err(store.Add(t.Context(), o)))
		}
		s := apitest.Serve(t, edge.Options{}, group(db)).As("anonymous").Below("/dropdown/")
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
	})
}

// D-INT-15: administrators add and change options; an inactive option is no longer offered.
func TestAdministration(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := apitest.Serve(t, edge.Options{}, group(db))
		const (
			path  = " /admin/dropdown-options"
			apple = `{"dropdownCode":"FRUIT","code":"APPLE","nameEn":"Apple","nameTr":"Elma","nameAr":"تفاح"}`
			shown = `{"id":1,` + `"dropdownCode":"FRUIT","code":"APPLE","nameEn":"Apple","nameTr":"Elma","nameAr":"تفاح",` +
				`"isExplainMandatory":false,"orderNo":1,"isActive":true}`
			public = `{"id":1,"code":"FRUIT","name":"Apple","isExplainMandatory":false}`
		)
		for body, want := range map[string]string{
			strings.Replace(apple, "APPLE", "apple", 1): "code",
			strings.Replace(apple, "FRUIT", "F", 1):     "dropdownCode",
		} {
			s.Wants("POST"+path, body, 400, "INVALID_FIELD "+want)
		}
		s.Wants("POST"+path, apple, 200, `{"data":`+shown+`}`)
		other := strings.NewReplacer("APPLE", "OTHER", "}", `,"isExplainMandatory":true}`).Replace(apple)
		third := strings.NewReplacer("APPLE", "PEAR", "}", `,"orderNo":0}`).Replace(apple)
		shownOther := strings.NewReplacer(`"id":1`, `"id":2`, "APPLE", "OTHER", "false", "true", `No":1`, `No":2`).
			Replace(shown)
		shownThird := strings.NewReplacer(`"id":1`, `"id":3`, "APPLE", "PEAR", `No":1`, `No":0`).Replace(shown)
		s.Wants("POST"+path, other, 200, `{"data":`+shownOther+`}`)
		s.Wants("POST"+path, third, 200, `{"data":`+shownThird+`}`)
		s.Wants("GET"+path, "", 200, "["+shownThird+","+shown+","+shownOther+"]")
		s.Wants("POST"+path, apple, 409, "RECORD_ALREADY_EXIST")
		s.Wants("GET"+path+"?dropdownCode=COLOUR", "", 200, "[]")

		s.Wants("PATCH"+path, `{"id":9,"isActive":false}`, 404, "RECORD_NOT_FOUND")
		s.Wants("PATCH"+path, `{"id":1,"nameEn":""}`, 400, "INVALID_FIELD nameEn")
		s.Wants("PATCH"+path, `{"id":1,"nameTr":" ","nameAr":"\t"}`, 400, "INVALID_FIELD nameTr nameAr")
		s.Wants("PATCH"+path, `{"id":1,"code":"OTHER"}`, 200, `{"data":`+shown+`}`) // nothing changes
		changed := strings.NewReplacer("Apple", "An apple", "Elma", "Bir elma", "تفاح", "تفاحة", "false", "true", `No":1`,
			`No":9`).Replace(shown)
		s.Wants("PATCH"+path, `{"id":"1","nameEn":"An apple","nameTr":"Bir elma","nameAr":"تفاحة",`+
			`"isExplainMandatory":true,"orderNo":9}`, 200, `{"data":`+changed+`}`)
		s.Wants("PATCH"+path, `{"id":2,"isActive":false}`, 200, `{"data":`+
			strings.Replace(shownOther, `"isActive":true`, `"isActive":false`, 1)+`}`)
		s.Wants("PATCH"+path, `{"id":3,"isActive":false}`, 200, `{"data":`+
			strings.Replace(shownThird, `"isActive":true`, `"isActive":false`, 1)+`}`)
		const offered = "GET /dropdown/get-parameter?dropdownCode=FRUIT"
		s.Wants(offered, "", 200, "["+strings.NewReplacer("Apple", "An apple", "false", "true").Replace(public)+"]")
		s.Wants("PATCH"+path, `{"id":3,"isActive":true}`, 200, `{"data":`+shownThird+`}`)
		if _, all := s.Call(offered, ""); !strings.HasPrefix(all, `[{"id":3,`) {
			t.Errorf("offered %s", all)
		}

		acts := persistencetest.Acts(t, db)
		slices.Sort(acts) // acts of one millisecond have no order
		const names = `, english "Apple", turkish "Elma", arabic "تفاح"`
		storetest.Same(t, acts, []string{
			`DROPDOWN_OPTION_ADD|admin||1|group "FRUIT", code "APPLE"` + names + ", orderNo 1",
			`DROPDOWN_OPTION_ADD|admin||2|group "FRUIT", code "OTHER"` + names + ", explainMandatory true, orderNo 2",
			`DROPDOWN_OPTION_ADD|admin||3|group "FRUIT", code "PEAR"` + names,
			`DROPDOWN_OPTION_UPDATE|admin||1|FRUIT APPLE: english "Apple" -> "An apple", turkish "Elma" -> "Bir elma", ` +
				`arabic "تفاح" -> "تفاحة", explainMandatory false -> true, orderNo 1 -> 9`,
			"DROPDOWN_OPTION_UPDATE|admin||2|FRUIT OTHER: inactive false -> true",
			"DROPDOWN_OPTION_UPDATE|admin||3|FRUIT PEAR: inactive false -> true",
			"DROPDOWN_OPTION_UPDATE|admin||3|FRUIT PEAR: inactive true -> false"})
	})
}

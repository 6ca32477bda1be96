package contract_test

import (
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func TestCheck(t *testing.T) {
	text := strings.Repeat("ü", 200)
	for want, all := range map[string][]contract.Contract{
		"": {{Code: "AB", Name: "n"}, {Code: "A" + strings.Repeat("_", 63), Name: text, Version: text}},
		"code": {{Code: "A", Name: "n"}, {Code: "1A", Name: "n"}, {Code: "Ab", Name: "n"},
			{Code: "A" + strings.Repeat("B", 64), Name: "n"}},
		"name":          {{Code: "AB"}, {Code: "AB", Name: text + "x"}},
		"version":       {{Code: "AB", Name: "n", Version: text + "x"}},
		"nameTr nameAr": {{Code: "AB", Name: "n", Turkish: text + "x", Arabic: text + "x"}},
		"code name":     {{}},
		"name version":  {{Code: "AB", Version: text + "x"}},
		"code version":  {{Name: "n", Version: text + "x"}},
	} {
		for _, c := range all {
			storetest.WantsFields(t, c.Check(), want)
		}
	}
}

// A new installation has the terms of use and the privacy notice.
func TestSeed(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Exec(t, db, "DELETE FROM contract")
	store := office.NewContracts(db)
	storetest.Must(t, contract.Seed(t.Context(), store))
	all, err := store.Contracts(t.Context(), contract.Query{})
	if err != nil || len(all) != 2 || all[0].Code != "TERMS_OF_USE" || all[1].Code != "PRIVACY" || !all[0].Active {
		t.Errorf("%+v, %v", all, err)
	}
	storetest.Wants(t, contract.Seed(t.Context(), store), fault.RecordAlreadyExist)
}

package contract_test

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
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

func TestTitle(t *testing.T) {
	c := contract.Contract{Name: "n", Turkish: "t", Arabic: "a"}
	for language, want := range map[string]string{"tr": "t", "ar": "a", "en": "n", "": "n"} {
		storetest.Equal(t, c.Title(language), want, language)
	}
	storetest.Equal(t, (contract.Contract{Name: "n"}).Title("ar"), "n", "without an Arabic name")
}

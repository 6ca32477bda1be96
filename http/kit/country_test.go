package kit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	"castellan/http/kit/country"
	"castellan/web"
)

// REQ-USR-17, D-USR-05: every country, in three languages, with a flag that is served.
func TestCountries(t *testing.T) {
	s := apitest.Serve(t, edge.Options{}, country.Group{CDN: "https://cdn.example.com"})
	for language, want := range map[string]string{"en": "Germany", "tr": "Almanya", "ar": "ألمانيا"} {
		status, answer := s.Call("GET /admin/get-country-list", "", "accept-language", language)
		var all []map[string]string
		storetest.Must(t, json.Unmarshal([]byte(answer), &all))
		if status != 200 || len(all) != 249 {
			t.Fatalf("%d with %d countries", status, len(all))
		}
		for _, c := range all {
			file := strings.TrimPrefix(c["flagImage"], "https://cdn.example.com/flags/")
			if _, _, ok := web.Flag(strings.TrimSuffix(file, ".svg"), ".svg"); !ok || len(c) != 4 || c["phoneCode"] == "" {
				t.Errorf("%v", c)
			}
			if c["countryCode"] == "DE" && (c["countryName"] != want || c["phoneCode"] != "49") {
				t.Errorf("in %s: %v", language, c)
			}
		}
	}
}

package legible_test

import (
	"testing"

	"castellan/domain/factor/mfa"
	"castellan/domain/guard/firewall"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/domain/office/staffrequest"
	"castellan/domain/people/corporate"
	"castellan/domain/people/dropdown"
	"castellan/domain/people/registration"
	"castellan/domain/proof/device"
)

// The checks of the slices judge their texts by the one rule.
func TestChecksOfSlices(t *testing.T) {
	rule := firewall.Rule{AppID: "API", Label: "a", Type: firewall.Blacklist, EntityType: firewall.IP, AllEntities: true,
		AllResources: true, Status: firewall.Active}
	for field, check := range map[string]func(text string) error{
		"name":    func(s string) error { return contract.Contract{Code: "A1", Name: s}.Check() },
		"version": func(s string) error { return contract.Contract{Code: "A1", Name: "n", Version: s}.Check() },
		"nameTr": func(s string) error {
			return dropdown.Option{Group: "GG", Code: "A1", English: "e", Turkish: s, Arabic: "a"}.Check()
		},
		"title": func(s string) error { return mfa.Action{Code: "A1", Title: mfa.Text{"en": s}}.Check() },
		"brand": func(s string) error { return device.Registration{Brand: s}.Check() },
		"companyName": func(s string) error {
			return corporate.Application{CompanyName: s, TaxNumber: "1", Status: "s"}.Check()
		},
		"user_name": func(s string) error {
			return staffrequest.VPN{Request: staffrequest.Request{Type: "t", Status: staffrequest.Pending}, UserName: s}.Check()
		},
		"label": func(s string) error {
			r := rule
			r.Label = s
			return r.Check()
		},
		"externalId": func(s string) error {
			if p := registration.CheckExternalID(s); p != nil {
				return fault.All([]fault.Problem{*p})
			}
			return nil
		},
	} {
		if err := check("Seen ٢"); err != nil {
			t.Errorf("%s: %v", field, err)
		}
		for _, hidden := range []string{"\u00ad", "\u061c", "\u180e", "\U000e0041", "\u3164", "\u2800", "\u202e",
			"\u200d", "\n"} {
			if err := check("a" + hidden + "b"); err == nil {
				t.Errorf("%s has %q", field, hidden)
			} else {
				storetest.WantsFields(t, err, field)
			}
		}
	}
}

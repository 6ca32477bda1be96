package corporate_test

import (
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/corporate"
)

// An edit is judged by its own fields, without a record.
func TestEditCheck(t *testing.T) {
	text := func(s string) *string { return &s }
	mail := func(s string) **string { p := &s; return &p }
	var none *string
	for _, c := range []struct {
		edit corporate.Edit
		want string // the invalid fields
	}{
		{corporate.Edit{}, ""},
		{corporate.Edit{Role: text("OWNER"), PhoneNumber: text("5320000000"), TaxNumber: text("")}, ""},
		{corporate.Edit{Email: &none}, ""},
		{corporate.Edit{Role: text(" "), Email: mail("no")}, "role email"},
		{corporate.Edit{CountryCode: text("x"), PhoneNumber: text("1")}, "countryCode phoneNumber"},
		{corporate.Edit{TaxNumber: text("12")}, "taxNumber"},
	} {
		err := c.edit.Check()
		if c.want == "" {
			storetest.Must(t, err)
			continue
		}
		storetest.Wants(t, err, fault.InvalidField)
		got := ""
		for _, p := range err.(*fault.Error).Fields {
			if got != "" {
				got += " "
			}
			got += p.Field
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.edit, got, c.want)
		}
	}
}

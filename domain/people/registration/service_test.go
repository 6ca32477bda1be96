package registration_test

import (
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/registration"
)

// newcomer returns a valid newcomer after an edit.
func newcomer(edit func(*registration.Newcomer)) registration.Newcomer {
	n := registration.Newcomer{ExternalID: "old-7", CountryCode: "90", Phone: "5320000007", Email: "ayse@example.com",
		Name: "Ayşe", Surname: "Demir"}
	edit(&n)
	return n
}

// An external id has 1 to 128 bytes that can be seen. The reserved form of placeholders is no phone number.
func TestInvalidNewcomers(t *testing.T) {
	for name, c := range map[string]struct {
		edit   func(*registration.Newcomer)
		fields string
	}{
		"valid":          {func(*registration.Newcomer) {}, ""},
		"128 bytes":      {func(n *registration.Newcomer) { n.ExternalID = strings.Repeat("x", 128) }, ""},
		"129 bytes":      {func(n *registration.Newcomer) { n.ExternalID = strings.Repeat("x", 129) }, "externalId"},
		"blank":          {func(n *registration.Newcomer) { n.ExternalID = " " }, "externalId"},
		"control":        {func(n *registration.Newcomer) { n.ExternalID = "a\x00" }, "externalId"},
		"placeholder":    {func(n *registration.Newcomer) { n.Phone = "0000000007" }, "phoneNumber"},
		"hidden name":    {func(n *registration.Newcomer) { n.Name = "A\u202e" }, "name"},
		"hidden surname": {func(n *registration.Newcomer) { n.Surname = "A\u200b" }, "surname"},
		"no surname":     {func(n *registration.Newcomer) { n.Surname = "" }, ""},
		"bad mail":       {func(n *registration.Newcomer) { n.Email = "x" }, "email"},
		"no mail":        {func(n *registration.Newcomer) { n.Email = "" }, ""},
		"several": {func(n *registration.Newcomer) { n.ExternalID, n.Phone, n.Name = "", "x", "\n" },
			"externalId phoneNumber name"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := newcomer(c.edit).Canonical()
			storetest.WantsFields(t, err, c.fields)
			if err == nil && (n.Type != user.Individual || n.CountryCode != "90" || n.Phone != "+905320000007") {
				t.Errorf("%+v", n)
			}
		})
	}
	company := newcomer(func(n *registration.Newcomer) { n.Type = user.Corporate })
	if n, err := company.Canonical(); err != nil || n.Type != user.Corporate {
		t.Errorf("%+v, %v", n, err)
	}
}

// The checks of an external id and of names name the first fault of each; names may be blank.
func TestChecks(t *testing.T) {
	for text, want := range map[string]string{"a": "", "": "must not be blank", strings.Repeat("x", 129): "is too long",
		"a\n": "must not contain control characters"} {
		got := registration.CheckExternalID(text)
		if (got == nil) != (want == "") || got != nil && (got.Message != want || got.Field != "externalId") {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, c := range []struct{ name, surname, want, wantSurname, fields string }{
		{" Ayşe \t Nur ", " Demir", "Ayşe Nur", "Demir", ""}, {"", " ", "", "", ""}, {"a\x00", "", "a\x00", "", "name"},
		{"", "\u200b", "", "\u200b", "surname"}, {"\u202e", "\x01", "\u202e", "\x01", "name surname"}} {
		var fields []string
		name, surname := c.name, c.surname
		for _, p := range registration.CheckNames(&name, &surname) {
			if fields = append(fields, p.Field); p.Message != "must not contain control characters" {
				t.Errorf("%+v", p)
			}
		}
		if strings.Join(fields, " ") != c.fields || name != c.want || surname != c.wantSurname {
			t.Errorf("%+v: %q, %q, %v", c, name, surname, fields)
		}
	}
}

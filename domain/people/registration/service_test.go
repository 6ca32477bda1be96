package registration_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/registration"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func newService(t *testing.T) (*registration.Service, *persistence.DB) {
	t.Helper()
	db := persistencetest.SQLite(t)
	return &registration.Service{Users: account.NewUsers(db), External: kit.NewIntegration(db),
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}}, db
}

// newcomer returns a valid newcomer after an edit.
func newcomer(edit func(*registration.Newcomer)) registration.Newcomer {
	n := registration.Newcomer{ExternalID: "old-7", CountryCode: "90", Phone: "5320000007", Email: "ayse@example.com",
		Name: "Ayşe", Surname: "Demir"}
	edit(&n)
	return n
}

var shop = audit.By{UserID: "service:shop"}

// An external id has one account. The same request returns it again; another one is refused.
func TestAdd(t *testing.T) {
	s, db := newService(t)
	first, err := s.Add(t.Context(), shop, newcomer(func(*registration.Newcomer) {}))
	storetest.Must(t, err)
	if first.ExternalID != "old-7" || first.Phone != "+905320000007" || first.Status != user.Active ||
		!first.CreatedAt.Equal(time.UnixMilli(1_700_000_000_000)) {
		t.Errorf("%+v", first)
	}
	again, err := s.Add(t.Context(), shop, newcomer(func(n *registration.Newcomer) { n.Name = " Ayşe  " }))
	if err != nil || again.ID != first.ID || again.ExternalID != "old-7" {
		t.Errorf("again: %+v, %v", again, err)
	}
	for name, c := range map[string]struct {
		edit func(*registration.Newcomer)
		want fault.Code
	}{
		"another body": {func(n *registration.Newcomer) { n.Name = "Ada" }, fault.InvalidState},
		"the phone is taken": {func(n *registration.Newcomer) { n.ExternalID, n.Email = "x", "" },
			fault.RecordAlreadyExist},
		"the mail is taken": {func(n *registration.Newcomer) { n.ExternalID, n.Phone = "x", "5320000008" },
			fault.RecordAlreadyExist},
		"no name": {func(n *registration.Newcomer) { n.ExternalID, n.Name = "x", "" }, fault.InvalidField},
	} {
		got, err := s.Add(t.Context(), shop, newcomer(c.edit))
		if fault.CodeOf(err) != c.want || c.want == fault.InvalidField && got.ID != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	storetest.Same(t, persistencetest.Acts(t, db), []string{"USER_ADD|service:shop|" + first.ID + "|" + first.ID + "|"})
	persistencetest.Fails(t, db, "users integration_claim audit", func(ctx context.Context) error {
		_, err := s.Add(ctx, shop, newcomer(func(n *registration.Newcomer) {
			n.ExternalID, n.Phone, n.Email = "y", "5320000009", ""
		}))
		return err
	})
}

// An account is read with its external id, or without one if no service added it.
func TestGet(t *testing.T) {
	s, db := newService(t)
	made, err := s.Add(t.Context(), shop, newcomer(func(*registration.Newcomer) {}))
	storetest.Must(t, err)
	own := usertest.Sample(1)
	storetest.Must(t, db.Commit(t.Context(), own))
	for id, want := range map[string]string{made.ID: "old-7", own.ID: ""} {
		if got, err := s.Get(t.Context(), id); err != nil || got.ExternalID != want || got.ID != id {
			t.Errorf("%+v, %v", got, err)
		}
	}
	got, err := s.Get(t.Context(), "unknown")
	if storetest.Wants(t, err, fault.RecordNotFound); got.ID != "" {
		t.Errorf("%+v", got)
	}
	persistencetest.Fails(t, db, "users integration_claim", func(ctx context.Context) error {
		_, err := s.Get(ctx, made.ID)
		return err
	})
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

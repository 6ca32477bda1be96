package standing_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/standing"
	"castellan/persistence/persistencetest"
)

// D-INT-06: a finding makes an AML status worse and never better. Each one is stored and audited.
func TestFindNeverImproves(t *testing.T) {
	d := newDesk(t)
	d.money.User("other", func(u *user.User) { u.AMLStatus = "sanctioned" })
	for n, c := range []struct{ user, found, then, detail string }{
		{"ayse", user.NotRisky, user.NotRisky, "amlStatus=notRisky"},
		{"ayse", standing.Risky, standing.Risky, "amlStatus=notRisky -> risky"},
		{"ayse", standing.Risky, standing.Risky, "amlStatus=risky"},
		{"ayse", user.NotRisky, standing.Risky, "amlStatus=risky"},
		{"ayse", standing.HighRisk, standing.HighRisk, "amlStatus=risky -> highRisk"},
		{"ayse", standing.Risky, standing.HighRisk, "amlStatus=highRisk"},
		{"other", standing.HighRisk, "sanctioned", "amlStatus=sanctioned"},
	} {
		d.now = d.now.Add(time.Second + time.Microsecond)
		f := standing.Finding{ExternalID: "f" + string(rune('0'+n)), UserID: c.user, Status: c.found, Source: "screening",
			Reference: "case 7", Detail: "on a list"}
		got, err := d.Find(t.Context(), audit.By{UserID: "service"}, f)
		storetest.Must(t, err)
		if f.ID, f.At = got.ID, d.now.Truncate(time.Millisecond); got != f || f.ID == "" {
			t.Errorf("%d: %+v, want %+v", n, got, f)
		}
		stored, err := d.Store.Finding(t.Context(), got.ID)
		if stored.At = stored.At.UTC(); err != nil || stored != f {
			t.Errorf("%d: stored %+v, %v", n, stored, err)
		}
		u, err := d.users.Get(t.Context(), c.user)
		rows := d.details(standing.ActionFinding)
		if err != nil || u.AMLStatus != c.then || len(rows) != n+1 || rows[n] != c.detail {
			t.Errorf("%d: %s, audit %q, %v", n, u.AMLStatus, rows, err)
		}
	}
}

// A finding of a risk removes the user, and no other one, from the accounts that a confirmation ignores.
func TestFindEndsAConfirmation(t *testing.T) {
	d := newDesk(t)
	names := []string{"before", "ayse", "after"}
	for _, name := range names {
		if name != "ayse" {
			d.money.User(name, func(*user.User) {})
		}
		storetest.Must(t, d.money.DB.Commit(t.Context(), user.SetAMLStatus{UserID: name, Status: standing.Risky}))
		for range 2 { // the second confirmation changes nothing
			u, err := d.ConfirmAML(t.Context(), audit.By{UserID: "boss"}, name)
			if storetest.Must(t, err); u.ID != name || u.AMLStatus != user.NotRisky {
				t.Errorf("%s is %s", u.ID, u.AMLStatus)
			}
		}
	}
	if got := d.ignored(); !slices.Equal(got, names) || len(d.details(standing.ActionAML)) != 3 {
		t.Errorf("ignored %q, want %q", got, names)
	}
	find := func(externalID, status string) {
		_, err := d.Find(t.Context(), audit.By{UserID: "service"}, standing.Finding{ExternalID: externalID, UserID: "ayse",
			Status: status})
		storetest.Must(t, err)
	}
	find("f1", user.NotRisky)
	if got := d.ignored(); !slices.Equal(got, names) {
		t.Errorf("a harmless finding left %q", got)
	}
	for _, externalID := range []string{"f2", "f3"} { // the second time there is nothing to remove
		find(externalID, standing.Risky)
		if got := d.ignored(); !slices.Equal(got, []string{"before", "after"}) {
			t.Errorf("%s left %q", externalID, got)
		}
	}
	storetest.Must(t, d.money.DB.Commit(t.Context(), user.SetAMLStatus{UserID: "before", Status: standing.Risky}))
	_, err := d.ConfirmAML(t.Context(), audit.By{UserID: "boss"}, "before")
	if got := d.ignored(); err != nil || !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("a second confirmation left %q, %v", got, err)
	}
}

// Find and ConfirmAML survive four concurrent changes of the parameter, and fail at the fifth.
func TestChangesOfTheParameterAreRetried(t *testing.T) {
	d := newDesk(t)
	confirm := func() error {
		_, err := d.ConfirmAML(t.Context(), audit.By{UserID: "boss"}, "ayse")
		return err
	}
	find := func(externalID string) error {
		_, err := d.Find(t.Context(), audit.By{UserID: "service"}, standing.Finding{ExternalID: externalID, UserID: "ayse",
			Status: standing.Risky})
		return err
	}
	wants := func(status string, ignored ...string) {
		t.Helper()
		u, err := d.users.Get(t.Context(), "ayse")
		if storetest.Must(t, err); u.AMLStatus != status || !slices.Equal(d.ignored(), ignored) {
			t.Errorf("%s, ignored %q; want %s, %q", u.AMLStatus, d.ignored(), status, ignored)
		}
	}
	storetest.Must(t, find("f1"))
	d.busy = 5
	storetest.Wants(t, confirm(), fault.InvalidState)
	wants(standing.Risky)
	d.busy = 4
	storetest.Must(t, confirm())
	wants(user.NotRisky, "ayse")
	d.busy = 5
	storetest.Wants(t, find("f2"), fault.InvalidState)
	wants(user.NotRisky, "ayse")
	d.busy = 4
	storetest.Must(t, find("f2"))
	wants(standing.Risky)
	if got := d.details(standing.ActionFinding); len(got) != 2 {
		t.Errorf("audit %q", got)
	}
}

// A repeated external id returns the first finding; another body or a wrong field is rejected and stores nothing.
func TestFindRefuses(t *testing.T) {
	d := newDesk(t)
	f := standing.Finding{ExternalID: strings.Repeat("x", 128), UserID: "ayse",
		Status: standing.Risky}
	first, err := d.Find(t.Context(), audit.By{}, f)
	storetest.Must(t, err)
	d.now = d.now.Add(time.Second)
	again, err := d.Find(t.Context(), audit.By{}, f)
	if again.At = again.At.UTC(); err != nil || again != first {
		t.Errorf("%+v, want %+v, %v", again, first, err)
	}
	for name, c := range map[string]struct {
		edit func(*standing.Finding)
		want fault.Code
	}{
		"a long id":        {func(f *standing.Finding) { f.ExternalID += "x" }, fault.InvalidField},
		"a status":         {func(f *standing.Finding) { f.ExternalID, f.Status = "y", "sanctioned" }, fault.InvalidField},
		"a user":           {func(f *standing.Finding) { f.ExternalID, f.UserID = "y", "unknown" }, fault.RecordNotFound},
		"another user":     {func(f *standing.Finding) { f.UserID = "unknown" }, fault.InvalidState},
		"another status":   {func(f *standing.Finding) { f.Status = standing.HighRisk }, fault.InvalidState},
		"another source":   {func(f *standing.Finding) { f.Source = "s" }, fault.InvalidState},
		"another case":     {func(f *standing.Finding) { f.Reference = "r" }, fault.InvalidState},
		"another document": {func(f *standing.Finding) { f.Detail = "d" }, fault.InvalidState},
	} {
		next := f
		c.edit(&next)
		if _, err := d.Find(t.Context(), audit.By{}, next); fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if got := d.details(standing.ActionFinding); len(got) != 1 {
		t.Errorf("audit %q", got)
	}
}

// Only a known account is declared harmless, and not while it or the parameter cannot be read or written.
func TestConfirmationOfUnknownAccount(t *testing.T) {
	d := newDesk(t)
	u, err := d.ConfirmAML(t.Context(), audit.By{UserID: "boss"}, "unknown")
	if storetest.Wants(t, err, fault.RecordNotFound); u.ID != "" || len(d.ignored()) != 0 {
		t.Errorf("%+v, ignored %q", u, d.ignored())
	}
	_, err = d.Find(t.Context(), audit.By{UserID: "service"}, standing.Finding{ExternalID: "f1", UserID: "ayse",
		Status: standing.Risky})
	storetest.Must(t, err)
	persistencetest.Fails(t, d.money.DB, "users parameter audit", func(ctx context.Context) error {
		_, err := d.ConfirmAML(ctx, audit.By{UserID: "boss"}, "ayse")
		return err
	})
}

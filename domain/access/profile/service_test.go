package profile_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/profile"
	"castellan/domain/access/session"
	"castellan/domain/access/user"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// accounts are u1, as user.Store reads it.
type accounts struct {
	user.Store
	u user.User
}

func (a *accounts) Get(_ context.Context, id string) (user.User, error) {
	if id != "u1" {
		return user.User{}, fault.New(fault.RecordNotFound, "none")
	}
	return a.u, nil
}

func (a *accounts) Hold(ctx context.Context, id string) (user.User, error) { return a.Get(ctx, id) }

// notices record the destinations of notices.
type notices struct{ got []string }

func (n *notices) Notice(to challenge.Account, k message.Kind, _ message.Values, ip string) []commit.Write {
	n.got = append(n.got, string(k)+" "+to.Mail+to.Phone+" "+ip)
	return nil
}

type desk struct {
	*profile.Service
	accounts *accounts
	units    *storetest.Units
	notices  *notices
}

var (
	now = time.UnixMilli(1_700_000_000_000)
	by  = audit.By{UserID: "admin", IP: "ip"}
)

func newDesk() *desk {
	d := &desk{accounts: &accounts{u: user.User{ID: "u1", Name: "Ada", Surname: "Byron", CountryCode: "90",
		Phone: "+905320000001", Email: "old@example.com", EmailVerified: true, CV: 3, SV: 4, Language: "tr"}},
		units: &storetest.Units{}, notices: &notices{}}
	clock := func() time.Time { return now }
	d.Service = &profile.Service{Users: d.accounts, Notices: d.notices, Now: clock,
		Changes: admin.Changes{Commit: d.units, Now: clock}}
	return d
}

// changes returns the writes of the change itself.
func (d *desk) changes() []commit.Write {
	return slices.DeleteFunc(d.units.Writes, func(w commit.Write) bool { _, is := w.(audit.Record); return is })
}

func TestSetName(t *testing.T) {
	d := newDesk()
	u, err := d.SetName(t.Context(), by, "u1", "Augusta", "King")
	if err != nil || u.Name != "Augusta" || u.Surname != "King" || len(d.notices.got) != 0 {
		t.Errorf("%+v, %v, %v", u, d.notices.got, err)
	}
	storetest.Same(t, d.units.Audit(), []string{"admin USER_UPDATE_FULLNAME u1 u1 Name Surname"})
	storetest.Same(t, d.changes(), []commit.Write{user.SetName{UserID: "u1", Name: "Augusta", Surname: "King"}})
	if _, err = newDesk().SetName(t.Context(), by, "u2", "a", "b"); fault.CodeOf(err) != fault.RecordNotFound {
		t.Error(err)
	}
	d = newDesk()
	if _, err = d.SetName(t.Context(), by, "u1", "Ada", "Byron"); err != nil || d.units.Writes != nil {
		t.Errorf("%v, %v", d.units.Writes, err)
	}
}

// A new phone number ends all sessions. The address and both numbers are notified.
func TestSetPhone(t *testing.T) {
	d := newDesk()
	u, err := d.SetPhone(t.Context(), by, "u1", "1", "+12025550123")
	if err != nil || u.Phone != "+12025550123" || u.CountryCode != "1" {
		t.Errorf("%+v, %v", u, err)
	}
	storetest.Same(t, d.changes(), append([]commit.Write{user.SetPhone{UserID: "u1", CV: 3, CountryCode: "1",
		Phone: "+12025550123"}}, session.EndAll(d.accounts.u, now)...))
	kind := string(message.PhoneChanged)
	storetest.Same(t, d.notices.got,
		[]string{kind + " old@example.com ip", kind + " +905320000001 ip", kind + " +12025550123 ip"})
}

// A new address ends all sessions and is kept in the history. The old one and the new one are notified.
func TestSetMail(t *testing.T) {
	d := newDesk()
	u, err := d.SetMail(t.Context(), by, "u1", "new@example.com")
	if err != nil || u.Email != "new@example.com" || u.EmailVerified {
		t.Errorf("%+v, %v", u, err)
	}
	storetest.Same(t, d.changes(), append([]commit.Write{user.SetMail{UserID: "u1", CV: 3, Mail: "new@example.com"},
		profile.AddMailChange{MailChange: profile.MailChange{UserID: "u1", Old: "old@example.com", New: "new@example.com",
			ChangedBy: "admin", At: now}}}, session.EndAll(d.accounts.u, now)...))
	kind := string(message.MailChanged)
	storetest.Same(t, d.notices.got, []string{kind + " old@example.com+905320000001 ip", kind + " new@example.com ip"})
	d = newDesk()
	if u, err := d.SetMail(t.Context(), by, "u1", "old@example.com"); err != nil || !u.EmailVerified ||
		d.units.Writes != nil {
		t.Errorf("%+v, %v, %v", u, d.units.Writes, err)
	}
}

// A change is decided again while the account changes meanwhile, at most 32 times.
func TestChangeOfBusyAccount(t *testing.T) {
	d := newDesk()
	d.units.Fails = slices.Repeat([]error{commit.ErrFenced}, 31)
	if _, err := d.SetName(t.Context(), by, "u1", "a", "b"); err != nil {
		t.Error(err)
	}
	d.units.Fails = slices.Repeat([]error{commit.ErrFenced}, 32)
	_, err := d.SetName(t.Context(), by, "u1", "a", "b")
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Unavailable || f.RetryAfter != time.Second || len(d.units.Fails) != 0 {
		t.Error(err)
	}
	d.units.Fails = []error{fault.New(fault.RecordAlreadyExist, "the key users_phone exists")}
	_, err = d.SetPhone(t.Context(), by, "u1", "1", "+12025550123")
	if !errors.As(err, &f) || f.Code != fault.RecordAlreadyExist || f.Message != "another account has it" {
		t.Error(err)
	}
}

func TestPreferences(t *testing.T) {
	d := newDesk()
	u, err := d.Prefer(t.Context(), audit.By{UserID: "u1"}, func(p *profile.Preferences) {
		if p.Language != "tr" {
			t.Errorf("%+v", p)
		}
		p.Language = "en"
	})
	if err != nil || u.Language != "en" {
		t.Errorf("%+v, %v", u, err)
	}
	storetest.Same(t, d.units.Audit(), []string{"u1 USER_PREFERENCES u1 u1 Language"})
	storetest.Same(t, d.changes(), []commit.Write{user.SetPreferences{UserID: "u1", Language: "en"}})
	d = newDesk()
	if _, err := d.Prefer(t.Context(), audit.By{UserID: "u1"}, func(*profile.Preferences) {}); err != nil ||
		d.units.Writes != nil {
		t.Errorf("%v, %v", d.units.Writes, err)
	}
	_, err = d.Prefer(t.Context(), audit.By{UserID: "u2"}, func(*profile.Preferences) {})
	storetest.Wants(t, err, fault.RecordNotFound)
}

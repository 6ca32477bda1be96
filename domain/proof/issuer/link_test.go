package issuer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

var errDown = errors.New("the database is down")

// links are those of a service in memory.
type links struct {
	Store
	all  []Link
	fail error
}

func (l *links) Add(_ context.Context, one Link) error {
	l.all = append(l.all, one)
	return l.fail
}

func (l *links) Remove(_ context.Context, one Link) error {
	before := len(l.all)
	l.all = slices.DeleteFunc(l.all, func(o Link) bool { return o.UserID == one.UserID && o.Subject == one.Subject })
	if len(l.all) == before {
		return fault.New(fault.RecordNotFound, "none")
	}
	return l.fail
}

func (l *links) User(_ context.Context, issuer, subject string) (string, error) {
	if l.fail != nil {
		return "", l.fail
	}
	for _, one := range l.all {
		if one.Issuer == issuer && one.Subject == subject {
			return one.UserID, nil
		}
	}
	return "", fault.New(fault.RecordNotFound, "none")
}

// accounts are the accounts of the links, with their open challenges.
type accounts struct {
	all             []challenge.Insert
	refreshed, told []string
}

// wire gives a service its accounts.
func wire(s *Service) *accounts {
	a := &accounts{}
	s.Account = func(_ context.Context, userID string) (challenge.Account, error) {
		if userID == "unknown" {
			return challenge.Account{}, fault.New(fault.RecordNotFound, "none")
		}
		return challenge.Account{UserID: userID}, nil
	}
	s.Notices = a
	s.Hash = func(domain string, parts ...string) string {
		return "hash of " + parts[0] + strings.Repeat("x", len(parts[1]))
	}
	s.Pending = func(context.Context, string, time.Time) ([]challenge.Insert, error) { return a.all, nil }
	s.Refresh = func(id string) { a.refreshed = append(a.refreshed, id) }
	return a
}

func (a *accounts) Notice(to challenge.Account, k message.Kind, _ message.Values, _ string) []commit.Write {
	a.told = append(a.told, string(k)+" "+to.UserID)
	return nil
}

func (a *accounts) closed(in *storetest.Units) (ids []string) {
	for _, w := range in.Writes {
		if s, is := w.(challenge.Supersede); is {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func started(id string, by challenge.Starter) challenge.Insert {
	return challenge.Insert{Challenge: challenge.Challenge{ID: id, Body: challenge.Body{Starter: by}}}
}

// A token is that of the linked account, until the link is removed. The audit has the keyed hash of the subject, and
// the owner is told. The end of a link closes the challenges that its subject started.
func TestLinks(t *testing.T) {
	all := newSigners(t)
	store, units := &links{}, &storetest.Units{}
	published := func(context.Context, string) ([]byte, error) { return set(t, all), nil }
	s := &Service{Verifier: NewVerifier([]Issuer{issuerOne, issuerTwo}, published, func() time.Time { return start }),
		Store: store, Changes: admin.Changes{Commit: units, Now: func() time.Time { return start }}}
	open := wire(s)
	raw := sign(t, all["ed"], header("ed"), claims())
	user := func() (string, error) {
		userID, who, err := s.User(t.Context(), raw)
		storetest.Equal(t, who.Subject, "f:1:jane", who)
		return userID, err
	}
	_, err := user()
	storetest.Wants(t, err, fault.SubjectUnknown)
	by, link := audit.By{UserID: "boss"}, Link{UserID: "u1", Issuer: home, Subject: "f:1:jane"}
	for name, c := range map[string]struct {
		edit   func(*Link)
		fields string
	}{
		"an issuer":        {func(l *Link) { l.Issuer = "https://elsewhere.example" }, "issuer"},
		"no subject":       {func(l *Link) { l.Subject = "" }, "subject"},
		"a long subject":   {func(l *Link) { l.Subject = strings.Repeat("x", 256) }, "subject"},
		"a control":        {func(l *Link) { l.Subject = "a\nb" }, "subject"},
		"no text":          {func(l *Link) { l.Subject = "\xff" }, "subject"},
		"issuer, subject":  {func(l *Link) { l.Issuer, l.Subject = "", "" }, "issuer subject"},
		"the longest text": {func(l *Link) { l.UserID, l.Subject = "u2", strings.Repeat("x", 255) }, ""},
	} {
		next := link
		c.edit(&next)
		t.Run(name, func(t *testing.T) { storetest.WantsFields(t, s.Link(t.Context(), by, next), c.fields) })
	}
	storetest.Wants(t, s.Link(t.Context(), by, Link{UserID: "unknown", Issuer: home, Subject: "x"}), fault.RecordNotFound)
	storetest.Must(t, s.Link(t.Context(), by, link))
	if len(store.all) != 2 || !store.all[1].CreatedAt.Equal(start) {
		t.Errorf("%+v", store.all)
	}
	if got, err := user(); got != "u1" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if got, _, err := s.User(t.Context(), "nonsense"); err == nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	store.fail = errDown
	if _, err := user(); !errors.Is(err, errDown) {
		t.Errorf("%v", err)
	}
	storetest.Is(t, s.Link(t.Context(), by, link), errDown)
	store.fail = nil
	here := challenge.Starter{Login: login(home, "f:1:jane"), SessionID: session(home, "f:1:jane", "s1")}
	open.all = []challenge.Insert{started("c1", here), started("c2", challenge.Starter{SessionID: "of the account"}),
		started("c3", challenge.Starter{Login: login(home, "f:1:joan")}),
		started("c4", challenge.Starter{SessionID: session(home, "f:1:jane", "")})} // by an older release
	storetest.Must(t, s.Unlink(t.Context(), by, link))
	if !slices.Equal(open.refreshed, []string{"c1", "c4"}) || !slices.Equal(open.closed(units), open.refreshed) {
		t.Errorf("closed %v, refreshed %v", open.closed(units), open.refreshed)
	}
	_, err = user()
	storetest.Wants(t, err, fault.SubjectUnknown)
	storetest.Wants(t, s.Unlink(t.Context(), by, link), fault.RecordNotFound)
	for _, row := range units.Audit() {
		if strings.Contains(row, "jane") || !strings.Contains(row, home) ||
			!strings.Contains(row, "hash of "+home) {
			t.Errorf("audit %s", row)
		}
	}
	if want := []string{"login-linked u2", "login-linked u1", "login-linked u1", "login-unlinked u1"}; !slices.Equal(
		open.told, want) {
		t.Errorf("told %q, want %q", open.told, want)
	}
	if rows := units.Audit(); len(rows) != 3 || !strings.Contains(rows[2], "USER_LINK_REMOVE") ||
		!strings.Contains(rows[1], "USER_LINK_ADD") || !strings.Contains(rows[1], "u1") {
		t.Errorf("audit %q", rows)
	}
}

package remembered_test

import (
	"errors"
	"testing"
	"time"

	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

var now = time.UnixMilli(1_750_000_000_000)

// A client counts up to its last millisecond, for its credentials, and never for longer than the policy says now.
func TestCounts(t *testing.T) {
	c := remembered.Client{CV: 4, CreatedAt: now, ExpiresAt: now.AddDate(0, 0, 30)}
	day := 24 * time.Hour
	for _, one := range []struct {
		after time.Duration
		cv    int64
		days  int
		want  bool
	}{
		{0, 4, 30, true}, {30*day - time.Millisecond, 4, 30, true}, {30 * day, 4, 30, false},
		{0, 4, 0, false}, {0, 4, -1, false}, {0, 5, 30, false}, {0, 3, 30, false},
		{10*day - time.Millisecond, 4, 10, true}, {10 * day, 4, 10, false}, // shortened
		{30*day - time.Millisecond, 4, 90, true}, {30 * day, 4, 90, false}, // lengthened
	} {
		storetest.Equal(t, c.Counts(now.Add(one.after), one.cv, one.days), one.want, one)
	}
}

// The first really completed method is chosen, in the order of the policy.
func TestChosen(t *testing.T) {
	done := func(n challenge.Name, order int) challenge.Method { return challenge.Method{Name: n, Order: order} }
	base := func(change func(*challenge.Challenge), ms ...challenge.Method) challenge.Challenge {
		c := challenge.Challenge{UserID: "u", Action: "LOGIN", Body: challenge.Body{Key: "k", RememberDays: 30,
			Proven: true, CV: 7, Methods: ms}}
		if change != nil {
			change(&c)
		}
		return c
	}
	sms, totp := done(challenge.SMS, 2), done(challenge.TOTP, 1)
	must, again := sms, sms
	must.Mandatory, again.Remembered = true, "r1"
	for name, one := range map[string]struct {
		c    challenge.Challenge
		want challenge.Name
	}{
		"the order of the policy": {base(nil, sms, totp), challenge.SMS},
		"only completed ones":     {base(nil, done(challenge.SMS, 0), totp), challenge.TOTP},
		"none completed":          {base(nil, done(challenge.SMS, 0)), ""},
		"no key":                  {base(func(c *challenge.Challenge) { c.Key = "" }, sms), ""},
		"no option":               {base(func(c *challenge.Challenge) { c.RememberDays = 0 }, sms), ""},
		"not proven":              {base(func(c *challenge.Challenge) { c.Proven = false }, sms), ""},
		"a decoy":                 {base(func(c *challenge.Challenge) { c.Kind = challenge.Decoy }, sms), ""},
		"an applicant":            {base(func(c *challenge.Challenge) { c.Kind = challenge.Applicant }, sms), ""},
		"mandatory":               {base(nil, must, totp), challenge.TOTP},
		"remembered already":      {base(nil, again, totp), ""},
		"a push that must sign": {base(func(c *challenge.Challenge) { c.SignIntent = true },
			done(challenge.PUSH, 1), done(challenge.MAIL, 2)), challenge.MAIL},
		"any other push": {base(nil, done(challenge.PUSH, 1)), challenge.PUSH},
	} {
		m, ok := remembered.Chosen(one.c)
		if ok != (one.want != "") || m.Name != one.want {
			t.Errorf("%s: %v", name, m.Name)
		}
		if ws := remembered.Writes(one.c, now, audit.By{}); (len(ws) == 2) != ok {
			t.Errorf("%s: %d writes", name, len(ws))
		} else if ok {
			made := ws[0].(remembered.Add)
			if made.UserID != "u" || made.Thumbprint != "k" || made.Action != "LOGIN" || made.CV != 7 ||
				made.Method != one.want || !made.ExpiresAt.Equal(now.AddDate(0, 0, 30)) ||
				ws[1].(audit.Record).ActorID != "u" {
				t.Errorf("%s: %+v", name, ws)
			}
		}
	}
}

// clients is the service over a database with two accounts, whose login remembers for 30 days by SMS.
type clients struct {
	remembered.Service
	db   *persistence.DB
	now  time.Time
	a, b audit.By
}

func newClients(t *testing.T) *clients {
	t.Helper()
	c := &clients{db: persistencetest.SQLite(t), now: now, a: audit.By{UserID: usertest.Sample(1).ID},
		b: audit.By{UserID: usertest.Sample(2).ID}}
	storetest.Must(t, c.db.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2)))
	c.Service = remembered.Service{Store: factor.NewRemembered(c.db), Commit: c.db,
		Now: func() time.Time { return c.now }, Catalog: func() *mfa.Catalog { return remembering(30) }}
	return c
}

// remembering is a catalog whose login remembers a completed SMS.
func remembering(days int) *mfa.Catalog {
	return mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), []mfa.Policy{{ID: 1, ActionCode: mfa.Login, Name: "p",
		EntityType: mfa.General, Type: mfa.Common, Required: 1, Methods: []mfa.Choice{{Code: "SMS"}}, RememberDays: days}})
}

// remember adds a client of an account that the challenge of an action remembers.
func (c *clients) remember(t *testing.T, who audit.By, key, action string, m challenge.Name) string {
	t.Helper()
	writes := remembered.Writes(challenge.Challenge{UserID: who.UserID, Action: action, Body: challenge.Body{Key: key,
		RememberDays: 30, Proven: true, CV: usertest.Sample(1).CV,
		Methods: []challenge.Method{{Name: m, Order: 1}}}}, c.now, audit.By{})
	storetest.Must(t, c.db.Commit(t.Context(), writes...))
	return writes[0].(remembered.Add).ID
}

func (c *clients) lists(t *testing.T, want ...string) []remembered.Client {
	t.Helper()
	all := storetest.Value(c.List(t.Context(), c.a.UserID, "192.0.2.1"))(t)
	ids := []string{}
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	storetest.Same(t, ids, append([]string{}, want...))
	return all
}

// The list has the clients that still count, with their end under the current policy, newest first.
func TestList(t *testing.T) {
	c := newClients(t)
	first := c.remember(t, c.a, "k1", mfa.Login, challenge.SMS)
	c.now = c.now.Add(time.Hour)
	second := c.remember(t, c.a, "k2", mfa.Login, challenge.SMS)
	c.remember(t, c.a, "k1", mfa.Login+"X", challenge.SMS) // an action whose policy remembers nothing
	c.remember(t, c.a, "k3", mfa.Login, challenge.TOTP)    // a method that is not in the policy any more
	c.remember(t, c.b, "k4", mfa.Login, challenge.SMS)
	for _, one := range c.lists(t, second, first) {
		if !one.ExpiresAt.Equal(one.CreatedAt.AddDate(0, 0, 30)) {
			t.Errorf("%+v", one)
		}
	}
	c.Catalog = func() *mfa.Catalog { return remembering(10) }
	if one := c.lists(t, second, first)[1]; !one.ExpiresAt.Equal(now.AddDate(0, 0, 10)) {
		t.Errorf("under a shorter policy: %+v", one)
	}
	c.now = now.AddDate(0, 0, 10)
	c.lists(t, second)
	c.Catalog = func() *mfa.Catalog { return remembering(0) }
	c.lists(t)
}

// An account forgets one of its clients, and none of another account.
func TestEnd(t *testing.T) {
	c := newClients(t)
	first := c.remember(t, c.a, "k1", mfa.Login, challenge.SMS)
	own := c.remember(t, c.a, "k2", mfa.Login, challenge.SMS)
	foreign := c.remember(t, c.b, "k1", mfa.Login, challenge.SMS)
	for _, id := range []string{"unknown", foreign} {
		storetest.Wants(t, c.End(t.Context(), c.a, id), fault.RecordNotFound)
	}
	storetest.Must(t, c.End(t.Context(), c.a, own))
	c.lists(t, first)
	acts := persistencetest.Did(t, c.db, "REMEMBER_END")
	if one := acts[0]; len(acts) != 1 || one.Target != own || one.UserID != c.a.UserID || one.Detail != "" {
		t.Errorf("%+v", acts)
	}
}

// An account forgets all of its clients at once. A repetition finds none and writes nothing.
func TestEndAll(t *testing.T) {
	c := newClients(t)
	c.remember(t, c.a, "k1", mfa.Login, challenge.SMS)
	c.remember(t, c.a, "k2", mfa.Login, challenge.SMS)
	c.remember(t, c.b, "k1", mfa.Login, challenge.SMS)
	n := storetest.Value(c.EndAll(t.Context(), c.a))(t)
	again, err := c.EndAll(t.Context(), c.a)
	if n != 2 || again != 0 || err != nil {
		t.Errorf("%d clients, then %d, %v", n, again, err)
	}
	c.lists(t)
	acts := persistencetest.Did(t, c.db, "REMEMBER_END")
	if one := acts[0]; len(acts) != 1 || one.Target != c.a.UserID || one.Detail != "2 clients" {
		t.Errorf("%+v", acts)
	}
	if left, err := c.EndAll(t.Context(), c.b); left != 1 || err != nil {
		t.Errorf("the other account: %d, %v", left, err)
	}
	c.Commit = persistencetest.Unaudited(c.db)
	kept := c.remember(t, c.a, "k1", mfa.Login, challenge.SMS)
	if _, err := c.EndAll(t.Context(), c.a); !errors.Is(err, persistencetest.ErrNoAudit) {
		t.Error(err)
	}
	c.lists(t, kept)
}

// The audit names the method, the action and the end; the description is that of the client, or its brand and model.
func TestWrittenClient(t *testing.T) {
	c := challenge.Challenge{UserID: "u", Action: "LOGIN", Body: challenge.Body{Key: "k", RememberDays: 30, Proven: true,
		CV: 7, Methods: []challenge.Method{{Name: challenge.SMS, Order: 1}}}}
	for want, from := range map[string]challenge.Starter{"ACME One": {Brand: "ACME", Model: "One"},
		"ACME": {Brand: "ACME"}, "Firefox": {Brand: "ACME", Model: "One", Description: "Firefox"}} {
		c.Starter, c.Starter.IP = from, "192.0.2.1"
		writes := remembered.Writes(c, now, audit.By{UserID: "op"})
		made, row := writes[0].(remembered.Add), writes[1].(audit.Record)
		if made.Description != want || made.IP != "192.0.2.1" || !made.CreatedAt.Equal(now) || !made.LastUsedAt.Equal(now) ||
			made.Row() != "u k LOGIN" {
			t.Errorf("%+v", made)
		}
		if row.ActorID != "op" || row.UserID != "u" || row.Target != made.ID || row.Action != "REMEMBER" ||
			row.Detail != "SMS of LOGIN until 2025-07-15T15:06:40Z" || !row.At.Equal(now) {
			t.Errorf("%+v", row)
		}
	}
	used := remembered.Used{ID: "r1", At: now}
	if key, version := used.Fence(); key != "r1" || version != 1_750_000_000_000 {
		t.Errorf("fenced by %s, %d", key, version)
	}
}

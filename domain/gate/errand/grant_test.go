package errand_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/gate/errand"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence/persistencetest"
)

// claims are those of a grant, as the documents list them.
type claims struct {
	Issuer    string   `json:"iss"`
	Audience  string   `json:"aud"`
	IssuedAt  int64    `json:"iat"`
	ExpiresAt int64    `json:"exp"`
	ID        string   `json:"jti"`
	Subject   string   `json:"sub"`
	Action    string   `json:"act"`
	Reference string   `json:"ref"`
	Intent    string   `json:"int"`
	Methods   []string `json:"amr"`
	AuthTime  int64    `json:"auth_time,omitempty"`
}

// completed starts and completes the challenge of a reference.
func (g *guard) completed(t *testing.T, reference string) errand.Errand {
	t.Helper()
	c := g.start(t, reference)
	g.complete(t, c)
	return storetest.Value(g.Get(t.Context(), "shop", c.ID, 0))(t)
}

// sign signs the claims of a grant of "shop" after an edit.
func (g *guard) sign(t *testing.T, e errand.Errand, edit func(*claims)) string {
	t.Helper()
	var c claims
	storetest.Must(t, g.Statements.ReadStatement("guard-grant+jwt", g.grant(t, e.ID), &c))
	edit(&c)
	return storetest.Value(g.Statements.SignStatement("guard-grant+jwt", c))(t)
}

// A grant names the user, the action and the methods; it begins with the completion in whole seconds, and with each
// half minute after it.
func TestClaimsOfGrant(t *testing.T) {
	g := newGuard(t)
	e := g.completed(t, "a")
	settled := g.now.Truncate(time.Second).Unix()
	for after, issued := range map[time.Duration]int64{-time.Minute: 0, -400 * time.Millisecond: 0, 0: 0,
		29*time.Second + 599*time.Millisecond: 0, 29*time.Second + 600*time.Millisecond: 30, 59 * time.Second: 30,
		59*time.Second + 600*time.Millisecond: 60, 10*time.Minute - time.Millisecond: 600} {
		g.now = e.SettledAt.Add(after)
		text := storetest.Value(g.Grant(t.Context(), e))(t)
		var got claims
		storetest.Must(t, g.Statements.ReadStatement("guard-grant+jwt", text, &got))
		storetest.Same(t, got, claims{"castellan", "shop", settled + issued, settled + issued + 60, e.ID, "u1", "PAYOUT",
			"a", "digest", []string{"SMS"}, e.SettledAt.Unix()})
	}
}

// Beside a node of an older release, which knows no auth_time, a grant is as before, and every node redeems it.
func TestGrantBesideOlderRelease(t *testing.T) {
	g := newGuard(t)
	e := g.completed(t, "a")
	g.Mixed = func() bool { return true }
	text := g.grant(t, e.ID)
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
	if err != nil || strings.Contains(string(payload), "auth_time") {
		t.Errorf("%s, %v", payload, err)
	}
	g.Mixed = nil
	_, err = g.Redeem(t.Context(), by, "shop", text)
	storetest.Must(t, err)
}

// A grant ends with its account: it is neither issued nor redeemed while the account may not be used.
func TestGrantEndsWithAccount(t *testing.T) {
	g := newGuard(t)
	e := g.completed(t, "a")
	text, usable := g.grant(t, e.ID), g.Account
	var refusal error
	g.Account = func(context.Context, string) (challenge.Account, error) { return challenge.Account{}, refusal }
	refusal = fault.New(fault.RecordNotFound, "closed")
	if got, err := g.Grant(t.Context(), e); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_, err := g.Redeem(t.Context(), by, "shop", text)
	storetest.Wants(t, err, fault.TokenRevoked)
	refusal = errDown
	if _, err := g.Grant(t.Context(), e); !errors.Is(err, errDown) {
		t.Error(err)
	}
	if _, err := g.Redeem(t.Context(), by, "shop", text); !errors.Is(err, errDown) {
		t.Error(err)
	}
	g.Account = usable
	_, err = g.Redeem(t.Context(), by, "shop", text)
	storetest.Must(t, err)
}

// An errand that is not completed, was redeemed, or was approved ten minutes ago has no grant.
func TestNoGrant(t *testing.T) {
	g := newGuard(t)
	late := g.now.Add(-10 * time.Minute)
	for _, e := range []errand.Errand{{Status: errand.Pending}, {Status: errand.Denied}, {Status: errand.Expired},
		{Status: errand.Failed}, {Status: errand.Completed, RedeemedAt: g.now}, {Status: errand.Completed, SettledAt: late}} {
		if text, err := g.Grant(t.Context(), e); text != "" || err != nil {
			t.Errorf("%+v: %q, %v", e, text, err)
		}
	}
}

// A grant is valid for 60 s: one second before its end it is redeemed, at its end it is refused.
func TestGrantExpires(t *testing.T) {
	g := newGuard(t)
	late, last := g.completed(t, "late"), g.completed(t, "last")
	first, second := g.grant(t, late.ID), g.grant(t, last.ID)
	end := g.now.Truncate(time.Second).Add(60 * time.Second)
	g.now = end
	_, err := g.Redeem(t.Context(), by, "shop", first)
	storetest.Wants(t, err, fault.TokenExpired)
	g.now = end.Add(-time.Millisecond)
	_, err = g.Redeem(t.Context(), by, "shop", second)
	storetest.Must(t, err)
}

// A signed statement is no grant if another issuer or audience is in it, or if its errand is not completed.
func TestStatementIsNoGrant(t *testing.T) {
	g := newGuard(t)
	e := g.completed(t, "a")
	open := g.start(t, "open")
	for name, edit := range map[string]func(*claims){
		"another issuer":   func(c *claims) { c.Issuer = "other" },
		"another audience": func(c *claims) { c.Audience = "other" },
		"not completed":    func(c *claims) { c.ID = open.ID },
	} {
		if _, err := g.Redeem(t.Context(), by, "shop", g.sign(t, e, edit)); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := g.Redeem(t.Context(), by, "shop", g.sign(t, e, func(c *claims) { c.ID = "unknown" }))
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = g.Redeem(t.Context(), by, "shop", "nonsense")
	storetest.Wants(t, err, fault.Unauthenticated)
	_, err = g.Redeem(t.Context(), by, "shop", g.sign(t, e, func(*claims) {}))
	storetest.Must(t, err)
}

// A redemption returns the errand with its time, and is audited. Without a payload it has no content.
func TestRedemption(t *testing.T) {
	g := newGuard(t)
	r := request("bare")
	r.Payload = nil
	s, _, err := g.Service.Start(t.Context(), by, r, challenge.Starter{})
	storetest.Must(t, err)
	g.complete(t, s.Challenge)
	got, err := g.Redeem(t.Context(), by, "shop", g.grant(t, s.Challenge.ID))
	if err != nil || got.Content != nil || got.ID != s.Challenge.ID || got.Redemption == "" || got.Reference != "bare" {
		t.Errorf("%+v, %v", got, err)
	}
	acts := persistencetest.Acts(t, g.db)
	storetest.Same(t, acts[len(acts)-1], "GUARD_REDEEM|service:shop|u1|"+s.Challenge.ID+"|PAYOUT bare")
	e, err := g.Store.Get(t.Context(), s.Challenge.ID)
	if err != nil || e.Redemption != got.Redemption || !e.RedeemedAt.Equal(g.now) {
		t.Errorf("%+v, %v", e, err)
	}
}

// A payload that cannot be opened, and a database that fails, end no grant.
func TestRedemptionFails(t *testing.T) {
	g := newGuard(t)
	e := g.completed(t, "a")
	grant, seals := g.grant(t, e.ID), g.Seals
	g.Seals = unopened{}
	if r, err := g.Redeem(t.Context(), by, "shop", grant); !errors.Is(err, errDown) || r.ID != "" {
		t.Errorf("%+v, %v", r, err)
	}
	g.Seals, g.Service.Commit = seals, &storetest.Units{Fails: []error{errDown}}
	if r, err := g.Redeem(t.Context(), by, "shop", grant); !errors.Is(err, errDown) || r.ID != "" || r.Content != nil {
		t.Errorf("%+v, %v", r, err)
	}
	g.Service.Commit = g.db
	if r, err := g.Redeem(t.Context(), by, "shop", grant); err != nil || r.ID != e.ID {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
}

// unopened opens no payload.
type unopened struct{}

func (unopened) Seal(plain, _ []byte) []byte      { return plain }
func (unopened) Open(_, _ []byte) ([]byte, error) { return nil, errDown }

// Of two redemptions at once the second is refused with the time of the first.
func TestRedemptionsAtOnce(t *testing.T) {
	g := newGuard(t)
	e := g.completed(t, "a")
	grant, at := g.grant(t, e.ID), g.now
	g.Service.Commit = commits(func(ctx context.Context, ws ...commit.Write) error {
		g.Service.Commit = g.db
		r, err := g.Redeem(t.Context(), by, "shop", grant)
		if err != nil || !json.Valid(r.Content) {
			t.Errorf("the first: %+v, %v", r, err)
		}
		g.now = g.now.Add(time.Second)
		return g.db.Commit(ctx, ws...)
	})
	r, err := g.Redeem(t.Context(), by, "shop", grant)
	if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Code != fault.GrantUsed || !f.RedeemedAt.Equal(at) ||
		r.Content != nil {
		t.Errorf("the second: %+v, %v", r, err)
	}
}

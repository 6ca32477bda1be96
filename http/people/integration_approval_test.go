package people_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/money/addressbook"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	moneystore "castellan/persistence/money"
)

// A request with the token of the owner is one challenge, then one withdrawal, however often
// it is sent.
func TestApproval(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		a := o.started(o.owned("w1"))
		if len(a.Challenge.MethodList) != 2 || a.Challenge.Status != "PENDING" {
			t.Errorf("the challenge %s", a.answer)
		}
		o.has("kim", "2", "0")
		o.e.Skip(10 * time.Second)
		again := o.started(o.owned("w1", "userToken", `"`+o.token("kim", "s2")+`"`)) // another token of the owner
		if again.Challenge.ChallengeID != a.Challenge.ChallengeID || again.Challenge.MethodList[0].Expire != 110 {
			t.Errorf("the repetition %s", again.answer)
		}
		if n := count(t, o.db, "challenge"); n != 1 || o.e.SentAll() != 2 {
			t.Errorf("%d challenges, %d codes", n, o.e.SentAll())
		}
		for _, other := range []string{o.owned("w1", "amount", "0.2"), withBody("w1", "userId", `"kim"`),
			o.owned("w1", "userToken", `"`+o.token("jane", "s1")+`"`)} {
			if got := o.ask(other); got.status != 409 || got.code != "INVALID_STATE" {
				t.Errorf("another body: %d %s", got.status, got.answer)
			}
		}
		done := o.ends(again, "") // by the token of the repetition
		o.has("kim", "2", "0.101")
		made := o.ask(o.owned("w1"))
		if made.Data == nil || made.Challenge != nil || made.header.Get("p-auth") != "" || made.Data.Status != "queued" ||
			!strings.Contains(string(done.ExecResult.Data), `"id":"`+made.Data.ID+`","externalId":"w1"`) {
			t.Fatalf("after the execution %s, the outcome %s", made.answer, done.ExecResult.Data)
		}
		if got := o.ends(a, ""); string(got.ExecResult.Data) != string(done.ExecResult.Data) {
			t.Errorf("the completion again: %s", got.ExecResult.Data)
		}
		if got := o.ask(o.owned("w1", "amount", "0.2")); got.status != 409 {
			t.Errorf("another body after the execution: %s", got.answer)
		}
		o.As("admin").Wants("POST /admin/withdrawals/"+made.Data.ID+"/cancel", `{}`, 200, strings.Replace(
			record(made.Data.ID, "w1", "cancelled", 12, "null", "null"), "12:00:00", "12:00:10", 1))
		o.has("kim", "2", "0")
		o.ends(a, "")
		o.e.Skip(24 * time.Hour)
		if got := o.ask(o.owned("w1")); got.Data == nil || got.Data.ID != made.Data.ID || got.Data.Status != "cancelled" {
			t.Errorf("after the cancellation: %s", got.answer)
		}
		o.has("kim", "2", "0")
		if n := count(t, o.db, "challenge"); n != 1 {
			t.Errorf("%d challenges", n)
		}
		for act, actor := range map[string]string{"WITHDRAWAL_START": "service:wallet", "WITHDRAWAL_REQUEST": "kim"} {
			if n := count(t, o.db, "audit", "action = '"+act+"'", "actor_id = '"+actor+"'", "user_id = 'kim'"); n != 1 {
				t.Errorf("%d rows of %s by %s", n, act, actor)
			}
		}
	})
}

// Credentials of the owner are refused as those of a request, and requests that name no
// owner or two.
func TestApprovalCredentials(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		quoted := func(raw string) string { return `"` + raw + `"` }
		expired := o.token("kim", "s1", func(c *token.Claims) { c.ExpiresAt = c.IssuedAt.Add(time.Second) })
		o.e.Skip(2 * time.Second)
		ended := o.token("kim", "ended")
		o.e.Revoked.End("ended")
		other := token.NewIssuer(o.e.Ring, "castellan", "another tenant", o.service.Now, 0)
		now := o.service.Now()
		foreign, err := other.Sign(token.Claims{Class: token.XAuth, ID: "1", Subject: "kim", SessionID: "s1",
			Roles: []string{"user"}, AMR: []string{"pwd"}, AuthTime: now, IssuedAt: now, ExpiresAt: now.Add(time.Hour)})
		storetest.Must(t, err)
		proof, err := o.e.PAuth("some challenge", now.Add(time.Hour))
		storetest.Must(t, err)
		for name, c := range map[string]struct {
			userToken string
			status    int
			want      string
		}{
			"expired":                {quoted(expired), 401, "TOKEN_EXPIRED userToken"},
			"revoked":                {quoted(ended), 401, "TOKEN_REVOKED userToken"},
			"of another tenant":      {quoted(foreign), 401, "UNAUTHENTICATED userToken"},
			"of a challenge":         {quoted(proof), 401, "UNAUTHENTICATED userToken"},
			"changed":                {quoted(o.token("kim", "s1") + "x"), 401, "UNAUTHENTICATED userToken"},
			"nonsense":               {quoted(strings.Repeat("x", 60)), 401, "UNAUTHENTICATED userToken"},
			"too long":               {quoted(strings.Repeat("x", 8193)), 400, "INVALID_FIELD userToken"},
			"of the service":         {`"wallet.secret"`, 404, "RECORD_NOT_FOUND"}, // apitest takes it for a user
			"neither user nor token": {"", 400, "INVALID_FIELD userId"},
		} {
			if got := o.ask(o.owned("x", "userToken", c.userToken)); got.status != c.status || got.code != c.want {
				t.Errorf("%s: %d %s, want %s", name, got.status, got.answer, c.want)
			}
		}
		if got := o.ask(o.owned("x", "userId", `"kim"`)); got.code != "INVALID_FIELD userToken" {
			t.Errorf("user and token: %s", got.answer)
		}
		// An administrator is bound by the permissions of the token's user.
		if status, answer := o.As("clerk").Call(requests, o.owned("x", "userToken", `"admin"`)); status != 403 {
			t.Errorf("about an administrator: %d %s", status, answer)
		}
		if n := count(t, o.db, "integration_claim") + count(t, o.db, "challenge"); n != 0 {
			t.Errorf("%d rows of refused requests", n)
		}
		// The challenge ends with the session that started it.
		a := o.started(o.owned("x"))
		o.e.Revoked.End("s1")
		if status, _, answer := o.complete(a); status != 409 {
			t.Errorf("after the end of the session: %d %s", status, answer)
		}
		o.has("kim", "2", "0")
	})
}

// A request is judged when it starts, which leaves no trace, and when the owner has approved.
func TestApprovalIsJudgedTwice(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		for _, c := range []struct{ want, field, value string }{{"BELOW_MINIMUM", "amount", "0.001"},
			{"LIMIT_EXCEEDED", "amount", "1.5"}, {"ADDRESS_NOT_ALLOWED", "address", `"nowhere"`},
			{"INVALID_FIELD currencyCode", "network", `"ETH"`}, {"INVALID_FIELD amount", "amount", "0.0123456789"}} {
			if got := o.ask(o.owned("free", c.field, c.value)); got.code != c.want {
				t.Errorf("%s: %s", c.want, got.answer)
			}
		}
		o.user("bare", func(*user.User) {})
		bare := o.ask(o.owned("free", "userToken", `"`+o.token("bare", "s1")+`"`))
		if bare.status != 409 || bare.code != "MFA_NOT_AVAILABLE" {
			t.Errorf("an owner without a factor: %s", bare.answer)
		}
		if n := count(t, o.db, "integration_claim"); n != 0 {
			t.Errorf("%d claims of refused requests", n)
		}

		kim := func(set func(u *user.User)) func() {
			return func() {
				u, err := account.NewUsers(o.db).Get(t.Context(), "kim")
				storetest.Must(t, err)
				set(&u)
				storetest.Must(t, o.db.Commit(t.Context(), user.SetAMLStatus{UserID: "kim", Status: u.AMLStatus}))
			}
		}
		entry := o.entry(t, "kim", address1)
		for name, c := range map[string]struct {
			with    []string
			between func()
			want    string
			after   func()
		}{
			"risk": {nil, kim(func(u *user.User) { u.AMLStatus = "risky" }), "AML_RISKY",
				kim(func(u *user.User) { u.AMLStatus = user.NotRisky })},
			"address": {[]string{"address", "", "addressId", fmt.Sprint(entry)}, func() {
				o.readdress(t, "kim", entry, "bc1q0ht9tyks4vh7p5p904t340cr9nvahy7u3re7zg")
			}, "ADDRESS_NOT_ALLOWED", func() {}},
			"limit": {[]string{"amount", "0.6"}, func() { o.ends(o.started(o.owned("first", "amount", "0.5")), "") },
				"LIMIT_EXCEEDED", nil},
		} {
			a := o.started(o.owned(name, c.with...))
			c.between()
			o.ends(a, c.want)
			if got := o.ask(o.owned(name, c.with...)); name != "address" && got.code != c.want {
				t.Errorf("%s, again: %s", name, got.answer)
			}
			if name == "limit" { // the withdrawal before it waits, and counts tomorrow as well
				continue
			}
			c.after()
			b := o.started(o.owned(name, c.with...))
			if b.Challenge.ChallengeID == a.Challenge.ChallengeID {
				t.Errorf("%s: the challenge that failed was answered", name)
			}
			o.ends(b, "")
		}

		// The owner pays the fee that was shown.
		a := o.started(o.owned("fee", "amount", "0.02"))
		o.fee(t, "0.5")
		o.ends(a, "")
		if _, answer := o.As("admin").Call("GET /integration/withdrawals/"+o.ask(o.owned("fee", "amount", "0.02")).Data.ID,
			""); !strings.Contains(answer, `"fee":0.001`) {
			t.Errorf("the fee: %s", answer)
		}
	})
}

// After a challenge that ended without a withdrawal the same request starts another one.
func TestApprovalStartsAgain(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		a := o.started(o.owned("w"))
		o.e.Skip(11 * time.Minute)
		b := o.started(o.owned("w"))
		if status, _, answer := o.complete(a); status != 410 || b.Challenge.ChallengeID == a.Challenge.ChallengeID {
			t.Errorf("the expired challenge: %d %s", status, answer)
		}
		for range 5 { // of the ten wrong values that close a challenge
			for _, m := range b.Challenge.MethodList {
				o.Send("POST /auth/2fa/challenge/complete", fmt.Sprintf(`{"methodId":%q,"method":%q,"value":"000000"}`, m.ID,
					m.Name), "p-auth", b.header.Get("p-auth"))
			}
		}
		if status, _, answer := o.complete(b); status != 409 {
			t.Fatalf("a closed challenge: %d %s", status, answer)
		}
		c := o.started(o.owned("w"))
		for i := range 5 { // beyond the five that may be open
			o.started(o.owned(fmt.Sprint("other", i), "amount", "0.02"))
		}
		if status, _, answer := o.complete(c); status != 409 {
			t.Fatalf("a superseded challenge: %d %s", status, answer)
		}
		if got := o.ask(o.owned("w", "amount", "0.3")); got.status != 409 {
			t.Errorf("another body: %s", got.answer)
		}
		o.ends(o.started(o.owned("w")), "")
		o.has("kim", "2", "0.101")

		// Its rows are gone, as after a purge.
		d := o.started(o.owned("purged"))
		o.e.Skip(11 * time.Minute)
		storetest.Must(t, o.db.InTx(t.Context(), func(ctx context.Context) error {
			_, err := o.db.Conn(ctx).NewDelete().Table("challenge").Where("id = ?", d.Challenge.ChallengeID).Exec(ctx)
			return err
		}))
		o.ends(o.started(o.owned("purged")), "")
	})
}

// entry adds an address to the book of a user.
func (o *integrationOffice) entry(t *testing.T, userID, to string) (entry int64) {
	t.Helper()
	storetest.Must(t, o.db.InTx(t.Context(), func(ctx context.Context) (err error) {
		p, now := o.pair(), o.service.Now()
		books := moneystore.NewAddressBooks(o.db)
		if _, err = books.Hold(ctx, userID); err == nil {
			entry, err = books.Insert(ctx, userID, addressbook.Entry{Name: "n", Address: to, CurrencyID: p.CurrencyID,
				NetworkID: p.NetworkID, CreatedAt: now, AddressAt: now})
		}
		return err
	}))
	return entry
}

// readdress changes the address of an entry.
func (o *integrationOffice) readdress(t *testing.T, userID string, entry int64, to string) {
	t.Helper()
	storetest.Must(t, o.db.InTx(t.Context(), func(ctx context.Context) error {
		books := moneystore.NewAddressBooks(o.db)
		book, err := books.Hold(ctx, userID)
		if err != nil {
			return err
		}
		for _, e := range book {
			if e.ID == entry {
				e.Address = to
				return books.Replace(ctx, userID, e)
			}
		}
		return fmt.Errorf("no entry %d", entry)
	}))
}

// fee sets what a withdrawal of BTC costs.
func (o *integrationOffice) fee(t *testing.T, fee string) {
	t.Helper()
	store := kit.NewParameters(o.db)
	storetest.Must(t, o.db.InTx(t.Context(), func(ctx context.Context) error {
		return parameter.Fee.Change(ctx, store, func(parameter.Fees) (parameter.Fees, error) {
			return parameter.Fees{"BTC": amount.Must(fee)}, nil
		})
	}))
	storetest.Must(t, o.service.Parameters.Reload(t.Context()))
}

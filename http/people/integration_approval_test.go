package people_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/transaction"
	"castellan/http/apitest"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
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
		if n := persistencetest.Count(t, o.db, "challenge"); n != 1 || o.e.SentAll() != 2 {
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
		storetest.Equal(t, string(o.ends(a, "").ExecResult.Data), string(done.ExecResult.Data), "the completion again")
		storetest.Equal(t, o.ask(o.owned("w1", "amount", "0.2")).status, 409, "another body after the execution")
		o.As("admin").Wants("POST /admin/withdrawals/"+made.Data.ID+"/cancel", `{}`, 200, strings.Replace(
			record(made.Data.ID, "w1", "cancelled", 12, "null", "null"), "12:00:00", "12:00:10", 1))
		o.has("kim", "2", "0")
		o.ends(a, "")
		o.e.Skip(24 * time.Hour)
		if got := o.ask(o.owned("w1")); got.Data == nil || got.Data.ID != made.Data.ID || got.Data.Status != "cancelled" {
			t.Errorf("after the cancellation: %s", got.answer)
		}
		o.has("kim", "2", "0")
		storetest.Equal(t, persistencetest.Count(t, o.db, "challenge"), 1, "challenges")
		for act, actor := range map[string]string{"WITHDRAWAL_START": "service:wallet", "WITHDRAWAL_REQUEST": "kim"} {
			n := persistencetest.Count(t, o.db, "audit", "action = '"+act+"'", "actor_id = '"+actor+"'", "user_id = 'kim'")
			storetest.Equal(t, n, 1, "rows of", act, "by", actor)
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
		proof := storetest.Value(o.e.PAuth("some challenge", now.Add(time.Hour)))(t)
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
		storetest.Equal(t, o.ask(o.owned("x", "userId", `"kim"`)).code, "INVALID_FIELD userToken", "user and token")
		// An administrator is bound by the permissions of the token's user.
		o.As("clerk").Wants(requests, o.owned("x", "userToken", `"admin"`), 403, "FORBIDDEN")
		// The call of an administrator waits for a second person. Then it cannot start the challenge of the owner.
		_, answer := o.As("admin").Call(requests, o.owned("x"))
		storetest.Equal(t, apitest.Refusal(answer), "INVALID_FIELD userToken", "with a token of the owner")
		o.As("admin").Wants(requests, withBody("x", "userId", `"kim"`), 202, "")
		o.has("kim", "2", "0")
		for _, table := range []string{"integration_claim", "challenge"} {
			storetest.Equal(t, persistencetest.Count(t, o.db, table), 0, table)
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
			storetest.Equal(t, o.ask(o.owned("free", c.field, c.value)).code, c.want)
		}
		o.user("bare", func(*user.User) {})
		bare := o.ask(o.owned("free", "userToken", `"`+o.token("bare", "s1")+`"`))
		if bare.status != 409 || bare.code != "MFA_NOT_AVAILABLE" {
			t.Errorf("an owner without a factor: %s", bare.answer)
		}
		storetest.Equal(t, persistencetest.Count(t, o.db, "integration_claim"), 0, "claims of refused requests")

		kim := func(set func(u *user.User)) func() {
			return func() {
				u := storetest.Value(account.NewUsers(o.db).Get(t.Context(), "kim"))(t)
				set(&u)
				storetest.Must(t, o.db.Commit(t.Context(), user.SetAMLStatus{UserID: "kim", Status: u.AMLStatus}))
			}
		}
		entry := o.entry("kim", address1)
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
		storetest.Equal(t, o.ask(o.owned("w", "amount", "0.3")).status, 409, "another body")
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

// Of equal requests at the same time one starts a challenge; of completions at the same time
// one makes the withdrawal; the limit holds over challenges that are completed together.
func TestApprovalRaces(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		var mu sync.Mutex
		ids, last := map[string]int{}, approval{}
		storetest.Race(t, 8, fault.InvalidState, func(int) error {
			a := o.ask(o.owned("one"))
			mu.Lock()
			defer mu.Unlock()
			if a.Challenge == nil {
				return fmt.Errorf("%d %s", a.status, a.answer)
			}
			ids[a.Challenge.ChallengeID]++
			last = a
			return nil
		})
		if len(ids) != 1 || o.e.SentAll() != 2 {
			t.Fatalf("challenges %v, %d codes", ids, o.e.SentAll())
		}
		outcomes := map[string]int{}
		storetest.Race(t, 8, fault.InvalidState, func(int) error {
			status, got, answer := o.complete(last)
			mu.Lock()
			defer mu.Unlock()
			if status != 200 {
				return fmt.Errorf("%d %s", status, answer)
			}
			outcomes[string(got.ExecResult.Data)]++
			return nil
		})
		if n := persistencetest.Count(t, o.db, "withdrawal_queue"); n != 1 || len(outcomes) != 1 {
			t.Errorf("%d withdrawals, outcomes %v", n, outcomes)
		}
		o.has("kim", "2", "0.101")

		all := make([]approval, 5) // 0.1 of 1 BTC a day is used
		for i := range all {
			all[i] = o.started(o.owned(fmt.Sprint("many", i), "amount", "0.3"))
		}
		codes := map[string]int{}
		storetest.Race(t, len(all), fault.InvalidState, func(i int) error {
			status, got, answer := o.complete(all[i])
			mu.Lock()
			defer mu.Unlock()
			if status != 200 {
				return fmt.Errorf("%d %s", status, answer)
			}
			codes[got.ExecResult.Code]++
			return nil
		})
		if codes[""] != 3 || codes["LIMIT_EXCEEDED"] != 2 {
			t.Errorf("outcomes %v", codes)
		}
		o.has("kim", "2", "1.004")
	})
}

// Of two challenges of one external id, the one that the id is bound to makes the withdrawal.
// That also holds when the other is carried out at the same time, or while the id is bound.
func TestApprovalsOfOneExternalID(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		service := &transaction.Approvals{Withdrawals: o.service, Engine: o.e.Starter,
			Account: o.e.Account}
		execute := func(a approval) error {
			c := storetest.Value(o.e.Challenges.Load(t.Context(), a.Challenge.ChallengeID))(t)
			sealed, _, err := o.e.Challenges.Sealed(t.Context(), c.ID)
			storetest.Must(t, err)
			command := storetest.Value(o.e.Ring.Open(sealed, challenge.CommandData(c.ID)))(t)
			for { // an engine tries again what is busy
				err := o.db.InTx(t.Context(), func(ctx context.Context) error {
					_, err := service.Execute(ctx, challenge.Execution{Challenge: c, Command: command, Now: o.service.Now()})
					return err
				})
				if fault.CodeOf(err) != fault.Unavailable {
					return err
				}
			}
		}
		old := o.started(o.owned("w", "amount", "0.02"))
		o.e.Skip(11 * time.Minute)
		bound := o.started(o.owned("w", "amount", "0.02"))
		if won := storetest.Race(t, 8, fault.InvalidState, func(i int) error {
			return execute([]approval{old, bound}[i%2])
		}); won != 1 {
			t.Errorf("%d withdrawals", won)
		}
		o.has("kim", "2", "0.021")
		storetest.Wants(t, execute(old), fault.InvalidState, "the old challenge")
		for n := range 6 { // the old challenge was completed in time, but is carried out late
			name := fmt.Sprint("late", n)
			request := o.owned(name, "amount", "0.02")
			old := o.started(request)
			o.e.Skip(11 * time.Minute)
			request = o.owned(name, "amount", "0.02")
			var answers [2]approval
			var refusal error
			var wait sync.WaitGroup
			wait.Go(func() { refusal = execute(old) })
			for i := range answers {
				wait.Go(func() { answers[i] = o.ask(request) })
			}
			wait.Wait()
			for _, a := range answers {
				if a.status != 200 || refusal != nil && a.Data != nil {
					t.Errorf("%s: %s, after %v", name, a.answer, refusal)
				}
			}
			made := persistencetest.Count(t, o.db, "withdrawal_queue", "external_id = '"+name+"'")
			if code := fault.CodeOf(refusal); code != "" && code != fault.InvalidState || (made == 1) != (code == "") {
				t.Errorf("%s: %d withdrawals, %v", name, made, refusal)
			}
			storetest.Equal(t, o.ask(request).Data != nil, refusal == nil, name)
		}
	})
}

// The owner is shown what is approved.
func TestApprovalShowsTheOrder(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		o.service.Tags = address.Tags{"BTC": address.NumberTag}
		a := o.started(o.owned("w", "addressTag", `"104723"`))
		sealed, _, err := o.e.Challenges.Sealed(t.Context(), a.Challenge.ChallengeID)
		storetest.Must(t, err)
		command := storetest.Value(o.e.Ring.Open(sealed, challenge.CommandData(a.Challenge.ChallengeID)))(t)
		got := (&transaction.Approvals{}).Describe(command)
		want := []challenge.Detail{{Key: "amount", Value: "0.1 BTC (BTC)"}, {Key: "fee", Value: "0.001 BTC"},
			{Key: "address", Value: address1 + " 104723"}, {Key: "tag", Value: "104723"}, {Key: "reference", Value: "w"}}
		storetest.Same(t, got, want)
		claim := storetest.Value(o.service.Claims.Claim(t.Context(), integration.Withdrawals, "w"))(t)
		storetest.Equal(t, claim.RecordID, "challenge/"+a.Challenge.ChallengeID, "bound to")
	})
}

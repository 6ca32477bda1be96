package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/money/transaction"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/domain/proof/stepup"
	"castellan/http/apitest"
	"castellan/http/apitest/flowtest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpchallenge "castellan/http/factor/challenge"
	httpintegration "castellan/http/people/integration"
	"castellan/http/rest"
	"castellan/persistence/kit"
	moneystore "castellan/persistence/money"
)

// integrationOffice is the site with the engine of challenges: owners approve withdrawals. The clock of the engine is
// that of the site.
type integrationOffice struct {
	*integrationSite
	e *flowtest.Engine
}

// Verify accepts the tokens of the issuer beside those of apitest.
func (o *integrationOffice) Verify(class token.Class, raw string) (token.Claims, error) {
	c, err := apitest.Tokens{}.Verify(class, raw)
	if class != token.XAuth || len(raw) > 40 {
		return o.e.Issuer.Verify(class, raw)
	}
	return c, err
}

// approvals runs a test with owners who approve: kim has 2 BTC, a phone and a mail address.
func approvals(t *testing.T, test func(t *testing.T, o *integrationOffice)) {
	t.Helper()
	withdrawals(t, func(s *integrationSite) {
		s.user("kim", func(u *user.User) {
			u.CountryCode, u.Phone, u.Email = "90", "+905320000001", "kim@example.invalid"
		})
		e := flowtest.Over(s.t, s.db, s.service.Now())
		e.Config.Caps, e.Config.PrefixHour, e.Config.DialDay = stepup.Caps{}, 0, nil
		e.Start()
		o := &integrationOffice{integrationSite: s, e: e}
		s.service.Now, s.service.Ledger.Now, s.service.Limits.Now = e.Now, e.Now, e.Now
		g := apitest.Guards()
		g.Tokens, g.Live, g.Geo, g.Tenant = o, e.Revoked.Live, e.Geo(), "default"
		g.Service = func(header string, _ netip.Addr) (servicekey.Client, error) {
			if header != "wallet.secret" {
				return servicekey.Client{}, fault.New(fault.Unauthenticated, "no key")
			}
			return servicekey.Client{Name: "wallet", Role: "wallet"}, nil
		}
		g.JudgeRole = func(string, string, string) resource.Verdict { return resource.Verdict{Permission: resource.Allow} }
		group := httpintegration.Withdrawals{Service: s.service, Numbers: numbers,
			Approvals: &transaction.Approvals{Withdrawals: s.service, Engine: e.Starter, Account: e.Account},
			Owner: func(ctx context.Context, who rest.Caller, raw string) (string, challenge.Starter, error) {
				c, err := g.Session(ctx, raw)
				from := auth.From(who)
				from.SessionID, from.IP = c.SessionID, "203.0.113.7"
				return c.Subject, from, err
			}}
		e.Actions.Register(group.Action())
		complete := apitest.Endpoints(slices.DeleteFunc(httpchallenge.Group{Answers: e.Answers, Now: e.Now}.Endpoints(),
			func(e rest.Endpoint) bool { return e.Path != "/auth/2fa/challenge/complete" }))
		repeats := &auth.Idempotent{Store: kit.NewIdempotency(s.db), Commit: s.db, Now: e.Now, Ring: e.Ring}
		s.Site = apitest.Serve(s.t, edge.Options{Guards: g.Table(), Authorize: g.Authorize, Now: e.Now,
			Logger: slog.New(slog.DiscardHandler), Idempotency: repeats, Timeout: time.Minute,
			FourEyes: map[string]bool{requests: true}, SecondPerson: paired{auth.SecondPerson{Commit: s.db}}}, group,
			complete).As("anonymous")
		test(s.t, o)
	})
}

// paired answers the calls of accounts, which wait for a second person.
type paired struct{ auth.SecondPerson }

func (paired) Stand(context.Context, edge.Captured, []byte, string) (any, error) {
	return rest.Data[map[string]string]{Data: map[string]string{"approvalId": "1",
		"expiresAt": "2026-01-01T00:00:00.000Z"}}, nil
}

// token is an x-auth token of a session of a user.
func (o *integrationOffice) token(userID, sessionID string, edit ...func(*token.Claims)) string {
	o.t.Helper()
	now := o.service.Now()
	c := token.Claims{Class: token.XAuth, ID: id.New(now), Subject: userID, SessionID: sessionID, Roles: []string{"user"},
		AMR: []string{"pwd"}, AuthTime: now, IssuedAt: now, ExpiresAt: now.Add(30 * time.Minute)}
	for _, e := range edit {
		e(&c)
	}
	return storetest.Value(o.e.Issuer.Sign(c))(o.t)
}

// owned is a request of kim under an external id, with fields replaced.
func (o *integrationOffice) owned(externalID string, with ...string) string {
	return withBody(externalID, append([]string{"userId", "", "userToken", `"` + o.token("kim", "s1") + `"`}, with...)...)
}

// approval is an answer of a request.
type approval struct {
	status int
	code   string
	header http.Header
	answer string

	Data      *struct{ ID, Status string }
	Challenge *struct {
		ChallengeID, Status string
		Expire              int64
		MethodList          []struct {
			ID, Name string
			Expire   int64
		}
	}
}

// ask sends a request as the wallet.
func (o *integrationOffice) ask(body string) (a approval) {
	res, answer := o.Send(requests, body, "service-auth", "wallet.secret")
	a.status, a.header, a.answer = res.StatusCode, res.Header, answer
	if a.status != 200 {
		a.code = apitest.Refusal(answer)
		return a
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		o.t.Errorf("%s: %v", answer, err)
	}
	return a
}

// started is a request that starts a challenge.
func (o *integrationOffice) started(body string) approval {
	o.t.Helper()
	a := o.ask(body)
	if a.status != 200 || a.Challenge == nil || a.Data != nil || a.header.Get("p-auth") == "" {
		o.t.Fatalf("%d %s", a.status, a.answer)
	}
	return a
}

// outcome is the answer of the last completion.
type outcome struct {
	Action     string
	ExecResult struct {
		Success bool
		Code    string
		Data    json.RawMessage
	}
}

// complete answers the SMS of a challenge with its code.
func (o *integrationOffice) complete(a approval) (status int, got outcome, answer string) {
	for _, m := range a.Challenge.MethodList {
		if m.Name != "SMS" {
			continue
		}
		res, answer := o.Send("POST /auth/2fa/challenge/complete", fmt.Sprintf(`{"methodId":%q,"method":"SMS","value":%q}`,
			m.ID, o.e.Sent(m.ID)), "p-auth", a.header.Get("p-auth"))
		if res.StatusCode == 200 {
			if err := json.Unmarshal([]byte(answer), &got); err != nil {
				o.t.Errorf("%s: %v", answer, err)
			}
		}
		return res.StatusCode, got, answer
	}
	o.t.Errorf("no SMS in %s", a.answer)
	return 0, got, ""
}

// ends completes a challenge whose execution ends with a code; "" is a success.
func (o *integrationOffice) ends(a approval, code string) outcome {
	o.t.Helper()
	status, got, answer := o.complete(a)
	if status != 200 || got.Action != "WITHDRAW" || got.ExecResult.Success != (code == "") || got.ExecResult.Code != code {
		o.t.Fatalf("%d %s, want %q", status, answer, code)
	}
	return got
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
		return parameter.Fee.Change(ctx, store, fees(fee))
	}))
	storetest.Must(t, o.service.Parameters.Reload(t.Context()))
}

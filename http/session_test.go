package httpapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/client"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/resource"
	"castellan/domain/session/session"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
	httpsession "castellan/http/session/session"
	"castellan/persistence"
	"castellan/persistence/account"
	sessionstore "castellan/persistence/session"
)

const loginSecret = "kedi7şeker"

// loginSite is the section over a real database, with the guards and the tokens
// of the program, and an engine whose challenges are complete when asked.
type loginSite struct {
	*apitest.Site
	t       *testing.T
	db      *persistence.DB
	logins  *session.Service
	hasher  *password.Hasher
	started []challenge.StartRequest
}

func (s *loginSite) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	if r.Account.Phone == "" {
		return challenge.Started{}, fault.New(fault.MFANotAvailable, "not enough methods")
	}
	s.started = append(s.started, r)
	now := time.Now()
	c := challenge.Challenge{ID: id.New(now), UserID: r.Account.UserID, Action: r.Action, CreatedAt: now.UnixMilli(),
		ExpiresAt: now.Add(10 * time.Minute).UnixMilli(),
		Body: challenge.Body{CV: r.Account.CV, SV: r.Account.SV, Starter: r.Starter,
			Methods: []challenge.Method{{ID: "m1", Name: challenge.SMS, LifetimeMs: 120_000, RenewMs: 60_000,
				Hint: "+90 *** ** 01", Order: 1}}}}
	return challenge.Started{Challenge: c, PAuth: "the p-auth"}, s.db.Commit(ctx, r.With...)
}

func loginBoth(t *testing.T, test func(t *testing.T, s *loginSite)) {
	t.Helper()
	t.Parallel()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) { test(t, newLoginSite(t, db)) })
}

func newLoginSite(t *testing.T, db *persistence.DB) *loginSite {
	t.Helper()
	ctx := t.Context()
	s := &loginSite{t: t, db: db}
	var err error
	s.hasher, err = password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1},
		Slots: 1, Queue: 10})
	storetest.Must(t, err)
	issuer := token.NewIssuer(keyringtest.Ring(t, nil), "castellan", "default", time.Now, 100)
	s.logins = &session.Service{Users: account.NewUsers(db), Sessions: sessionstore.NewSessions(db), Hasher: s.hasher,
		Guards: password.NewGuards(account.NewPasswordGuards(db), db, password.DefaultGuardRules(), time.Now),
		Spray:  password.NewSpray(ratelimit.NewTable(nil), 120, nil, time.Now), Starts: s,
		Commit: db, Tokens: issuer,
		Revocations: session.NewRevocations(30*time.Minute, time.Now), Conceal: strings.ToUpper, TokenTTL: 30 * time.Minute,
		Former: func(string) []string { return nil }, Place: func(from client.Origin) string { return from.Site },
		Admits: func(user.User, challenge.Starter) bool { return true }, Now: time.Now}
	guards := auth.Guards{Tokens: issuer, Tenant: "default", Feed: &changetest.Feed{}, Live: s.logins.Revocations.Live,
		Judge: func(string, string, string) resource.Verdict { return resource.Verdict{} }}
	s.Site = apitest.Serve(t, edge.Options{Guards: guards.Table(), Authorize: guards.Authorize}, httpsession.Group{
		Service:     s.logins,
		CountryName: func(code, language string) string { return code + " in " + language }}).As("anonymous")
	hash, err := s.hasher.Hash(ctx, loginSecret)
	storetest.Must(t, err)
	for i := range 3 {
		u := user.New(id.New(time.Now()), time.Now())
		u.CountryCode, u.Phone, u.Email = "90", fmt.Sprintf("+90532000000%d", i), fmt.Sprintf("user%d@example.com", i)
		if i == 2 {
			u.Phone = "" // the engine finds no method for it
		}
		storetest.Must(t, db.Commit(ctx, user.Add{User: u, PasswordHash: hash}))
	}
	return s
}

// login logs the n-th account in and returns its token and session.
func (s *loginSite) login(n int, headers ...string) (xauth, sid string) {
	s.t.Helper()
	res, answer := s.Send("POST /auth/login",
		fmt.Sprintf(`{"email":"user%d@example.com","password":"%s"}`, n, loginSecret), headers...)
	if res.StatusCode != 200 {
		s.t.Fatal(answer)
	}
	last := s.started[len(s.started)-1]
	now := time.Now()
	r, ws, err := s.logins.LoginAction().Build(s.t.Context(), challenge.Execution{Now: now, Command: last.Command,
		Challenge: challenge.Challenge{UserID: last.Account.UserID,
			Body: challenge.Body{CV: last.Account.CV, SV: last.Account.SV, Starter: last.Starter}}})
	storetest.Must(s.t, err)
	storetest.Must(s.t, s.db.Commit(s.t.Context(), ws...))
	return r.Headers["x-auth"], r.SessionID
}

func TestLogin(t *testing.T) {
	loginBoth(t, func(t *testing.T, s *loginSite) {
		ok := regexp.MustCompile(`^{"challenge":{"challengeId":"[0-9A-Z]{26}","ts":\d{13},"status":"PENDING",` +
			`"expire":600,"methodList":` +
			`\[{"id":"m1","name":"SMS","expire":120,"renewStart":60,"hint":"\+90 \*\*\* \*\* 01"}\]}}$`)
		for _, body := range []string{
			`{"countryCode":"90","phoneNumber":"5320000001","password":"` + loginSecret + `"}`,
			`{"countryCode":"+90","phoneNumber":"0532 000 00 01","password":"` + loginSecret + `","deviceId":"dev-1","other":1}`,
			`{"email":"USER1@example.com","password":"` + loginSecret + `"}`,
		} {
			res, answer := s.Send("POST /auth/login", body, "device-brand", "Acme", "accept-language", "tr")
			if res.StatusCode != 200 || !ok.MatchString(answer) || res.Header.Get("p-auth") != "the p-auth" ||
				res.Header.Get("x-auth") != "" {
				t.Errorf("%s: %d %s, p-auth %q", body, res.StatusCode, answer, res.Header.Get("p-auth"))
			}
		}
		if r := s.started[0]; r.Starter.Brand != "Acme" || r.Starter.Language != "tr" || r.Starter.RequestID == "" ||
			r.Action != "LOGIN" {
			t.Errorf("starter %+v", r.Starter)
		}
		for body, want := range map[string]string{
			// every missing field (D-GEN-09)
			`{}`:                           "INVALID_FIELD password countryCode phoneNumber email",
			`{"password":""}`:              "INVALID_FIELD countryCode phoneNumber email password",
			`{"email":"a@b.co"}`:           "INVALID_FIELD password",
			`{"phoneNumber":"5320000001"}`: "INVALID_FIELD password countryCode",
			// what could not be read is not called missing
			`{"email":5}`:                                                    "INVALID_FIELD email",
			`{"countryCode":"90","password":"x"}`:                            "INVALID_FIELD phoneNumber",
			`{"email":"a@b.co","countryCode":"90","password":"x"}`:           "INVALID_FIELD email",
			`{"email":"nobody","password":"x"}`:                              "INVALID_FIELD email",
			`{"countryCode":"TR","phoneNumber":"5320000001","password":"x"}`: "INVALID_FIELD countryCode",
			`{"countryCode":"90","phoneNumber":"call me","password":"x"}`:    "INVALID_FIELD phoneNumber",
			// and every wrong one
			`{"countryCode":"TR","phoneNumber":"call me","password":""}`: "INVALID_FIELD countryCode phoneNumber " +
				"password",
			`{"email":"nobody","password":""}`: "INVALID_FIELD email password",
		} {
			s.Wants("POST /auth/login", body, 400, want)
		}
		_, wrong := s.Send("POST /auth/login", `{"email":"user1@example.com","password":"wrong"}`, "x-request-id", "same")
		_, unknown := s.Send("POST /auth/login", `{"countryCode":"90","phoneNumber":"5329999999","password":"wrong"}`,
			"x-request-id", "same")
		id := regexp.MustCompile(`"requestId":"[^"]*"`)
		if a, b := id.ReplaceAllString(wrong, ""), id.ReplaceAllString(unknown, ""); a != b ||
			!strings.Contains(a, "INVALID_CREDENTIALS") {
			t.Errorf("refusals differ:\n%s\n%s", a, b)
		}
		s.Wants("POST /auth/login", `{"email":"user2@example.com","password":"`+loginSecret+`"}`, 409, "MFA_NOT_AVAILABLE")
		for range 9 {
			s.Wants("POST /auth/login", `{"email":"user1@example.com","password":"wrong"}`, 401, "INVALID_CREDENTIALS")
		}
		res, answer := s.Send("POST /auth/login", `{"email":"user1@example.com","password":"`+loginSecret+`"}`)
		if after := res.Header.Get("Retry-After"); apitest.Refusal(answer) != "RATE_LIMITED" || len(after) != 3 ||
			after > "900" {
			t.Errorf("%s, Retry-After %q", answer, after)
		}
		var places []*password.Place
		full := password.Caller{Known: true}
		for p, err := s.hasher.Admit(full); err == nil; p, err = s.hasher.Admit(full) {
			places = append(places, p)
		}
		res, answer = s.Send("POST /auth/login", `{"email":"user0@example.com","password":"`+loginSecret+`"}`)
		if apitest.Refusal(answer) != "OVERLOADED" || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s, Retry-After %q", answer, res.Header.Get("Retry-After"))
		}
		for _, p := range places {
			p.Leave()
		}
	})
}

func TestSessions(t *testing.T) {
	loginBoth(t, func(t *testing.T, s *loginSite) {
		first, sid1 := s.login(1, "device-brand", "Acme", "device-model", "X", "device-desc", "my phone")
		second, sid2 := s.login(1)
		foreign, sid3 := s.login(0)

		res, answer := s.Send("GET /auth/sessions", "", "x-auth", second, "accept-language", "tr")
		date := `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`
		want := regexp.MustCompile(`^\[{"sessionId":"` + sid2 + `","createdAt":` + date + `,"lastSeenAt":` + date +
			`,"ip":"0\.0\.0\.0","countryName":null,` +
			`"deviceBrand":"","deviceModel":"","deviceDesc":"","current":true},` +
			`{"sessionId":"` + sid1 + `",.*"deviceBrand":"Acme","deviceModel":"X","deviceDesc":"my phone","current":false}\]$`)
		if res.StatusCode != 200 || !want.MatchString(answer) {
			t.Errorf("%d %s", res.StatusCode, answer)
		}

		for _, body := range []string{`{}`, `{"all":false}`, `{"all":true,"sessionId":"` + sid1 + `"}`} {
			s.As(second).Wants("DELETE /auth/sessions", body, 400, "INVALID_FIELD sessionId")
		}
		s.As(second).Wants("DELETE /auth/sessions", `{"sessionId":"`+sid3+`"}`, 404, "RECORD_NOT_FOUND")
		s.As(second).Wants("DELETE /auth/sessions", `{"sessionId":"01NONE"}`, 404, "RECORD_NOT_FOUND")
		s.As(second).Wants("DELETE /auth/sessions", `{"sessionId":"`+sid1+`"}`, 200, `{"data":{"ended":1}}`)
		s.As(second).Wants("DELETE /auth/sessions?sessionId="+sid1, "", 404, "RECORD_NOT_FOUND")
		s.As(first).Wants("GET /auth/sessions", "", 401, "TOKEN_REVOKED")

		third, _ := s.login(1)
		s.As(third).Wants("DELETE /auth/sessions?all=true", "", 200, `{"data":{"ended":2}}`)
		for _, x := range []string{second, third} {
			s.As(x).Wants("GET /auth/sessions", "", 401, "TOKEN_REVOKED")
		}
		s.As(foreign).Wants("POST /auth/logout", "", 200, `{}`)
		s.As(foreign).Wants("POST /auth/logout", "", 401, "TOKEN_REVOKED")

		fourth, _ := s.login(1)
		if res, answer := s.Send("GET /auth/sessions", "", "x-auth", fourth); res.StatusCode != 200 ||
			strings.Count(answer, "sessionId") != 1 {
			t.Errorf("after the next login: %d %s", res.StatusCode, answer)
		}
	})
}

func TestCountryNames(t *testing.T) {
	loginBoth(t, func(t *testing.T, s *loginSite) {
		x, _ := s.login(1)
		now := time.Now()
		storetest.Must(t, s.db.Commit(t.Context(), session.Add{CV: 1, Session: session.Session{ID: "other",
			UserID: s.started[0].Account.UserID, Country: "TR", CreatedAt: now,
			LastSeenAt: now, ExpiresAt: now.Add(time.Minute), SV: 1}}))
		if _, answer := s.Send("GET /auth/sessions", "", "x-auth", x, "accept-language", "ar"); !strings.Contains(answer,
			`"countryName":"TR in ar"`) {
			t.Error(answer)
		}
		if r := (httpsession.Group{}).Endpoints(); len(r) != 6 || !r[0].Extension || r[0].Audience != rest.Public ||
			r[5].Audience != rest.SelfUser {
			t.Errorf("%d endpoints", len(r))
		}
	})
}

var jwt = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)

// Only a login and the renewal by a key give an x-auth that ends later than the one that was sent (D-AUTH-15). All
// endpoints are called, and every token in their answers is read.
func TestOnlyLoginAndRenewalExtendSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := start(t, dir, databases["sqlite"](t))
	refreshes := func(e rest.Endpoint) bool {
		return e.Credential.TakesSession() && !e.Renewal && slices.Contains(e.Tokens, "x-auth")
	}
	all := l.tell(func(e rest.Endpoint, request string) string {
		if refreshes(e) { // a new token would end a second later
			time.Sleep(1100 * time.Millisecond)
		}
		return request
	})
	gave := map[string]bool{}
	for _, x := range all {
		texts := []string{string(x.answer.Body)}
		for _, values := range x.answer.Header {
			texts = append(texts, values...)
		}
		for _, text := range texts {
			for _, raw := range jwt.FindAllString(text, -1) {
				got := claims(t, raw)
				if got["aud"] != "x-auth" {
					continue
				}
				if gave[x.Key()] = true; x.Renewal || !x.Credential.TakesSession() {
					continue // the completed challenge was a login
				}
				sent := claims(t, x.headers["x-auth"])
				if !slices.Contains(x.Tokens, "x-auth") || got["exp"].(float64) > sent["exp"].(float64) ||
					got["sid"] != sent["sid"] || got["auth_time"] != sent["auth_time"] {
					t.Errorf("%s gave %v for %v", x.Key(), got, sent)
				}
			}
		}
	}
	for _, want := range []string{"POST /auth/2fa/challenge/complete", "GET /auth/2fa/challenge/result",
		"POST /auth/sessions/renew", "POST /user/confirm-user-identity"} {
		if !gave[want] {
			t.Errorf("%s gave no token", want)
		}
	}
}

// claims are those of a token.
func claims(t testing.TB, raw string) (c map[string]any) {
	t.Helper()
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		t.Fatalf("not a token: %q", raw)
	}
	b := storetest.Value(base64.RawURLEncoding.DecodeString(parts[1]))(t)
	storetest.Must(t, json.Unmarshal(b, &c))
	return c
}

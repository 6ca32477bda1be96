package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/account/user/usertest"
	delivered "castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httptotp "castellan/http/proof/totp"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/kit"
	"castellan/persistence/proof"
)

// totpSite is the section over a real database, beside two test endpoints that
// ask for the current code.
type totpSite struct {
	*apitest.Site
	t       *testing.T
	totps   *totp.Service
	db      *persistence.DB
	now     atomic.Int64 // ms
	id      string
	started []challenge.StartRequest
	ran     int
	broken  bool // the test endpoints fail after they were reached
	secret  string
	codes   []string
}

func (s *totpSite) Start(_ context.Context, r challenge.StartRequest) (challenge.Started, error) {
	s.started = append(s.started, r)
	return challenge.Started{Challenge: challenge.Challenge{ID: "c1", CreatedAt: 1, ExpiresAt: 600_001},
		PAuth: "the p-auth"}, nil
}

func (s *totpSite) Account(ctx context.Context, userID string) (challenge.Account, error) {
	u, err := account.NewUsers(s.db).Get(ctx, userID)
	return u.Account(), err
}

// Notice fails: no account can be reached.
func (s *totpSite) Notice(challenge.Account, delivered.Kind, delivered.Values, string) []commit.Write {
	return nil
}

func totpBoth(t *testing.T, test func(t *testing.T, s *totpSite)) {
	t.Helper()
	t.Parallel()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) { test(t, newTOTPSite(t, db)) })
}

type totpNote struct {
	Note *string `json:"note"`
}

func newTOTPSite(t *testing.T, db *persistence.DB) *totpSite {
	t.Helper()
	storetest.Must(t, db.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2)))
	s := &totpSite{t: t, db: db, id: usertest.Sample(1).ID}
	s.now.Store(1_700_000_010_000)
	ring := keyringtest.Ring(t, time.Now)
	s.totps = &totp.Service{Store: proof.NewTOTP(db), Users: account.NewUsers(db),
		Budgets: factor.NewChallenges(db), Commit: db, Ring: ring, Notices: s,
		Rules: challenge.DefaultRules(), Recovery: totp.Limit{Attempts: 5, Window: 15 * time.Minute}, Issuer: "Castellan",
		Now: func() time.Time { return time.UnixMilli(s.now.Load()) }}
	run := func(context.Context, rest.Caller, totpNote) (rest.Data[string], error) {
		s.ran++
		if s.broken {
			return rest.Data[string]{}, errors.New("broken")
		}
		return rest.Data[string]{Data: "done"}, nil
	}
	s.Site = apitest.Serve(t, edge.Options{Starter: auth.Starter{Starts: s, Accounts: s}, Verify: auth.Verify(s.totps),
		Idempotency: &auth.Idempotent{Store: kit.NewIdempotency(db), Commit: db, Ring: ring, Now: time.Now}},
		httptotp.Group{Service: s.totps}, apitest.Endpoints{rest.Post("/test/verified", "", rest.User, run).Verified(),
			rest.Post("/test/once", "", rest.User, run).Verified().Idempotent()}).As(s.id)
	return s
}

// define gives the account an authenticator, as a completed challenge does.
func (s *totpSite) define() {
	s.t.Helper()
	ctx, a := s.t.Context(), s.totps.SetupAction()
	u, err := s.totps.Users.Get(ctx, s.id)
	storetest.Must(s.t, err)
	x := challenge.Execution{Challenge: challenge.Challenge{UserID: s.id, Body: challenge.Body{CV: u.CV}},
		Now: s.totps.Now()}
	x.Prepared, err = a.Prepare(ctx, x)
	storetest.Must(s.t, err)
	storetest.Must(s.t, s.db.InTx(ctx, func(ctx context.Context) error {
		r, err := a.Exec(ctx, x)
		var data struct {
			Base32        string
			RecoveryCodes []string
		}
		storetest.Must(s.t, json.Unmarshal(r.Data, &data))
		s.secret, s.codes = data.Base32, data.RecoveryCodes
		return err
	}))
}

func (s *totpSite) code(steps int64) string {
	s.t.Helper()
	d := storetest.Value(s.totps.Store.Get(s.t.Context(), s.id))(s.t)
	secret := storetest.Value(s.totps.Ring.Open(d.Sealed, totp.SecretData(d.UserID, d.ID)))(s.t)
	return totp.CodeAt(secret, totp.StepAt(s.totps.Now())+steps)
}

// wants makes a request and checks its status and the code of a refusal.
func (s *totpSite) wants(path, body string, status int, code string, headers ...string) string {
	s.t.Helper()
	got, text := s.Call("POST "+path, body, headers...)
	refused, _, _ := strings.Cut(apitest.Refusal(text), " ")
	if got != status || got != 200 && refused != code {
		s.t.Errorf("%s %s: %d %s, want %d %s", path, body, got, text, status, code)
	}
	return text
}

func TestSetupAndDeactivate(t *testing.T) {
	totpBoth(t, func(t *testing.T, s *totpSite) {
		s.wants("/auth/totp/deactivate", "", 409, "TOTP_NOT_DEFINED")
		storetest.Equal(t, len(s.started), 0, "a refused start began a challenge")
		text := s.wants("/auth/totp/setup", "", 200, "")
		storetest.Equal(t, text, `{"challenge":{"challengeId":"c1","ts":1,"status":"PENDING","expire":600,"methodList":[]}}`,
			"answer")
		if len(s.started) != 1 || s.started[0].Action != "TOTP_SETUP" || s.started[0].Account.UserID != s.id ||
			!s.started[0].Proven {
			t.Errorf("started %+v", s.started)
		}
		s.define()
		s.wants("/auth/totp/setup", `{"anything":1}`, 409, "TOTP_ALREADY_DEFINED")
		res, _ := s.Send("POST /auth/totp/deactivate", "")
		if res.StatusCode != 200 || res.Header.Get("p-auth") != "the p-auth" || len(s.started) != 2 ||
			s.started[1].Action != "TOTP_DEACTIVATE" || !s.started[1].Account.TOTP {
			t.Errorf("%d, started %+v", res.StatusCode, s.started)
		}
	})
}

func TestRecover(t *testing.T) {
	totpBoth(t, func(t *testing.T, s *totpSite) {
		s.wants("/auth/totp/recover", `{"recoveryCode":"abcde-fghij"}`, 409, "TOTP_NOT_DEFINED")
		s.define()
		for _, body := range []string{``, `{}`, `{"recoveryCode":""}`, `{"recoveryCode":"  "}`,
			`{"recoveryCode":"` + s.codes[0] + `","recovery_code":"` +
				s.codes[1] + `"}`} {
			s.wants("/auth/totp/recover", body, 400, "INVALID_FIELD")
		}
		for i, body := range []string{`{"recoveryCode":"` + s.codes[0] + `"}`,
			`{"recovery_code":"` + strings.ToUpper(s.codes[1]) + `"}`,
			`{"recoveryCode":"` + s.codes[2] + `","recovery_code":"` + s.codes[2] + `"}`} {
			var a map[string]string
			storetest.Must(t, json.Unmarshal([]byte(s.wants("/auth/totp/recover", body, 200, "")), &a))
			if len(a) != 5 || a["base32"] != s.secret || !strings.HasPrefix(a["otpAuthUrl"],
				"otpauth://totp/Castellan:user1@example.com?") ||
				!strings.Contains(a["otpAuthUrl"], s.secret) || !strings.HasPrefix(a["qrDataUrl"], "data:image/png;base64,") ||
				a["otp_auth_url"] != a["otpAuthUrl"] || a["qr_data_url"] != a["qrDataUrl"] {
				t.Errorf("answer %d: %v", i, a)
			}
		}
		s.wants("/auth/totp/recover", `{"recoveryCode":"`+s.codes[0]+`"}`, 422, "RECOVERY_CODE_INVALID")
	})
}

// D-AUTH-08, on an endpoint made for it.
func TestVerifiedEndpoint(t *testing.T) {
	totpBoth(t, func(t *testing.T, s *totpSite) {
		const path = "/test/verified"
		storetest.Contains(t, s.wants(path, `{}`, 403, "OTP_REQUIRED", "otp", "123456"), "set one up", "detail")
		s.define()
		s.wants(path, `{}`, 403, "OTP_REQUIRED")
		s.wants(path, `{"note":5}`, 400, "INVALID_FIELD", "otp", "nonsense") // fields come first
		storetest.Equal(t, s.ran, 0, "times the endpoint was reached")
		s.wants(path, `{}`, 200, "", "otp", s.code(-1))
		s.wants(path, `{}`, 200, "", "x-otp", " "+s.code(0)[:3]+" "+s.code(0)[3:])
		s.wants(path, `{"otp":"`+s.code(1)+`"}`, 200, "")
		for i, headers := range [][]string{{"otp", s.code(1)}, {"otp", s.code(-1)}, {"otp", "abcdef"},
			{"otp", s.code(0) + "0"}} {
			text := s.wants(path, `{}`, 422, "OTP_INVALID", headers...)
			storetest.Equal(t, strings.Contains(text, fmt.Sprintf(`"attemptsLeft":%d`, 9-i)), i < 2, "attempt", i, text)
		}
		storetest.Equal(t, s.ran, 3, "the endpoint was reached", "times")
		if status, _ := s.As(usertest.Sample(2).ID).Call("POST "+path, `{}`, "otp", s.code(2)); status != 403 {
			t.Errorf("another user: %d", status)
		}
	})
}

// Under an idempotency key the code is consumed outside of the transaction. A wrong code stays
// counted, a right code stays used even if the request fails, and a replay needs no code.
func TestVerifiedUnderAnIdempotencyKey(t *testing.T) {
	totpBoth(t, func(t *testing.T, s *totpSite) {
		const path = "/test/once"
		s.define()
		key := func(k string, more ...string) []string { return append(more, "idempotency-key", k) }
		for range 10 {
			s.wants(path, `{}`, 422, "OTP_INVALID", key("k1", "otp", s.code(50))...)
		}
		s.wants(path, `{}`, 429, "RATE_LIMITED", key("k1", "otp", s.code(0))...)
		s.now.Add((15 * time.Minute).Milliseconds())
		s.broken = true
		s.wants(path, `{}`, 500, "INTERNAL", key("k1", "otp", s.code(0))...)
		s.broken = false
		s.wants(path, `{}`, 422, "OTP_INVALID", key("k1", "otp", s.code(0))...)
		s.wants(path, `{}`, 200, "", key("k1", "otp", s.code(1))...)
		res, text := s.Send("POST "+path, `{}`, key("k1")...)
		if res.StatusCode != 200 || res.Header.Get("Idempotency-Replayed") != "true" || s.ran != 2 {
			t.Errorf("replay: %d %s, reached %d times", res.StatusCode, text, s.ran)
		}
	})
}

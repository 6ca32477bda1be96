package httpapi_test

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base32"
	"encoding/json"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"castellan/cmd/app"
	"castellan/config"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/registration"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/domain/proof/dpop"
	"castellan/domain/proof/totp"
	"castellan/http/apitest"
	"castellan/http/rest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
	"castellan/persistence/persistencetest"
)

// live is the whole program in development mode, with an administrator and a user
// who do what the examples of the table say (rest.Example).
type live struct {
	blackbox.Client
	t     testing.TB
	cfg   config.Config
	admin *person
	user  *person
	said  map[string]any // what an example answered, by the operation's id
	// The keys of the user's phone, which is registered, and of a tablet, which is not.
	phone, tablet crypto.Signer
	phoneID       string
	service       string // key of another service that may start payouts
	stop          func() // ends the program
}

// person is an account with what it holds at the moment.
type person struct {
	blackbox.Account
	xAuth, pAuth, otAuth string
	completed            string // the p-auth of the last challenge that is complete
	secret               []byte // of the authenticator
}

// databases are both kinds.
var databases = apitest.Databases

// oneDatabase is SQLite alone, for what is decided above the stores, which other tests try on both databases. make
// test-all runs it on both.
func oneDatabase() map[string]func(t testing.TB) string {
	if os.Getenv(blackbox.EnvStories) == "both" {
		return databases
	}
	return map[string]func(t testing.TB) string{"sqlite": persistencetest.File}
}

// onBoth runs a test on a program with each database, in parallel.
func onBoth(t *testing.T, test func(t *testing.T, l *live)) {
	t.Parallel()
	for name, dsn := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test(t, start(t, dir, dsn(t)))
		})
	}
}

func TestMain(m *testing.M) { apitest.Main(m) }

func start(t testing.TB, dir, dsn string, edits ...func(*config.Config)) *live {
	t.Helper()
	var log bytes.Buffer
	l := startWith(t, dir, dsn, app.Options{Log: slog.New(slog.NewTextHandler(&log,
		&slog.HandlerOptions{Level: slog.LevelError}))}, edits...)
	t.Cleanup(func() {
		l.stop()
		if log.Len() > 0 {
			t.Errorf("the program logged errors:\n%s", log.String())
		}
	})
	return l
}

// startWith starts the program with options.
func startWith(t testing.TB, dir, dsn string, options app.Options, edits ...func(*config.Config)) *live {
	t.Helper()
	cfg := config.Default()
	cfg.Dev, cfg.DataDir, cfg.Database.URL, cfg.HTTP.Addr = true, dir, config.Secret(dsn), porttest.Free(t)
	cfg.Password.Argon2MemoryKiB, cfg.Password.Argon2Time, cfg.Limits.Enabled = 8, 1, false
	cfg.HTTP.TrustedProxies, cfg.HTTP.CountryHeader = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "country"
	for _, edit := range edits {
		edit(&cfg)
	}
	cfg = cfg.Resolved()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	options.Version, options.Out = "test", io.Discard
	go func() { ended <- app.Serve(ctx, cfg, options) }()
	end := sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the program ended with %v", err)
		}
	})
	t.Cleanup(end)
	l := &live{Client: blackbox.NewClient("http://" + cfg.HTTP.Addr), t: t, cfg: cfg, said: map[string]any{}, stop: end}
	blackbox.Until(t, 20*time.Second, "the program serves", func() bool {
		a, err := l.Try("GET", "/health/ready", nil, nil)
		return err == nil && a.Status == 200
	})
	l.admin = &person{Account: blackbox.SeededIn(t, dir, "admin")}
	l.user = &person{Account: blackbox.SeededIn(t, dir, "user")}
	for _, p := range []*person{l.admin, l.user} {
		l.login(p)
		p.ID = claims(t, p.xAuth)["sub"].(string)
	}
	l.said["admin"] = map[string]any{"id": l.admin.ID}
	l.enrol()
	l.fund()
	var made struct{ Data struct{ Key string } }
	l.Ok(t, "POST", "/admin/system/mfa/actions", `{"actionCode":"PAYOUT","title":{"en":"Payout"},"infoTableHeaders":{}}`,
		blackbox.Headers{"x-auth": l.admin.xAuth})
	l.limit()
	l.Ok(t, "POST", "/admin/service-keys", `{"name":"shop","role":"shop","actions":["PAYOUT"]}`,
		blackbox.Headers{"x-auth": l.admin.xAuth}).Read(t, &made)
	l.service = made.Data.Key
	return l
}

// told is an executed example.
type told struct {
	rest.Endpoint
	request string // with the values of the moment
	headers blackbox.Headers
	answer  blackbox.Answer
	admin   bool // whether the administrator sent it
}

// tell sends the examples of all endpoints. Edit, where it is not nil, may change a
// request before it is sent.
func (l *live) tell(edit func(e rest.Endpoint, request string) string) (all []told) {
	l.t.Helper()
	for _, e := range script() {
		x := e.Example()
		who := l.before(e)
		request := l.filled(e, x.Request)
		path, body := target(e, request)
		if edit != nil {
			path, body = target(e, edit(e, request))
		}
		h := l.headers(e, who, path, body)
		a := l.Do(l.t, e.Method, path, body, h)
		all = append(all, told{e, request, h, a, who == l.admin})
		l.keep(e.ID, a)
		if want := string(x.Refused); a.Code() != want || want == "" && a.Status != 200 {
			l.t.Errorf("the example of %s is answered by %s\nto %s: give its line .Try(`…`) with a request "+
				"that is answered by 200 (docs/add-a-section.md, section 9)", e.Key(), a, request)
			continue
		}
		if a.Status == 200 {
			l.after(e, who, request, a)
		}
	}
	return all
}

// before readies who sends an example.
func (l *live) before(e rest.Endpoint) *person {
	who := l.user
	if e.Audience == rest.Admin || e.OTP {
		who = l.admin
	}
	switch {
	case e.Credential == rest.PAuth && e.Method == "GET":
		who.pAuth = who.completed
	case e.Credential == rest.PAuth, e.Credential == rest.PAuthOrDevice:
		f := l.begin(who)
		who.pAuth = f.PAuth
		m := f.Method(l.t, "SMS")
		l.said["challenge"] = map[string]any{"method": m.ID, "code": l.CodeOf(l.t, f, who.Account, "SMS")}
	case e.Credential == rest.Device && e.Method == "POST":
		l.said["challenge"] = map[string]any{"id": l.begin(who).ChallengeID}
	case e.Credential == rest.OTAuth:
		a := l.Do(l.t, "POST", "/auth/password/reset", map[string]string{"countryCode": who.Country,
			"phoneNumber": who.Phone}, blackbox.Headers{"country": "TR"})
		who.otAuth = l.complete(who, a).Header.Get("ot-auth")
	case e.Renewal:
		who.xAuth = l.finish(who, blackbox.FlowOf(l.t, l.Do(l.t, "POST", "/auth/login", blackbox.LoginBody(who.Account),
			blackbox.Headers{"country": "TR", "dpop": l.proof("POST", "/auth/login", "")}))).Header.Get("x-auth")
	case who == l.user:
		l.login(who) // the example before may have ended the session
	}
	l.said["user"] = map[string]any{"id": l.user.ID, "phone": l.user.Phone, "password": l.user.Password}
	return who
}

func (l *live) headers(e rest.Endpoint, who *person, path, body string) blackbox.Headers {
	l.t.Helper()
	h := blackbox.Headers{"country": "TR"}
	switch e.Credential {
	case rest.User, rest.Tenant, rest.TenantOrCron, rest.TenantOrService:
		h["x-auth"] = who.xAuth
	case rest.PAuth, rest.PAuthOrDevice:
		h["p-auth"] = who.pAuth
	case rest.OTAuth:
		h["ot-auth"] = who.otAuth
	case rest.Service:
		h["service-auth"] = l.service
	}
	if e.OTP {
		h["otp"] = l.otp(who)
	}
	switch {
	case e.Renewal:
		h["dpop"] = l.proof(e.Method, path, who.xAuth)
	case e.Credential == rest.Device:
		h["device-signature"] = l.signed(l.phone, l.phoneID, e.Method, path, body)
	case e.Credential == rest.User && e.WantsBodyHash: // the enrolment of another device
		h["device-signature"] = l.signed(l.tablet, l.value("tablet.thumbprint").(string), e.Method, path, body)
	}
	return h
}

// proof is a proof of the session key, which is the one of the user's phone.
func (l *live) proof(method, path, xAuth string) string {
	l.t.Helper()
	proof, err := dpop.Sign(l.phone, dpop.Claims{Method: method, Target: l.URL + path, TokenHash: dpop.TokenHash(xAuth)})
	storetest.Must(l.t, err)
	return proof
}

// signed is the proof of a device.
func (l *live) signed(key crypto.Signer, issuer, method, path, body string) string {
	l.t.Helper()
	proof, err := device.Sign(key, device.Claims{Issuer: issuer, Audience: l.URL, Method: method, Target: path,
		BodyHash: device.HashBody([]byte(body))})
	storetest.Must(l.t, err)
	return proof
}

// enrol registers the user's phone.
func (l *live) enrol() {
	l.t.Helper()
	const path = "/auth/devices"
	key, public := devicetest.Signer(l.t, device.ES256)
	body := `{"publicKey":` + public.JWK() + `,"brand":"Acme","model":"One","description":"","platform":"android"}`
	a := l.complete(l.user, l.Do(l.t, "POST", path, body, blackbox.Headers{"x-auth": l.user.xAuth,
		"device-signature": l.signed(key, public.Thumbprint(), "POST", path, body)}))
	l.phone, l.phoneID = key, blackbox.ReadFinal(l.t, a).ExecResult.Data["deviceId"]
	l.said["phone"] = map[string]any{"id": l.phoneID}
	l.tablet, public = devicetest.Signer(l.t, device.ES256)
	l.said["tablet"] = map[string]any{"jwk": json.RawMessage(public.JWK()), "thumbprint": public.Thumbprint()}
}

// otp is the current code of a user's authenticator. A step of time is used once, so each code
// is that of a new authenticator.
func (l *live) otp(who *person) string {
	l.t.Helper()
	if who.secret != nil {
		l.login(who)
		l.complete(who, l.Do(l.t, "POST", "/auth/totp/deactivate", "", blackbox.Headers{"x-auth": who.xAuth}))
	}
	l.login(who)
	got := l.complete(who, l.Do(l.t, "POST", "/auth/totp/setup", "", blackbox.Headers{"x-auth": who.xAuth}))
	var outcome struct {
		ExecResult struct{ Data struct{ Base32 string } }
	}
	got.Read(l.t, &outcome)
	var err error
	who.secret, err = base32.StdEncoding.DecodeString(outcome.ExecResult.Data.Base32)
	storetest.Must(l.t, err)
	l.login(who)
	return totp.CodeAt(who.secret, totp.StepAt(time.Now()))
}

// after lets an example take effect: a challenge that it started is completed, and a job that it started ends.
func (l *live) after(e rest.Endpoint, who *person, request string, a blackbox.Answer) {
	l.t.Helper()
	var in struct{ Password, PasswordVerify, CountryCode, PhoneNumber, Email string }
	if e.Starts == registration.ActionRegister { // by a person who has no account yet
		storetest.Must(l.t, json.Unmarshal([]byte(request), &in))
		who = &person{Account: blackbox.Account{Country: in.CountryCode, Phone: in.PhoneNumber, Mail: in.Email}}
	}
	if e.Starts != "" {
		a = l.complete(who, a)
		l.keep(e.ID+".result", a)
	}
	if json.Unmarshal([]byte(request), &in) == nil && in.Password != "" && in.PasswordVerify != "" {
		who.Password = in.Password
	}
	if bytes.Contains(a.Body, []byte(`"execResult"`)) {
		who.completed = who.pAuth
	}
	var started struct{ Data struct{ JobID string } }
	if json.Unmarshal(a.Body, &started) == nil && started.Data.JobID != "" {
		l.ends(started.Data.JobID)
	}
}

// ends waits for the end of a job.
func (l *live) ends(id string) {
	l.t.Helper()
	blackbox.Until(l.t, time.Minute, "a job ends", func() bool {
		var j struct{ Status job.State }
		l.Ok(l.t, "GET", "/admin/jobs/"+id, nil, blackbox.Headers{"x-auth": l.admin.xAuth}).Read(l.t, &j)
		return j.Status.Over()
	})
}

func (l *live) login(p *person) {
	l.t.Helper()
	p.xAuth = l.finish(p, l.begin(p)).Header.Get("x-auth")
}

// begin starts a login.
func (l *live) begin(p *person) blackbox.Flow {
	l.t.Helper()
	return blackbox.FlowOf(l.t, l.Do(l.t, "POST", "/auth/login", blackbox.LoginBody(p.Account),
		blackbox.Headers{"country": "TR"}))
}

// complete is finish for the challenge that an answer starts.
func (l *live) complete(p *person, start blackbox.Answer) blackbox.Answer {
	l.t.Helper()
	return l.finish(p, blackbox.FlowOf(l.t, start))
}

// finish answers the methods of a challenge until its action has run.
func (l *live) finish(p *person, f blackbox.Flow) (a blackbox.Answer) {
	l.t.Helper()
	p.pAuth = f.PAuth
	for _, m := range f.MethodList {
		code := ""
		switch m.Name {
		case "SMS", "MAIL":
			code = l.CodeOf(l.t, f, p.Account, m.Name)
		default:
			continue
		}
		a = l.Do(l.t, "POST", blackbox.CompletePath, blackbox.CompleteBody(m, code),
			blackbox.Headers{"p-auth": f.PAuth, "country": "TR"}).Is(l.t, 200, "")
		if bytes.Contains(a.Body, []byte(`"execResult"`)) {
			return a
		}
	}
	l.t.Fatalf("the challenge is not complete: %s", a)
	return a
}

// CodeOf is that of the client, from the newest letters alone: the outbox of a user grows with each login.
func (l *live) CodeOf(t testing.TB, f blackbox.Flow, a blackbox.Account, method string) string {
	t.Helper()
	to := a.Number()
	if method == "MAIL" {
		to = a.Mail
	}
	var letters []blackbox.Letter
	l.Ok(t, "GET", "/dev/outbox?limit=9&to="+url.QueryEscape(to), nil, nil).Read(t, &letters)
	for _, letter := range letters {
		if letter.ChallengeID == f.ChallengeID && len(letter.Code) == 6 {
			return letter.Code
		}
	}
	t.Fatalf("no code for %s in %d letters", to, len(letters))
	return ""
}

// keep notes an answer for the examples behind it.
func (l *live) keep(name string, a blackbox.Answer) {
	d := json.NewDecoder(bytes.NewReader(a.Body))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		l.said[name] = v
	}
}

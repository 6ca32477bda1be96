package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/internal/blackbox"
)

// enrolled returns a new account with a session and a passkey.
func (st stage) enrolled() (blackbox.Account, blackbox.Headers, blackbox.Passkey) {
	st.T.Helper()
	a, me := st.known()
	return a, me, blackbox.EnrollPasskey(st.T, st.Node.For(st.T), a, me["x-auth"])
}

// flagless sends an assertion without a flag to the push of a login, and then the correct one.
func (st stage) flagless(flag byte) {
	st.T.Helper()
	a, _, p := st.enrolled()
	started := st.Login(a)
	weak := *p.Authenticator
	weak.Flags &^= flag
	f := blackbox.FlowOf(st.T, started)
	options := blackbox.RequestOf(st.T, started)
	p.Send(st.T, f, "APPROVED", weak.Get(st.T, options)).Is(st.T, 401, "DEVICE_SIGNATURE_INVALID")
	loginOptions, ticket := p.Options(st.T)
	p.Enter(st.T, ticket, weak.Get(st.T, loginOptions)).Is(st.T, 401, "INVALID_CREDENTIALS")
	p.Send(st.T, f, "APPROVED", p.Get(st.T, options)).Is(st.T, 200, "")
	p.Enter(st.T, ticket, p.Get(st.T, loginOptions)).Is(st.T, 200, "")
}

// The ceremonies of passkeys.
var replaysOfPasskeys = []replay{
	{"CVE-2022-42731", "django-mfa2: the challenge of a registration was used twice",
		func(t *testing.T, s stage) {
			_, me, p := s.enrolled()
			n := s.Node.For(t)
			options := blackbox.CreationOptions(t, n, me["x-auth"])
			mine, theirs := passkeytest.New(t, p.Party, p.Origin), passkeytest.New(t, p.Party, p.Origin)
			n.Do(t, "POST", blackbox.DevicesPath, blackbox.Attest(mine.Create(t, options)), me).Is(t, 200, "")
			n.Do(t, "POST", blackbox.DevicesPath, blackbox.Attest(theirs.Create(t, options)), me).
				Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		}, nil},
	{"CVE-2021-38299", "web-auth: an assertion without the presence of the user was accepted",
		func(_ *testing.T, s stage) { s.flagless(passkeytest.Present) }, nil},
	{"CVE-2020-8236", "Nextcloud: the result of the user's verification was ignored",
		func(_ *testing.T, s stage) { s.flagless(passkeytest.Verified) }, nil},
	{"CVE-2024-39912", "web-auth: the options of a login revealed whether a user has passkeys",
		func(t *testing.T, s stage) {
			a, _, p := s.enrolled()
			for _, body := range []any{nil, map[string]string{"email": a.Mail}, map[string]string{"email": "x@example.test"}} {
				var got struct {
					Data struct{ PublicKey passkeytest.Options }
				}
				p.N.Do(t, "POST", blackbox.PasskeyLoginPath, body, nil).Is(t, 200, "").Read(t, &got)
				if len(got.Data.PublicKey.AllowCredentials) != 0 || got.Data.PublicKey.RPID != p.Party {
					t.Errorf("%v: %+v", body, got)
				}
			}
			p.LogIn(t).Is(t, 200, "")
		}, nil},
	{"CVE-2021-3632", "Keycloak: a stranger registered a passkey for an account without one",
		func(t *testing.T, s stage) {
			a, me := s.known()
			n := s.Node.For(t)
			n.Do(t, "POST", blackbox.PasskeyPath, nil, nil).Is(t, 401, "UNAUTHENTICATED")
			n.Do(t, "POST", blackbox.PasskeyPath, nil, blackbox.Headers{"p-auth": s.begin(a).PAuth}).
				Is(t, 401, "UNAUTHENTICATED")
			_, stranger := s.known()
			theirs := passkeytest.New(t, "localhost", n.URL)
			answer := blackbox.Attest(theirs.Create(t, blackbox.CreationOptions(t, n, me["x-auth"])))
			n.Do(t, "POST", blackbox.DevicesPath, answer, nil).Is(t, 401, "UNAUTHENTICATED")
			n.Do(t, "POST", blackbox.DevicesPath, answer, stranger).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
			n.Do(t, "POST", blackbox.DevicesPath, answer, me).Is(t, 200, "")
		}, nil},
}

// Approvals on a device.
var replaysOfPushes = []replay{
	{"CVE-2026-9798", "Keycloak: a locked user could still log in by approving on a device",
		func(t *testing.T, s stage) {
			a, me := s.known()
			p := s.phone(a, me)
			f := s.begin(a)
			p.Answer(t, f, "APPROVED").Is(t, 200, "")
			s.Result(f).Is(t, 200, "")
			f = s.begin(a)
			s.standing(a, "passive")
			p.Answer(t, f, "APPROVED").Is(t, 409, "CHALLENGE_CLOSED")
			storetest.Equal(t, s.Result(f).Is(t, 409, "CHALLENGE_CLOSED").Header.Get("x-auth"), "", "token")
			storetest.Equal(t, len(p.List(t)), 0, "approvals that wait")
			s.Login(a).Is(t, 401, "INVALID_CREDENTIALS")
		}, nil},
	{"CVE-2026-16103", "Keycloak: an approval from before the lock was redeemed after it", func(t *testing.T, s stage) {
		a, me := s.known()
		p := s.phone(a, me)
		f, other := s.begin(a), s.begin(a)
		p.Answer(t, f, "APPROVED").Is(t, 200, "")
		p.Answer(t, other, "APPROVED").Is(t, 200, "")
		x := s.Result(f).Is(t, 200, "").Header.Get("x-auth")
		s.open(blackbox.Headers{"x-auth": x})
		s.standing(a, "passive")
		storetest.Equal(t, s.Result(other).Is(t, 409, "CHALLENGE_CLOSED").Header.Get("x-auth"), "", "token")
		s.ended(blackbox.Headers{"x-auth": x})
	}, nil},
	{"AA23-320A", "Push bombing: approvals were requested until their owner gave in", func(t *testing.T, s stage) {
		a, me := s.known()
		p := s.phone(a, me)
		flows := []blackbox.Flow{s.begin(a), s.begin(a), s.begin(a)}
		for _, f := range flows {
			if !blackbox.Offered(f) {
				t.Fatalf("no push is offered: %+v", f.MethodList)
			}
		}
		f := s.begin(a)
		if blackbox.Offered(f) || len(p.List(t)) != 3 {
			t.Errorf("%d approvals wait, and a fourth is offered: %v", len(p.List(t)), blackbox.Offered(f))
		}
		for _, f := range flows {
			p.Answer(t, f, "DENIED").Is(t, 200, "")
		}
		f = s.begin(a)
		if blackbox.Offered(f) {
			t.Error("a push is offered after three denials")
		}
		s.answer(a, f, "SMS").Is(t, 200, "") // another method remains
	}, nil},
	{"AA22-074A", "Duo: the password alone was enough to enrol a device for a dormant account",
		func(t *testing.T, s stage) {
			a := s.user()
			f := s.begin(a)
			p := blackbox.Pocket{N: s.Node, Aud: s.URL}
			p.Key, p.Pub = devicetest.Signer(t, device.ES256)
			p.ID = p.Pub.Thumbprint()
			p.Register(t, f.PAuth, "").Is(t, 401, "UNAUTHENTICATED")
			p.Register(t, "", "").Is(t, 401, "UNAUTHENTICATED")
			me := s.Session(a)
			blackbox.FlowOf(t, p.Register(t, me["x-auth"], "")) // and a session alone cannot add a device either
			if f := s.begin(a); blackbox.Offered(f) || s.s.Count("device WHERE user_id = $1", a.ID) != 0 {
				t.Error("a device without its challenge")
			}
			s.phone(a, me)
			if !blackbox.Offered(s.begin(a)) {
				t.Error("no push for a device that was enrolled")
			}
		}, nil},
	{"CVE-2024-5798", "Vault: a JWT for another audience was accepted", func(t *testing.T, s stage) {
		a, me := s.known()
		p := s.phone(a, me)
		f := s.begin(a)
		for _, aud := range []string{"https://other.example", "", p.Aud + "/", p.Aud + ".evil.test"} {
			p.Answer(t, f, "APPROVED", func(c *device.Claims) { c.Audience = aud }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		}
		p.Answer(t, f, "APPROVED").Is(t, 200, "")
	}, nil},
	{"GHSA-wxg7-w2v3-w38g", "ZITADEL: a JWT without an issue time never expired",
		func(t *testing.T, s stage) {
			a, me := s.known()
			p := blackbox.Enroll(t, s.Node, a, me["x-auth"], device.EdDSA, "")
			path := blackbox.OngoingPath + "?deviceId=" + p.ID // a list is bound to its time only
			for _, iat := range []string{"", `,"iat":null`, `,"iat":"now"`, `,"iat":0`, `,"iat":1e400`, `,"iat":99999999999`} {
				h := p.Undated(t, p.Sign(t, "GET", path, nil, device.Claims{}), iat)
				s.Ask("GET", path, nil, h).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
			}
			s.Ask("GET", path, nil, p.Undated(t, p.Sign(t, "GET", path, nil, device.Claims{}),
				fmt.Sprintf(`,"iat":%d`, time.Now().Unix()))).Is(t, 200, "")
		}, nil},
}

// ownService is the settings of a service of its own: while accounts have imported hashes, its logins take longer.
var ownService = []string{}

// imported returns an account that the command made of a line with the given hash, and the output of the command.
func (st stage) imported(hash, password string) (blackbox.Account, blackbox.Output) {
	st.T.Helper()
	a := blackbox.NewAccount(500 + int(st.last.Add(1)))
	a.Password = password
	path := filepath.Join(st.T.TempDir(), "users.jsonl")
	line := fmt.Sprintf(`{"email":%q,"countryCode":%q,"phoneNumber":%q,"hash":%q}`, a.Mail, a.Country, a.Phone, hash)
	storetest.Must(st.T, os.WriteFile(path, []byte(line), 0o600))
	return a, st.s.Command("", "user", "import", path)
}

// denied sends a wrong password.
func (st stage) denied(a blackbox.Account, password string) {
	st.T.Helper()
	a.Password = password
	st.Login(a).Is(st.T, 401, "INVALID_CREDENTIALS")
}

// refusedLine fails the test unless the line was refused, and the account does not exist.
func (st stage) refusedLine(a blackbox.Account, got blackbox.Output) {
	st.T.Helper()
	if got.Code != 3 || !strings.HasPrefix(got.Out, "line 1: hash: ") || st.s.Count("users WHERE email = $1",
		a.Mail) != 0 {
		st.T.Errorf("exit %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
}

const (
	oldPassword = "correct horse 42"
	oldBcrypt   = "$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"
)

// Hashes of other services.
var replaysOfImports = []replay{
	{"CVE-2025-22228", "Spring Security: only the first 72 bytes of a password were compared",
		func(t *testing.T, s stage) {
			long := strings.Repeat("x", 72)
			a, _ := s.imported("$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i", long)
			s.denied(a, long+"y")
			s.denied(a, long[:71])
			s.begin(a)
		}, ownService},
	{"CVE-2023-0567", "PHP: a malformed bcrypt hash matched any password", func(t *testing.T, s stage) {
		for _, hash := range []string{"$2y$04$$bcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6", "$2y$04$" +
			strings.Repeat("$", 53), "$2y$04$", "$2b$04$abcdefghijklmnopqrstuu"} {
			a, got := s.imported(hash, "anything at all")
			s.refusedLine(a, got)
			s.denied(a, "anything at all")
		}
		a, _ := s.imported(oldBcrypt, oldPassword)
		s.begin(a)
	}, ownService},
	{"CVE-2011-2483", "crypt_blowfish: a hash of a faulty function matched several passwords",
		func(t *testing.T, s stage) {
			a, got := s.imported(strings.Replace(oldBcrypt, "$2b$", "$2x$", 1), oldPassword)
			s.refusedLine(a, got)
			a, _ = s.imported(strings.Replace(oldBcrypt, "$2b$", "$2y$", 1), oldPassword)
			s.begin(a)
		}, ownService},
	{"CVE-2013-1443", "Django: a long password was hashed at the cost of its length", func(t *testing.T, s stage) {
		a, _ := s.imported("pbkdf2_sha256$260000$XmWujr6yE9uqtznsq7Ia9C$CPyQY5HlJT73OKRq0ekPSNmoVKquJWFq6Y6ssWZysuQ=",
			oldPassword)
		s.denied(a, strings.Repeat("x", 1000))
		s.begin(a)
	}, ownService},
	{"CVE-2014-9034", "WordPress: the hash of a long password exhausted the processor",
		func(t *testing.T, s stage) {
			for _, cost := range "JSw" { // 2²¹, 2³⁰ and 2⁶⁰ rounds
				a, got := s.imported("$P$"+string(cost)+"IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0", "test12345")
				s.refusedLine(a, got)
			}
			a, _ := s.imported("$P$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0", "test12345")
			s.denied(a, strings.Repeat("x", 1000))
			s.begin(a)
		}, ownService},
	{"CVE-2016-2513", "Django: the time of a login revealed accounts with other hashes",
		func(t *testing.T, s stage) {
			// A hash of cost 12 takes more than a tenth of a second on any machine, and a native one a few milliseconds. So
			// a time names a kind of hash, and identifiers without an account have the kinds in the same proportions.
			const native = 100 * time.Millisecond
			hash := "$2b$12$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"
			slow, got := s.imported(hash, oldPassword)
			storetest.Equal(t, got.Code, 0, "exit", got.Out, got.ErrOut)
			for range 3 { // so that the kind has many identifiers
				s.imported(hash, oldPassword)
			}
			weak, _ := s.imported("md5$ERzRdd5VGmixhE0Glsn1PH$4c98388e7aad42a03212b59d05124f94", oldPassword)
			took := func(a blackbox.Account) time.Duration {
				began := time.Now()
				s.denied(a, "not-the-password")
				return time.Since(began)
			}
			if d := took(slow); d < native {
				t.Errorf("the account with a slow hash: refused after %v", d)
			}
			tries := 0
			blackbox.Until(t, 20*time.Second, "an identifier without an account takes as long", func() bool {
				if tries++; tries > 90 { // fewer than a network may send
					return false
				}
				return took(blackbox.NewAccount(int(s.last.Add(1))+5000)) >= native
			})
			s.begin(weak)
		}, ownService},
}

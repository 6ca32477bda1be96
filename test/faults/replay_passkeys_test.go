package faults

import (
	"testing"

	"castellan/domain/factor/passkey/passkeytest"
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

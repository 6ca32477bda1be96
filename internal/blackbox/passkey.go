package blackbox

import (
	"encoding/json"
	"fmt"
	"testing"

	"castellan/domain/factor/passkey/passkeytest"
)

// The paths of passkeys.
const (
	PasskeyPath      = "/auth/devices/passkey" // #nosec G101 -- a path
	PasskeyLoginPath = "/auth/login/passkey"   // #nosec G101 -- a path
)

// Passkey is a browser with a passkey of an account.
type Passkey struct {
	*passkeytest.Authenticator
	N  *Node
	ID string // of the device
}

// EnrollPasskey registers a passkey for the account of an x-auth token.
func EnrollPasskey(t *testing.T, n *Node, a Account, x string) Passkey {
	t.Helper()
	return EnrollPasskeyOf(t, passkeytest.New(t, "localhost", n.URL), n, a, x)
}

// EnrollPasskeyOf registers the passkey of an authenticator.
func EnrollPasskeyOf(t *testing.T, of *passkeytest.Authenticator, n *Node, a Account,
	x string) Passkey {
	t.Helper()
	p := Passkey{Authenticator: of, N: n}
	f := FlowOf(t, p.Register(t, x))
	final := ReadFinal(t, n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, a, "SMS")).Is(t, 200, ""))
	if p.ID = final.ExecResult.Data["deviceId"]; final.Action != "DEVICE_ADD" || !final.ExecResult.Success || p.ID == "" {
		t.Fatalf("the enrolment answered %+v", final)
	}
	return p
}

// CreationOptions requests the options of a registration.
func CreationOptions(t *testing.T, n *Node, x string) []byte {
	t.Helper()
	return []byte(n.Ok(t, "POST", PasskeyPath, nil, Headers{"x-auth": x}).At(t, "data", "publicKey"))
}

// Attest is the body of a registration.
func Attest(attestation []byte) string {
	return fmt.Sprintf(`{"attestation":%s,"brand":"Acme","model":"Browser","description":"My passkey","platform":"web"}`,
		attestation)
}

// Register sends the request of a registration.
func (p Passkey) Register(t *testing.T, x string) Answer {
	t.Helper()
	return p.N.Do(t, "POST", DevicesPath, Attest(p.Create(t, CreationOptions(t, p.N, x))), Headers{"x-auth": x})
}

// RequestOf returns the request options of the push of a started challenge; nil without.
func RequestOf(t *testing.T, started Answer) []byte {
	t.Helper()
	var got struct {
		Challenge struct {
			MethodList []struct {
				Name     string          `json:"name"`
				WebAuthn json.RawMessage `json:"webauthn"`
			} `json:"methodList"`
		} `json:"challenge"`
	}
	started.Read(t, &got)
	for _, m := range got.Challenge.MethodList {
		if m.Name == "PUSH" {
			return m.WebAuthn
		}
	}
	return nil
}

// Approve approves the push of a started challenge with the token of its starter.
func (p Passkey) Approve(t *testing.T, started Answer) Answer {
	t.Helper()
	return p.Send(t, FlowOf(t, started), "APPROVED", p.Get(t, RequestOf(t, started)))
}

// Send sends an assertion as the answer to the push of a flow.
func (p Passkey) Send(t *testing.T, f Flow, value string, assertion []byte) Answer {
	t.Helper()
	return p.N.Do(t, "POST", CompletePath, CompleteBody(f.Method(t, "PUSH"), value),
		Headers{"p-auth": f.PAuth, "webauthn-assertion": passkeytest.Encode(assertion)})
}

// Options requests the options of a login.
func (p Passkey) Options(t *testing.T) (options []byte, ticket string) {
	t.Helper()
	got := p.N.Ok(t, "POST", PasskeyLoginPath, nil, nil)
	return []byte(got.At(t, "data", "publicKey")), got.At(t, "data", "ticket")
}

// LogIn logs in with the passkey in place of identifier and password.
func (p Passkey) LogIn(t *testing.T) Answer {
	t.Helper()
	options, ticket := p.Options(t)
	return p.Enter(t, ticket, p.Get(t, options))
}

// Enter sends the answer to login options.
func (p Passkey) Enter(t *testing.T, ticket string, assertion []byte) Answer {
	t.Helper()
	return p.N.Do(t, "POST", "/auth/login", fmt.Sprintf(`{"ticket":%q,"assertion":%s}`, ticket, assertion), nil)
}

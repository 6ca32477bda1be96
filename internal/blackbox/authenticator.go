package blackbox

import (
	"encoding/base32"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
)

// TOTPOutcome is the last answer of an authenticator's setup.
type TOTPOutcome struct {
	Action     string
	ExecResult struct {
		Success bool
		Data    struct {
			Base32 string `json:"base32"`
		}
	}
}

// Authenticator is the app: it returns the codes of a secret from now on, each once.
type Authenticator struct {
	Secret []byte
	last   int64
}

func NewAuthenticator(t *testing.T, text string) *Authenticator {
	t.Helper()
	return &Authenticator{Secret: storetest.Value(base32.StdEncoding.DecodeString(text))(t)}
}

// Enrolled gives an account an authenticator.
func Enrolled(t *testing.T, n *Node, who Account, session Headers) *Authenticator {
	t.Helper()
	f := FlowOf(t, n.Do(t, "POST", "/auth/totp/setup", nil, session))
	final := n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, who, "SMS")).Is(t, 200, "")
	storetest.Equal(t, final.At(t, "execResult", "success"), "true", "success of", final)
	return NewAuthenticator(t, final.At(t, "execResult", "data", "base32"))
}

// Next returns a valid, unused code. It waits only if all three of the window are used up.
func (a *Authenticator) Next(t *testing.T) string {
	t.Helper()
	if a.last == 0 {
		a.last = totp.StepAt(time.Now()) - 1 // the current one comes first
	}
	a.last++
	for totp.StepAt(time.Now())+1 < a.last {
		time.Sleep(100 * time.Millisecond)
	}
	return totp.CodeAt(a.Secret, a.last)
}

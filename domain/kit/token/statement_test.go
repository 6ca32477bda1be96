package token_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
)

// A statement is read back exactly as it was signed; another type, class, byte or key is refused.
func TestStatement(t *testing.T) {
	type grant struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
	}
	i := token.NewIssuer(keyringtest.Ring(t, time.Now), "castellan", "default", time.Now, 0)
	raw, err := i.SignStatement("guard-grant+jwt", grant{"castellan", "u1"})
	storetest.Must(t, err)
	again, _ := i.SignStatement("guard-grant+jwt", grant{"castellan", "u1"})
	var got grant
	if err := i.ReadStatement("guard-grant+jwt", raw, &got); err != nil || got.Subject != "u1" || again != raw {
		t.Fatalf("%v: %+v", err, got)
	}
	if err := i.ReadStatement("guard-assertion+jwt", raw, &got); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("another type: %v", err)
	}
	if _, err := i.Verify(token.XAuth, raw); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("as a session: %v", err)
	}
	other := token.NewIssuer(keyringtest.Ring(t, time.Now), "castellan", "default", time.Now, 0)
	if err := other.ReadStatement("guard-grant+jwt", raw, &got); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("another key: %v", err)
	}
	for at := range raw {
		for _, c := range "Ab." {
			changed := raw[:at] + string(c) + raw[at+1:]
			if err := i.ReadStatement("guard-grant+jwt", changed, &got); err == nil && changed != raw {
				t.Fatalf("byte %d as %q is accepted", at, c)
			}
		}
	}
	if err := i.ReadStatement("guard-grant+jwt", strings.Repeat("a", 9000), &got); err == nil {
		t.Error("too long")
	}
}

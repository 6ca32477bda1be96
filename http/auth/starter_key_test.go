package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
	"castellan/http/auth"
	"castellan/http/rest"
)

// spender counts the proofs that were used up.
type spender struct {
	commit.Committer
	spent int
	err   error
}

func (s *spender) Commit(_ context.Context, writes ...commit.Write) error {
	if s.err == nil {
		s.spent += len(writes)
	}
	return s.err
}

// The proof of a caller's key is used up at the first question only, and only if it is that of the session's key.
func TestProofOfStarterKey(t *testing.T) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	storetest.Must(t, err)
	public, _ := device.PublicKey(k)
	proof, err := dpop.Sign(k, dpop.Claims{Method: "POST", Target: "https://api.example.com/v1/pay",
		TokenHash: dpop.TokenHash("token")})
	storetest.Must(t, err)
	e, db := &engine{}, &spender{}
	s := auth.Starter{Starts: e, Accounts: e, Proofs: &dpop.Verifier{Ring: keyringtest.Ring(t, time.Now), Commit: db,
		PublicURL: "https://api.example.com/v1", BasePath: "/v1", Now: time.Now}}
	key := func(change func(*rest.Caller)) challenge.ClientKey {
		t.Helper()
		who := caller
		who.KeyThumbprint, who.KeyProof, who.KeyToken = public.Thumbprint(), proof, "token"
		who.Method, who.Host, who.Path = "POST", "api.example.com", "/v1/pay"
		change(&who)
		_, _, err := s.Start(t.Context(), who, "PAY", nil)
		storetest.Must(t, err)
		return e.asked[len(e.asked)-1].Key
	}
	right := key(func(*rest.Caller) {})
	if right.Thumbprint != public.Thumbprint() || right.Proven || db.spent != 0 {
		t.Errorf("%+v, %d spent", right, db.spent)
	}
	db.err = errors.New("the database is down")
	if err := right.Prove(t.Context()); err == nil {
		t.Error("a proof that was not used up counts")
	}
	db.err = nil
	storetest.Must(t, right.Prove(t.Context()))
	spent := db.spent
	if storetest.Must(t, right.Prove(t.Context())); spent == 0 || db.spent != spent {
		t.Errorf("%d, then %d spent", spent, db.spent)
	}
	for name, change := range map[string]func(*rest.Caller){
		"another key":   func(c *rest.Caller) { c.KeyThumbprint = "another" },
		"another path":  func(c *rest.Caller) { c.Path = "/v1/other" },
		"another token": func(c *rest.Caller) { c.KeyToken = "other" },
	} {
		if err := key(change).Prove(t.Context()); fault.CodeOf(err) != fault.DPoPInvalid || db.spent != spent {
			t.Errorf("%s: %v, %d spent", name, err, db.spent)
		}
	}
	for name, change := range map[string]func(*rest.Caller){
		"no key":         func(c *rest.Caller) { c.KeyThumbprint = "" },
		"no proof":       func(c *rest.Caller) { c.KeyProof = "" },
		"already proven": func(c *rest.Caller) { c.KeyProved = true },
	} {
		if k := key(change); k.Prove != nil || k.Proven != (name == "already proven") {
			t.Errorf("%s: %+v", name, k)
		}
	}
	s.Proofs = nil
	if k := key(func(*rest.Caller) {}); k.Prove != nil {
		t.Errorf("without a verifier: %+v", k)
	}
}

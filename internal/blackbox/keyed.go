package blackbox

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/dpop"
)

// RenewSessionPath renews a session that is bound to a key.
const RenewSessionPath = "/auth/sessions/renew"

// Keyed is a web client with a key and its last token.
type Keyed struct {
	Key   crypto.Signer
	Token string
	At    string // the address that its proofs name, without a path; "" is the node's
}

// ECKey returns a new key for proofs of ES256, EdKey one for EdDSA.
func ECKey(t testing.TB) crypto.Signer {
	t.Helper()
	return storetest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

func EdKey(t testing.TB) crypto.Signer {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	storetest.Must(t, err)
	return k
}

// Proof is the headers of a request with the client's last token and a proof of its key, changed by edit. The claims
// name the client's address of the service.
func (k *Keyed) Proof(t testing.TB, n *Node, method, path string,
	edit ...func(*dpop.Claims)) Headers {
	t.Helper()
	c := dpop.Claims{Method: method, Target: cmp.Or(k.At, n.URL) + path, TokenHash: dpop.TokenHash(k.Token)}
	for _, e := range edit {
		e(&c)
	}
	proof := storetest.Value(dpop.Sign(k.Key, c))(t)
	h := Headers{"dpop": proof}
	if k.Token != "" {
		h["x-auth"] = k.Token
	}
	return h
}

// Login logs an account in by SMS, with the key.
func (k *Keyed) Login(t testing.TB, n *Node, a Account) {
	t.Helper()
	k.Token = ""
	f := FlowOf(t, n.Do(t, "POST", "/auth/login", LoginBody(a), k.Proof(t, n, "POST", "/auth/login")))
	k.Token = n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, a, "SMS")).Header.Get("x-auth")
	if k.Token == "" {
		t.Fatal("the login gave no session")
	}
}

// Renew renews with a new proof, and keeps the new token if there is one.
func (k *Keyed) Renew(t testing.TB, n *Node, edit ...func(*dpop.Claims)) Answer {
	t.Helper()
	got := n.Do(t, "POST", RenewSessionPath, nil, k.Proof(t, n, "POST", RenewSessionPath, edit...))
	if got.Status == 200 {
		k.Token = got.Header.Get("x-auth")
	}
	return got
}

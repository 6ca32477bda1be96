// Package dpop verifies the proofs by which a client shows that it holds the key of its session (RFC 9449, decision
// D-AUTH-16).
//
// The one idea: a proof is a signature of one request by a key that the proof itself contains. It names no account, so
// the caller compares the thumbprint of the key with that of the session. Keys, the reading of signatures, nonces and
// the memory of used proofs are those of package device.
//
// Start reading at Verifier.
package dpop

import (
	"context"
	"crypto"
	"crypto/subtle"
	"errors"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
	"castellan/domain/kit/keyring"
	"castellan/domain/proof/device"
)

// typ is the type of a proof, in its header.
const typ = "dpop+jwt"

// Request is a request with its proof, as received.
type Request struct {
	Proof  string // "" for none
	Method string
	Host   string // with the port; "" if unknown
	Path   string // as sent, base path included, without the query
	Token  string // the x-auth that the proof must name; "" at the login, when none exists
	// Forwarded reports that the request is for another service, and its gateway asks whether it may pass.
	Forwarded bool
}

// Proof is a proof that a key made for the request. It may be stale or used.
type Proof struct {
	Thumbprint string // of the key (RFC 7638)
	once       device.Once
}

// Verifier verifies proofs. All fields except BasePath, Origins, AnyHost and Host are required.
type Verifier struct {
	Ring      *keyring.Ring
	Commit    commit.Committer
	PublicURL string // http.public_url
	BasePath  string // http.base_path, which PublicURL ends with
	// Origins are further origins whose addresses name the service: http.cors_origins.
	Origins []string
	// AnyHost accepts the host of each request as the target of its proof: the address of the service is unknown.
	AnyHost bool
	// Host reports whether the operator has named a host for requests that a gateway forwards. nil: none. The header Host
	// alone says nothing, because the sender of a proof chooses it.
	Host func(authority string) bool
	Now  func() time.Time
}

// Refused returns the refusal of a proof, whatever its fault is.
func Refused() error {
	return fault.New(fault.DPoPInvalid, "the proof of the session key is not valid")
}

// Check verifies everything about a proof except its age and its use. Errors: DPOP_INVALID.
func (v *Verifier) Check(r Request) (Proof, error) {
	s, ok := device.ReadSigned(r.Proof, typ)
	if !ok {
		return Proof{}, Refused()
	}
	key, err := device.ParseKey(s.Head["jwk"])
	if err != nil {
		return Proof{}, Refused()
	}
	right := s.By(key.Key)
	once, okOnce := s.Once()
	method, okMethod := s.Text("htm")
	target, okTarget := s.Text("htu")
	hash, okHash := s.Text("ath")
	if !right || !okOnce || !okMethod || !okTarget || !okHash ||
		equal(method, r.Method)&v.names(target, r)&equal(hash, TokenHash(r.Token)) != 1 {
		return Proof{}, Refused()
	}
	return Proof{Thumbprint: key.Thumbprint(), once: once}, nil
}

// Use checks the age of a proof and returns the writes that use it up. A unit with them fails with commit.ErrFenced if
// the proof was used before, on any node; Used is its refusal then. Errors: DPOP_INVALID with a nonce.
func (v *Verifier) Use(p Proof) ([]commit.Write, error) {
	return v.fresh().Use(v.Now(), p.Thumbprint, p.once)
}

// Used returns the refusal of a proof that was used before. It has a nonce if the proof named one: two signatures may
// name the same nonce in good faith.
func (v *Verifier) Used(p Proof) error {
	if p.once.Nonce != "" {
		return v.fresh().Stale(v.Now(), p.Thumbprint)
	}
	return Refused()
}

// Spend checks the age of a proof and uses it up. Every node sees the use before Spend returns nil, but a crash of the
// database's machine may lose the last ones. Errors: DPOP_INVALID, UNAVAILABLE.
func (v *Verifier) Spend(ctx context.Context, p Proof) error {
	writes, err := v.Use(p)
	if err != nil {
		return err
	}
	err = v.Commit.Commit(ctx, append(writes, commit.Unflushed{})...)
	if errors.Is(err, commit.ErrFenced) {
		return v.Used(p)
	}
	return err
}

func (v *Verifier) fresh() device.Fresh {
	return device.Fresh{Ring: v.Ring, Domain: "dpop", Code: fault.DPoPInvalid,
		Text: "the proof of the session key is not fresh; sign again with the nonce"}
}

// TokenHash returns the claim ath of a token: base64url of its SHA-256; "" for no token.
func TokenHash(token string) string { return device.HashBody([]byte(token)) }

func equal(a, b string) int { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) }

// Claims are the statements of a proof (RFC 9449, section 4.2).
type Claims struct {
	Method    string `json:"htm"`
	Target    string `json:"htu"` // URL without query and fragment
	IssuedAt  int64  `json:"iat"` // seconds
	ID        string `json:"jti"`
	TokenHash string `json:"ath,omitempty"`
	Nonce     string `json:"nonce,omitempty"` // issued by the service
}

// Sign creates a proof with the key of a session. It draws an ID if that is empty, and uses the current time if
// IssuedAt is 0.
func Sign(k crypto.Signer, c Claims) (string, error) {
	if c.ID == "" {
		c.ID = device.NewID()
	}
	if c.IssuedAt == 0 {
		c.IssuedAt = time.Now().Unix()
	}
	return jose.Sign(k, func(public jose.Key) any {
		return struct {
			Alg string   `json:"alg"`
			Typ string   `json:"typ"`
			JWK jose.Key `json:"jwk"`
		}{public.Alg(), typ, public}
	}, c)
}

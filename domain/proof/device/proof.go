package device

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"math"
	"strings"
	"time"

	"castellan/domain/kit/jose"
)

// typ is the type of a proof, in its header.
const typ = "device-signature+jwt"

// maxProofBytes bounds the header that is read, maxIDBytes the stored jti.
const (
	maxProofBytes = 4096
	maxIDBytes    = 256
)

// Claims are the statements of a proof (D-AUTH-06).
type Claims struct {
	Issuer    string `json:"iss"` // the device's id; at the enrolment the key's thumbprint
	Audience  string `json:"aud"` // the public base URL of the service
	Method    string `json:"htm"`
	Target    string `json:"htu"` // path with the raw query, as sent
	IssuedAt  int64  `json:"iat"` // seconds
	ID        string `json:"jti"`
	BodyHash  string `json:"bh,omitempty"` // base64url of the body's SHA-256, if it has a body
	Challenge string `json:"cid,omitempty"`
	MethodID  string `json:"mid,omitempty"`
	Value     string `json:"val,omitempty"`
	Intent    string `json:"int,omitempty"`   // digest of the intent document that was shown (D-EXT-09)
	Nonce     string `json:"nonce,omitempty"` // issued by the service
}

// HashBody returns the claim bh of a body; "" for none.
func HashBody(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	sum := sha256.Sum256(body)
	return jose.Encode(sum[:])
}

// Sign creates a proof with the key of a device. It draws an ID if that is empty, and uses the current time if
// IssuedAt is 0.
func Sign(k crypto.Signer, c Claims) (string, error) {
	if c.ID == "" {
		c.ID = NewID()
	}
	if c.IssuedAt == 0 {
		c.IssuedAt = time.Now().Unix()
	}
	return jose.Sign(k, func(public jose.Key) any {
		return map[string]string{"alg": public.Alg(), "typ": typ, "kid": c.Issuer}
	}, c)
}

// NewID returns a new jti.
func NewID() string { return rand.Text() }

// Signed is a compact JWS in its parts; nothing of it is verified yet.
type Signed struct{ jose.JWS }

// ReadSigned reads a compact JWS of a type. It is as strict as jose.Read, and refuses every other type.
func ReadSigned(raw, typ string) (Signed, bool) {
	s, ok := jose.Read(raw, maxProofBytes)
	if !ok || !strings.EqualFold(jose.Text(s.Head["typ"]), typ) {
		return Signed{}, false
	}
	return Signed{s}, true
}

// Text reads a claim that is a string; "" if it is absent, false for another type.
func (s Signed) Text(name string) (value string, ok bool) {
	raw, there := s.Claims[name]
	return jose.Text(raw), !there || len(raw) > 0 && raw[0] == '"'
}

// Once reads the claims about the freshness. It is false without an id or a time of issue.
func (s Signed) Once() (o Once, ok bool) {
	id, okID := s.Text("jti")
	nonce, okNonce := s.Text("nonce")
	var issued float64
	if json.Unmarshal(s.Claims["iat"], &issued) != nil || math.Abs(issued) > 1e11 || string(s.Claims["iat"]) == "null" {
		return o, false
	}
	return Once{id, int64(issued), nonce}, okID && okNonce && id != "" && len(id) <= maxIDBytes
}

// proof is a parsed proof; no part of it is verified yet.
type proof struct {
	Signed
	kid    string
	claims Claims
}

func parse(raw string) (p proof, ok bool) {
	if p.Signed, ok = ReadSigned(raw, typ); !ok {
		return p, false
	}
	p.kid = jose.Text(p.Head["kid"])
	c := &p.claims
	for name, to := range map[string]*string{"iss": &c.Issuer, "aud": &c.Audience, "htm": &c.Method, "htu": &c.Target,
		"bh": &c.BodyHash, "cid": &c.Challenge, "mid": &c.MethodID, "val": &c.Value, "int": &c.Intent} {
		if *to, ok = p.Text(name); !ok {
			return p, false
		}
	}
	o, ok := p.Once()
	c.ID, c.IssuedAt, c.Nonce = o.ID, o.IssuedAt, o.Nonce
	return p, ok && p.kid != "" && p.kid == c.Issuer
}

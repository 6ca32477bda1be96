package device

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"castellan/domain/kit/members"
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
	return encode(sum[:])
}

// Sign creates a proof with the key of a device. It draws an ID if that is empty, and uses the current time if
// IssuedAt is 0.
func Sign(k crypto.Signer, c Claims) (string, error) {
	public, ok := PublicKey(k)
	if !ok {
		return "", errors.New("device: a key of this kind does not sign proofs")
	}
	if c.ID == "" {
		c.ID = rand.Text()
	}
	if c.IssuedAt == 0 {
		c.IssuedAt = time.Now().Unix()
	}
	head, err := json.Marshal(map[string]string{"alg": public.Alg(), "typ": typ, "kid": c.Issuer})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed := encode(head) + "." + encode(claims)
	sig, err := sign(k, []byte(signed))
	return signed + "." + encode(sig), err
}

// proof is a parsed proof; no part of it is verified yet.
type proof struct {
	alg    string
	kid    string
	claims Claims
	signed []byte
	sig    []byte
}

// parse reads a compact JWS. It is strict: no padding, no repeated member, no critical extension, and only our own
// type.
func parse(raw string) (p proof, ok bool) {
	parts := strings.Split(raw, ".")
	if len(raw) > maxProofBytes || len(parts) != 3 || strings.Contains(raw, "=") {
		return p, false
	}
	head, okHead := members.Of(decode(parts[0]))
	claims, okClaims := members.Of(decode(parts[1]))
	p.sig = decode(parts[2])
	if !okHead || !okClaims || len(p.sig) == 0 {
		return p, false
	}
	if _, critical := head["crit"]; critical || !strings.EqualFold(text(head["typ"]), typ) {
		return p, false
	}
	p.alg, p.kid, p.signed = text(head["alg"]), text(head["kid"]), []byte(parts[0]+"."+parts[1])
	c := &p.claims
	for name, to := range map[string]*string{"iss": &c.Issuer, "aud": &c.Audience, "htm": &c.Method, "htu": &c.Target,
		"jti": &c.ID, "bh": &c.BodyHash,
		"cid": &c.Challenge, "mid": &c.MethodID, "val": &c.Value, "int": &c.Intent, "nonce": &c.Nonce} {
		raw, there := claims[name]
		if *to = text(raw); there && (len(raw) == 0 || raw[0] != '"') {
			return p, false
		}
	}
	var issued float64
	if json.Unmarshal(claims["iat"], &issued) != nil || math.Abs(issued) > 1e11 || string(claims["iat"]) == "null" {
		return p, false
	}
	c.IssuedAt = int64(issued)
	return p, p.kid != "" && p.kid == c.Issuer && c.ID != "" && len(c.ID) <= maxIDBytes
}

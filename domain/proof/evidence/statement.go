package evidence

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
	"castellan/domain/kit/jose"
	"castellan/domain/proof/device"
)

// statementType is the JOSE type of a statement.
const statementType = "evidence+jwt"

// Statement is the signature of the service over a piece of evidence. The key is in it, because the key set of the
// service lists a key only while its tokens are valid.
type Statement struct {
	Issuer string `json:"iss" doc:"the service (tokens.issuer)" example:"castellan"`
	At     int64  `json:"at" doc:"when it was signed, epoch ms" example:"1767225600000"`
	KeyID  string `json:"kid" doc:"of the key, as in /.well-known/jwks.json at that time"`
	JWK    *JWK   `json:"jwk" doc:"the key"`
	JWS    string `json:"jws" doc:"a JWS (RFC 7515): see docs/guard.md" example:"eyJhbGciOiJFZERTQSIs…"`
}

func (Statement) SchemaName() string { return "EvidenceStatement" }

// header is the protected header of a statement.
type header struct {
	Alg   string `json:"alg"`
	KeyID string `json:"kid"`
	Type  string `json:"typ"`
}

// claims are the payload of a statement: all facts of the evidence, those of a device's signature by their digests.
type claims struct {
	Issuer  string       `json:"iss"`
	At      int64        `json:"at"`
	Version int          `json:"v"`
	Intent  string       `json:"int"` // digest of the document
	Proofs  []proofClaim `json:"proofs"`
	Policy  Policy       `json:"policy"`
	Outcome Outcome      `json:"outcome"`
	Audit   *Audit       `json:"audit"`
}

type proofClaim struct {
	Method     challenge.Name `json:"method"`
	MethodID   string         `json:"methodId"`
	Decision   string         `json:"decision"`
	DeviceID   string         `json:"deviceId"`
	At         int64          `json:"at"`
	Remembered bool           `json:"remembered"`
	JWS        string         `json:"jws"` // base64url of its SHA-256; "" for none
	Thumbprint string         `json:"jkt"` // of the key; "" for none
}

func (e Evidence) claims(issuer string, at int64) claims {
	c := claims{Issuer: issuer, At: at, Version: e.Version, Intent: e.IntentDigest,
		Proofs: make([]proofClaim, len(e.Proofs)), Policy: e.Policy, Outcome: e.Outcome, Audit: e.Audit}
	for i, p := range e.Proofs {
		c.Proofs[i] = proofClaim{p.Method, p.MethodID, p.Decision, p.DeviceID, p.At, p.Remembered, "", p.JWK.Thumbprint()}
		if p.JWS != "" {
			c.Proofs[i].JWS = intent.Digest([]byte(p.JWS))
		}
	}
	return c
}

// Sign returns the evidence with the statement of the service. kid is the name of its key.
func (e Evidence) Sign(issuer string, now time.Time, kid string, key crypto.Signer) (Evidence, error) {
	at := now.UnixMilli()
	var jwk *JWK
	jws, err := jose.Sign(key, func(public jose.Key) any {
		jwk = keyOf(public.JWK())
		return header{public.Alg(), kid, statementType}
	}, e.claims(issuer, at))
	if err != nil {
		return e, fmt.Errorf("sign evidence: %w", err)
	}
	e.Service = &Statement{Issuer: issuer, At: at, KeyID: kid, JWK: jwk, JWS: jws}
	return e, nil
}

// verifyStatement checks that the statement is a signature of its key over exactly these facts. It reads none of the
// signed text: it writes what the text must be.
func (e Evidence) verifyStatement() error {
	s := e.Service
	if s == nil {
		return errors.New("is missing")
	}
	key, err := device.ParseKey(s.JWK.text())
	if err != nil {
		return fmt.Errorf("jwk: %w", err)
	}
	head, errHead := json.Marshal(header{key.Alg(), s.KeyID, statementType})
	payload, errPayload := json.Marshal(e.claims(s.Issuer, s.At))
	signed := jose.Encode(head) + "." + jose.Encode(payload)
	end := strings.LastIndexByte(s.JWS, '.')
	if errHead != nil || errPayload != nil || end < 0 || s.JWS[:end] != signed {
		return errors.New("jws: is of other facts than those of the evidence")
	}
	sig, ok := jose.Decode(s.JWS[end+1:])
	if !ok || !key.Verify(key.Alg(), signed, sig) {
		return errors.New("jws: is not a signature of the key")
	}
	return nil
}

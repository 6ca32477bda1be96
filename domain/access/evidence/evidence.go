// Package evidence is the proof of an approval: the document that was shown, the signatures under it, and how the
// challenge ended (D-EXT-09).
//
// The one idea: Verify needs nothing but the evidence. A reader without access to the service can check that the owner
// of a device approved exactly this operation.
package evidence

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/device"
	"castellan/domain/access/intent"
	"castellan/domain/access/mfa"
	"castellan/domain/access/passkey"
	"castellan/domain/kit/audit"
)

// Version is the version of Evidence.
const Version = 1

// Evidence is the wire form, also of the file that castellan intent verify reads.
type Evidence struct {
	Version      int     `json:"v" example:"1"`
	Document     string  `json:"document" doc:"the intent, canonical JSON (RFC 8785)" example:"{\"action\":\"WITHDRAW\"}"`
	IntentDigest string  `json:"intentDigest" doc:"base64url of the SHA-256 of document"`
	Proofs       []Proof `json:"proofs" doc:"the completed methods, in their order, and a denial"`
	Policy       Policy  `json:"policy" doc:"requirements at the start of the challenge"`
	Outcome      Outcome `json:"outcome"`
	Audit        *Audit  `json:"audit" doc:"the audit row of the outcome; null before it"`
}

func (Evidence) SchemaName() string { return "Evidence" }

// Proof is a completed method. DeviceID, JWS and JWK are empty for a method that no device signed.
type Proof struct {
	Method   string `json:"method" enum:"TOTP,PUSH,MAIL,SMS"`
	DeviceID string `json:"deviceId" doc:"empty unless a device signed"`
	JWS      string `json:"jws" doc:"a JWS (RFC 7515), or webauthn:<assertion>" example:"eyJhbGciOiJFUzI1NiIs…"`
	JWK      string `json:"jwk" doc:"public key of the device at that time (RFC 7517)" example:"{\"crv\":\"P-256\"}"`
	At       int64  `json:"at" doc:"epoch ms" example:"1767225600000"`
	// Remembered is present if no value was given.
	Remembered bool `json:"remembered,omitempty" doc:"the client was remembered: it proved its key instead of the method"`
}

func (Proof) SchemaName() string { return "EvidenceProof" }

// Policy is the part of the policy that the challenge had to fulfil.
type Policy struct {
	ID       int64    `json:"id" doc:"0: the built-in default"`
	Required int      `json:"required" doc:"number of methods to complete"`
	Methods  []string `json:"methods" doc:"the offered methods"`
	Intent   string   `json:"intent" enum:"optional,required"`
}

func (Policy) SchemaName() string { return "EvidencePolicy" }

// Outcome is how the challenge ended.
type Outcome struct {
	State  string `json:"state" enum:"PENDING,EXECUTING,SUCCESS,FAILURE,DENIED,CLOSED"`
	Detail string `json:"detail" doc:"of a failure: its code"`
}

func (Outcome) SchemaName() string { return "EvidenceOutcome" }

// Audit names the audit row of the outcome, and its hash in the chain.
type Audit struct {
	ID   string    `json:"id" doc:"chain/seq" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA.0/17"`
	Hash string    `json:"hash" doc:"hex" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	At   time.Time `json:"-"`
}

func (Audit) SchemaName() string { return "EvidenceAudit" }

// Of returns the evidence of a challenge. document is its intent, row the audit row of its outcome; nil before it.
func Of(c challenge.Challenge, document []byte, row *audit.Stored) Evidence {
	e := Evidence{Version: Version, Document: string(document), IntentDigest: c.IntentDigest, Proofs: []Proof{},
		Policy:  Policy{ID: c.PolicyID, Required: c.Required, Methods: []string{}, Intent: intent.Optional},
		Outcome: Outcome{State: state(c, row)}}
	if c.SignIntent {
		e.Policy.Intent = intent.Required
	}
	for _, m := range c.CompletedMethods() {
		e.Proofs = append(e.Proofs, proof(m))
	}
	for _, m := range c.Methods {
		e.Policy.Methods = append(e.Policy.Methods, string(m.Name))
		if m.Order == 0 && m.CompletedAt > 0 { // denied
			e.Proofs = append(e.Proofs, proof(m))
		}
	}
	if row != nil {
		e.Audit = &Audit{ID: fmt.Sprintf("%s/%d", row.Chain, row.Seq), Hash: hex.EncodeToString(row.Hash)}
		if row.Outcome != audit.Success {
			e.Outcome.Detail = row.Detail
		}
	}
	return e
}

func proof(m challenge.Method) Proof {
	p := Proof{Method: string(m.Name), At: m.CompletedAt, Remembered: m.Remembered != ""}
	if m.Proof != nil {
		p.DeviceID, p.JWS, p.JWK = m.Proof.DeviceID, m.Proof.JWS, m.Proof.JWK
	}
	return p
}

func state(c challenge.Challenge, row *audit.Stored) string {
	switch c.State {
	case challenge.Executing:
		return "EXECUTING"
	case challenge.Denied:
		return "DENIED"
	case challenge.Closed:
		return "CLOSED"
	case challenge.Done:
		if row != nil && row.Outcome != audit.Success {
			return "FAILURE"
		}
		return "SUCCESS"
	}
	return "PENDING"
}

// Verify checks the evidence without anything else: the document is canonical and has the digest; each signature is by
// its key, by its device and for this challenge, and covers the document if it claims to or the policy requires it;
// and a success has as many completed methods as the policy requires. The error names the first fault.
func (e Evidence) Verify() (intent.Document, error) {
	d, err := intent.Parse([]byte(e.Document))
	switch {
	case e.Version != Version:
		return d, fmt.Errorf("v: is %d, not %d", e.Version, Version)
	case err != nil:
		return d, fmt.Errorf("document: %w", err)
	case intent.Digest([]byte(e.Document)) != e.IntentDigest:
		return d, fmt.Errorf("intentDigest: is not the SHA-256 of the document")
	}
	done := 0
	for i, p := range e.Proofs {
		if err := e.verify(d, p); err != nil {
			return d, fmt.Errorf("proofs[%d]: %w", i, err)
		}
		done++
	}
	if (e.Outcome.State == "SUCCESS" || e.Outcome.State == "FAILURE") && done < e.Policy.Required {
		return d, fmt.Errorf("proofs: %d methods are completed, the policy requires %d", done, e.Policy.Required)
	}
	return d, nil
}

func (e Evidence) verify(d intent.Document, p Proof) error {
	if strings.HasPrefix(p.JWS, passkey.Text) {
		return e.verifyPasskey(d, p)
	}
	if p.JWS == "" {
		if p.Method == string(challenge.PUSH) && (!p.Remembered || e.Policy.Intent == intent.Required) {
			return fmt.Errorf("jws: a push without a signature")
		}
		return nil
	}
	key, err := device.ParseKey([]byte(p.JWK))
	if err != nil {
		return fmt.Errorf("jwk: %w", err)
	}
	c, ok := key.Check(p.JWS)
	switch {
	case !ok:
		return fmt.Errorf("jws: is not a signature of the key")
	case c.Issuer != p.DeviceID:
		return fmt.Errorf("jws: is of another device")
	case c.Challenge != d.ChallengeID:
		return fmt.Errorf("jws: is for another challenge")
	case c.Intent != "" && c.Intent != e.IntentDigest:
		return fmt.Errorf("jws: is for another document")
	case c.Intent == "" && e.Policy.Intent == intent.Required && p.Method == string(challenge.PUSH):
		return fmt.Errorf("jws: does not cover the document, which the policy requires")
	}
	return nil
}

// verifyPasskey checks the assertion of a passkey. It covers the document, except at a login by the passkey alone: that
// one was made before the document, and covers the ticket of the login.
func (e Evidence) verifyPasskey(d intent.Document, p Proof) error {
	challenge, ok := e.asserted(p)
	switch {
	case !ok:
		return fmt.Errorf("jws: is not an assertion of the key")
	case challenge != e.IntentDigest && (e.Policy.Intent == intent.Required || d.Action != mfa.Login):
		return fmt.Errorf("jws: is for another document")
	}
	return nil
}

// asserted returns the challenge that the passkey of a proof signed.
func (Evidence) asserted(p Proof) (challenge string, ok bool) {
	key, err := passkey.ParseKey([]byte(p.JWK))
	if err != nil {
		return "", false
	}
	return passkey.Evident(p.JWS, key)
}

// Signed reports whether every push covers the document. Without it the evidence proves the challenge that a device
// answered, but not what the device showed.
func (e Evidence) Signed() bool {
	for _, p := range e.Proofs {
		if p.JWS == "" {
			continue
		}
		if strings.HasPrefix(p.JWS, passkey.Text) {
			if challenge, ok := e.asserted(p); !ok || challenge != e.IntentDigest {
				return false
			}
			continue
		}
		key, err := device.ParseKey([]byte(p.JWK))
		if err != nil {
			return false
		}
		if c, ok := key.Check(p.JWS); !ok || c.Intent != e.IntentDigest {
			return false
		}
	}
	return true
}

// Package evidence is the proof of an approval: the document that was shown, the signatures under it, and how the
// challenge ended. The service signs all of it (D-EXT-09).
//
// The one idea: Verify needs nothing but the evidence, and reports which of its facts no signature covers. A reader
// without access to the service can check that the owner of a device approved or denied exactly this operation.
//
// Start reading at Evidence, then Verify (verify.go).
package evidence

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
	"castellan/domain/kit/audit"
)

// Version is the version of Evidence. Version 1, of release 0.9, has no statement of the service, no method ids and no
// decisions; its keys are JSON texts.
const Version = 2

// The decisions of a proof, as devices sign them.
const (
	Approved = "APPROVED"
	Denied   = "DENIED"
)

// Evidence is the wire form, also of the file that castellan intent verify reads.
type Evidence struct {
	Version      int        `json:"v" example:"2"`
	Document     string     `json:"document" doc:"the intent, canonical (RFC 8785)" example:"{\"action\":\"WITHDRAW\"}"`
	IntentDigest string     `json:"intentDigest" doc:"base64url of the SHA-256 of document"`
	Proofs       []Proof    `json:"proofs" doc:"the completed methods, in their order, and a denial"`
	Policy       Policy     `json:"policy" doc:"requirements at the start of the challenge"`
	Outcome      Outcome    `json:"outcome"`
	Audit        *Audit     `json:"audit" doc:"the audit row of the outcome; null before it"`
	Service      *Statement `json:"service" doc:"the signature of the service over all of it"`
}

func (Evidence) SchemaName() string { return "Evidence" }

// Proof is a completed or denied method. DeviceID, JWS and JWK are empty for a method that no device signed.
type Proof struct {
	Method   challenge.Name `json:"method"`
	MethodID string         `json:"methodId" doc:"claim mid of a device's signature"`
	Decision string         `json:"decision" enum:"APPROVED,DENIED"`
	DeviceID string         `json:"deviceId" doc:"empty unless a device signed"`
	JWS      string         `json:"jws" doc:"a JWS (RFC 7515), or webauthn:<assertion>" example:"eyJhbGciOiJFUzI1NiIs…"`
	JWK      *JWK           `json:"jwk" doc:"public key of the device at that time; null unless a device signed"`
	At       int64          `json:"at" doc:"epoch ms" example:"1767225600000"`
	// Remembered is present if no value was given.
	Remembered bool `json:"remembered,omitempty" doc:"the client was remembered: it proved its key instead of the method"`
}

func (Proof) SchemaName() string { return "EvidenceProof" }

// JWK is a public key (RFC 7517) by its required members. Its JSON is the form that RFC 7638 hashes.
type JWK struct {
	Curve    string `json:"crv,omitempty" example:"P-256"`
	Exponent string `json:"e,omitempty" example:"AQAB"`
	Type     string `json:"kty" example:"EC"`
	Modulus  string `json:"n,omitempty" example:"sXchDaQebHnPiGvyDOAT4sag…"`
	X        string `json:"x,omitempty" example:"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"`
	Y        string `json:"y,omitempty" example:"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"`
}

func (JWK) SchemaName() string { return "EvidenceKey" }

// UnmarshalJSON reads a JWK, and the text of one as version 1 has it; "" is no key.
func (k *JWK) UnmarshalJSON(raw []byte) error {
	type plain JWK
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return json.Unmarshal(raw, (*plain)(k))
	}
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), (*plain)(k))
}

// text returns the members that RFC 7638 hashes, in its order; nil for no key.
func (k *JWK) text() []byte {
	if k == nil {
		return nil
	}
	b, _ := json.Marshal(*k) // strings only: it cannot fail
	return b
}

// Thumbprint returns the thumbprint of RFC 7638; "" for no key.
func (k *JWK) Thumbprint() string {
	if k == nil {
		return ""
	}
	return intent.Digest(k.text())
}

// keyOf reads a stored key; nil if it is damaged.
func keyOf(jwk string) *JWK {
	k := new(JWK)
	if json.Unmarshal([]byte(jwk), k) != nil {
		return nil
	}
	return k
}

// Policy is the part of the policy that the challenge had to fulfil.
type Policy struct {
	ID       int64            `json:"id" doc:"0: the built-in default"`
	Required int              `json:"required" doc:"number of methods to complete"`
	Methods  []challenge.Name `json:"methods" doc:"the offered methods"`
	Intent   string           `json:"intent" enum:"optional,required"`
}

func (Policy) SchemaName() string { return "EvidencePolicy" }

// The states of an outcome. UNKNOWN is a completed challenge whose audit row is archived: only the row says whether the
// action succeeded.
const (
	statePending   = "PENDING"
	stateExecuting = "EXECUTING"
	stateSuccess   = "SUCCESS"
	stateFailure   = "FAILURE"
	stateDenied    = "DENIED"
	stateClosed    = "CLOSED"
	stateUnknown   = "UNKNOWN"
)

// Outcome is how the challenge ended.
type Outcome struct {
	State  string `json:"state" enum:"PENDING,EXECUTING,SUCCESS,FAILURE,DENIED,CLOSED,UNKNOWN"`
	Detail string `json:"detail" doc:"of a failure: its code"`
}

func (Outcome) SchemaName() string { return "EvidenceOutcome" }

// Audit names the audit row of the outcome, and its hash in the chain.
type Audit struct {
	ID   string `json:"id" doc:"chain/seq" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA.0/17"`
	Hash string `json:"hash" doc:"hex" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
}

func (Audit) SchemaName() string { return "EvidenceAudit" }

// Of returns the evidence of a challenge, without the statement of the service (Sign). document is its intent, row the
// audit row of its outcome; nil before it.
func Of(c challenge.Challenge, document []byte, row *audit.Stored) Evidence {
	e := Evidence{Version: Version, Document: string(document), IntentDigest: c.IntentDigest, Proofs: []Proof{},
		Policy:  Policy{ID: c.PolicyID, Required: c.Required, Methods: []challenge.Name{}, Intent: intent.Optional},
		Outcome: Outcome{State: state(c, row)}}
	if c.SignIntent {
		e.Policy.Intent = intent.Required
	}
	for _, m := range c.CompletedMethods() {
		e.Proofs = append(e.Proofs, proof(m, Approved))
	}
	for _, m := range c.Methods {
		e.Policy.Methods = append(e.Policy.Methods, m.Name)
		if m.Order == 0 && m.CompletedAt > 0 {
			e.Proofs = append(e.Proofs, proof(m, Denied))
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

func proof(m challenge.Method, decision string) Proof {
	p := Proof{Method: m.Name, MethodID: m.ID, Decision: decision, At: m.CompletedAt,
		Remembered: m.Remembered != ""}
	if m.Proof != nil {
		p.DeviceID, p.JWS, p.JWK = m.Proof.DeviceID, m.Proof.JWS, keyOf(m.Proof.JWK)
	}
	return p
}

func state(c challenge.Challenge, row *audit.Stored) string {
	switch c.State {
	case challenge.Executing:
		return stateExecuting
	case challenge.Denied:
		return stateDenied
	case challenge.Closed:
		return stateClosed
	case challenge.Done:
		switch {
		case row == nil:
			return stateUnknown
		case row.Outcome != audit.Success:
			return stateFailure
		}
		return stateSuccess
	}
	return statePending
}

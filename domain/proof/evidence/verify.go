package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/jose"
	"castellan/domain/proof/device"
)

// answerPath ends the target of a signature that answers a challenge. The base path of the service precedes it.
const answerPath = "/auth/2fa/challenge/complete"

// Verdict is what a piece of evidence proves.
type Verdict struct {
	Document intent.Document
	Proofs   []Signature // of each proof
	Service  string      // thumbprint of the key of the service; "" for version 1
	// Blind reports whether a device answered without signing the document: it proves the answer, and not what the
	// device showed.
	Blind bool
	// Unsigned lists the facts that no verified signature covers. It is empty from version 2 on.
	Unsigned []string
}

// Signature is what the signature of a proof names. Thumbprint and Endpoint are empty without one.
type Signature struct {
	Thumbprint string // of the key
	Endpoint   string // method and URL of the answer; of a passkey the origin of the page
	Decision   string // Approved or Denied, also of a method without a signature
	methodID   string
	document   bool // it covers the document
	challenge  bool // it names the challenge, by its id or by the document
}

// Read reads evidence: the answer of the endpoint, or its member data. It refuses a repeated member, of which another
// reader could see the other value.
func Read(text []byte) (e Evidence, err error) {
	var in struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return e, err
	}
	if !distinct(text, maxDepth) {
		return e, errors.New("a member is repeated, or nested too deeply")
	}
	if in.Data != nil {
		text = in.Data
	}
	return e, json.Unmarshal(text, &e)
}

// maxDepth bounds the nesting of evidence, which has five levels.
const maxDepth = 8

// distinct reports whether no object in a JSON text has two members of one name. Case is ignored, as by encoding/json,
// for which ſ is also an s, and the sign of kelvin a k.
func distinct(raw json.RawMessage, depth int) bool {
	var parts []json.RawMessage
	if strings.HasPrefix(strings.TrimSpace(string(raw)), "{") {
		all, ok := jose.Members(raw)
		names := map[string]bool{}
		for name, value := range all {
			names[strings.ToLower(strings.ToUpper(name))] = true
			parts = append(parts, value)
		}
		if !ok || len(names) != len(all) {
			return false
		}
	} else if json.Unmarshal(raw, &parts) != nil {
		return true // neither an object nor an array
	}
	return depth > 0 && !slices.ContainsFunc(parts, func(one json.RawMessage) bool { return !distinct(one, depth-1) })
}

// Verify checks the evidence without anything else. The error names the first fault.
//
//   - The document is canonical and has the digest.
//   - Each signature is by its key and its device, for an answer to this challenge and method, and names the decision.
//     It covers the document if it claims to or the policy requires it.
//   - A method counts once. A success has as many approvals as the policy requires, and a denial is signed.
//   - From version 2 on the service has signed all facts.
func (e Evidence) Verify() (v Verdict, err error) {
	v.Document, err = intent.Parse([]byte(e.Document))
	switch {
	case e.Version != 1 && e.Version != Version:
		return v, fmt.Errorf("v: is %d, not 1 or %d", e.Version, Version)
	case e.Version == 1 && e.Service != nil:
		return v, errors.New("service: version 1 has no statement")
	case err != nil:
		return v, fmt.Errorf("document: %w", err)
	case intent.Digest([]byte(e.Document)) != e.IntentDigest:
		return v, errors.New("intentDigest: is not the SHA-256 of the document")
	}
	for i, p := range e.Proofs {
		s, err := e.verify(v.Document, p)
		if err != nil {
			return v, fmt.Errorf("proofs[%d]: %w", i, err)
		}
		v.Proofs = append(v.Proofs, s)
		v.Blind = v.Blind || p.JWS != "" && !s.document
	}
	if err := e.counts(v.Proofs); err != nil {
		return v, err
	}
	if e.Version == 1 {
		v.Unsigned = e.unsigned(v)
		return v, nil
	}
	if err := e.verifyStatement(); err != nil {
		return v, fmt.Errorf("service: %w", err)
	}
	v.Service = e.Service.JWK.Thumbprint()
	return v, nil
}

// verify checks a proof and returns what its signature names.
func (e Evidence) verify(d intent.Document, p Proof) (s Signature, err error) {
	switch {
	case strings.HasPrefix(p.JWS, passkey.Text):
		s, err = e.verifyPasskey(d, p)
	case p.JWS != "":
		s, err = e.verifyDevice(d, p)
	case p.Method == challenge.PUSH && (!p.Remembered || e.Policy.Intent == intent.Required):
		err = errors.New("jws: a push without a signature")
	default:
		s.Decision, s.methodID = Approved, p.MethodID
	}
	switch {
	case err != nil:
		return s, err
	case !slices.Contains(e.Policy.Methods, p.Method):
		return s, errors.New("method: is not in policy.methods")
	case e.Version > 1 && p.Decision != s.Decision:
		return s, errors.New("decision: is not the signed one")
	case e.Version > 1 && p.MethodID != s.methodID:
		return s, errors.New("methodId: is not the signed one")
	}
	return s, nil
}

func (e Evidence) verifyDevice(d intent.Document, p Proof) (s Signature, err error) {
	key, err := device.ParseKey(p.JWK.text())
	if err != nil {
		return s, fmt.Errorf("jwk: %w", err)
	}
	c, ok := key.Check(p.JWS)
	path, _, _ := strings.Cut(c.Target, "?")
	number, numbered := strings.CutPrefix(c.Value, Approved+":")
	push := p.Method == challenge.PUSH
	s = Signature{Thumbprint: p.JWK.Thumbprint(), Endpoint: c.Method + " " + c.Audience + c.Target, Decision: Approved,
		methodID: c.MethodID, document: c.Intent != "", challenge: true}
	decides := c.Value == Approved || numbered && len(number) == 2 && strings.Trim(number, "0123456789") == ""
	if c.Value == Denied {
		decides, s.Decision = true, Denied
	}
	switch {
	case !ok:
		return s, errors.New("jws: is not a signature of the key")
	case c.Issuer != p.DeviceID:
		return s, errors.New("jws: is of another device")
	case c.Challenge != d.ChallengeID:
		return s, errors.New("jws: is for another challenge")
	case c.Method != "POST" || !strings.HasSuffix(path, answerPath) || c.MethodID == "":
		return s, errors.New("jws: does not answer a challenge")
	case push != decides:
		return s, errors.New("jws: is for another method")
	case c.Intent != "" && c.Intent != e.IntentDigest:
		return s, errors.New("jws: is for another document")
	case c.Intent == "" && push && e.Policy.Intent == intent.Required:
		return s, errors.New("jws: does not cover the document, which the policy requires")
	}
	return s, nil
}

// verifyPasskey checks the assertion of a passkey, which approves. It covers the document, except at a login by the
// passkey alone: that one was made before the document, and covers the ticket of the login.
func (e Evidence) verifyPasskey(d intent.Document, p Proof) (s Signature, err error) {
	key, err := passkey.ParseKey(p.JWK.text())
	if err != nil {
		return s, fmt.Errorf("jwk: %w", err)
	}
	signed, ok := passkey.Evident(p.JWS, key)
	covers := signed.Challenge == e.IntentDigest
	switch {
	case !ok:
		return s, errors.New("jws: is not an assertion of the key")
	case p.Method != challenge.PUSH:
		return s, errors.New("jws: is for another method")
	case !covers && (e.Policy.Intent == intent.Required || d.Action != mfa.Login):
		return s, errors.New("jws: is for another document")
	}
	return Signature{Thumbprint: p.JWK.Thumbprint(), Endpoint: signed.Origin, Decision: Approved, methodID: p.MethodID,
		document: covers, challenge: covers}, nil
}

// counts checks that each method is listed once, and that the decisions are those of the outcome.
func (e Evidence) counts(all []Signature) error {
	seen := map[string]bool{}
	approvals, denials := 0, 0
	for i, s := range all {
		method, id := string(e.Proofs[i].Method), "id "+s.methodID
		if seen[method] || s.methodID != "" && seen[id] {
			return fmt.Errorf("proofs[%d]: the method %s is listed twice", i, method)
		}
		seen[method], seen[id] = true, true
		if s.Decision == Denied {
			denials++
		} else {
			approvals++
		}
	}
	switch state := e.Outcome.State; state {
	case stateSuccess, stateFailure, stateExecuting, stateUnknown:
		if need := max(1, e.Policy.Required); approvals < need {
			return fmt.Errorf("proofs: %d methods are approved, and %s needs %d", approvals, state, need)
		}
	case stateDenied:
		if denials != 1 {
			return errors.New("proofs: the outcome is DENIED, and no signature denies")
		}
		return nil
	case statePending, stateClosed:
	default:
		return fmt.Errorf("outcome.state: %q is unknown", state)
	}
	if denials > 0 {
		return fmt.Errorf("proofs: a signature denies, and the outcome is %s", e.Outcome.State)
	}
	return nil
}

// unsigned lists the facts of evidence without a statement that no signature of a device covers.
func (e Evidence) unsigned(v Verdict) (facts []string) {
	shown := slices.ContainsFunc(v.Proofs, func(s Signature) bool { return s.document })
	if !shown {
		facts = append(facts, "the document")
	}
	for i, p := range e.Proofs {
		switch s := v.Proofs[i]; {
		case p.JWS == "" || p.Method != challenge.PUSH: // a device signs a code, and not that it was right
			facts = append(facts, "the method "+string(p.Method))
		case !s.challenge:
			facts = append(facts, "the challenge and the device of the method "+string(p.Method))
		case strings.HasPrefix(p.JWS, passkey.Text):
			facts = append(facts, "the device of the method "+string(p.Method))
		}
	}
	return append(facts, "the times of the methods", "the requirements of the policy", "the outcome", "the audit row")
}

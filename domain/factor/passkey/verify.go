package passkey

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"castellan/domain/kit/jose"
)

// The flags of authenticator data (WebAuthn, section 6.1).
const (
	flagPresent    = 1 << 0 // UP
	flagVerified   = 1 << 2 // UV
	flagEligible   = 1 << 3 // BE
	flagBackedUp   = 1 << 4 // BS
	flagAttested   = 1 << 6 // AT
	flagExtensions = 1 << 7 // ED
)

// headBytes is the length of authenticator data before its attested credential: the hash of the party, the flags and
// the counter.
const headBytes = 32 + 1 + 4

// The reasons of a refusal. They are for logs and tests: a client gets the same answer for all of them.
var (
	ErrForm      = errors.New("passkey: not a well-formed answer")
	ErrType      = errors.New("passkey: the answer of another ceremony")
	ErrChallenge = errors.New("passkey: another challenge")
	ErrOrigin    = errors.New("passkey: an origin that is not allowed")
	ErrFramed    = errors.New("passkey: made in the frame of another site")
	ErrParty     = errors.New("passkey: for another relying party")
	ErrPresence  = errors.New("passkey: without the presence of the user")
	ErrVerified  = errors.New("passkey: without verification of the user")
	ErrBackup    = errors.New("passkey: contradictory flags of a backup")
	ErrKey       = errors.New("passkey: a key or algorithm that is not allowed")
	ErrFormat    = errors.New("passkey: an attestation that is not none")
	ErrResident  = errors.New("passkey: not discoverable")
	ErrSignature = errors.New("passkey: not a signature of the key")
	ErrHandle    = errors.New("passkey: of another account")
	ErrCount     = errors.New("passkey: the counter did not increase")
)

// answer is the part of a response that registrations and assertions share.
type answer struct {
	id         []byte
	clientData []byte
	challenge  string
	origin     string
	response   map[string]json.RawMessage
	extensions map[string]json.RawMessage
}

// read parses a RegistrationResponseJSON or AuthenticationResponseJSON.
func read(raw []byte, most int, ceremony string) (a answer, err error) {
	if len(raw) > most || !utf8.Valid(raw) {
		return a, ErrForm
	}
	all, ok := jose.Members(raw)
	if !ok || jose.Text(all["type"]) != publicKey {
		return a, ErrForm
	}
	id, named := jose.Text(all["id"]), jose.Text(all["rawId"])
	if a.id, ok = jose.Decode(id); !ok || id != named || len(a.id) < minID || len(a.id) > maxID {
		return a, ErrForm
	}
	if a.response, ok = jose.Members(all["response"]); !ok {
		return a, ErrForm
	}
	if a.extensions, ok = jose.Members(all["clientExtensionResults"]); !ok && all["clientExtensionResults"] != nil {
		return a, ErrForm
	}
	if a.clientData, ok = jose.Decode(jose.Text(a.response["clientDataJSON"])); !ok {
		return a, ErrForm
	}
	client, ok := jose.Members(a.clientData)
	if !ok || !utf8.Valid(a.clientData) {
		return a, ErrForm
	}
	if jose.Text(client["type"]) != ceremony {
		return a, ErrType
	}
	if a.challenge, a.origin = jose.Text(client["challenge"]), jose.Text(client["origin"]); a.challenge == "" {
		return a, ErrForm
	}
	if framed := client["crossOrigin"]; framed != nil && string(framed) != "false" || client["topOrigin"] != nil {
		return a, ErrFramed
	}
	return a, nil
}

// from compares the origin of an answer.
func (p Party) from(a answer) error {
	if !slices.Contains(p.Origins, a.origin) {
		return ErrOrigin
	}
	return nil
}

// authData is parsed authenticator data.
type authData struct {
	flags  byte
	count  uint32
	aaguid [16]byte
	id     []byte
	key    Key
}

// data parses authenticator data to its last byte. attested: it must have a credential, else it must have none.
func (p Party) data(raw []byte, attested bool) (d authData, err error) {
	if len(raw) < headBytes {
		return d, ErrForm
	}
	party := sha256.Sum256([]byte(p.ID))
	if subtle.ConstantTimeCompare(party[:], raw[:32]) != 1 {
		return d, ErrParty
	}
	d.flags, d.count = raw[32], binary.BigEndian.Uint32(raw[33:headBytes])
	rest := raw[headBytes:]
	if attested != (d.flags&flagAttested != 0) {
		return d, ErrForm
	}
	if attested {
		if rest, err = d.credential(rest); err != nil {
			return d, err
		}
	}
	if d.flags&flagExtensions != 0 {
		var extensions map[string]cbor.RawMessage
		if rest, err = strict.UnmarshalFirst(rest, &extensions); err != nil {
			return d, ErrForm
		}
	}
	switch {
	case len(rest) > 0:
		return d, ErrForm
	case d.flags&flagPresent == 0:
		return d, ErrPresence
	case d.flags&flagVerified == 0:
		return d, ErrVerified
	case d.flags&flagBackedUp != 0 && d.flags&flagEligible == 0:
		return d, ErrBackup
	}
	return d, nil
}

// credential reads attested credential data: the model, the id and the key. The id is that of the answer, which has
// bounds.
func (d *authData) credential(raw []byte) (rest []byte, err error) {
	if len(raw) < 18 {
		return nil, ErrForm
	}
	copy(d.aaguid[:], raw)
	n := int(binary.BigEndian.Uint16(raw[16:18]))
	if raw = raw[18:]; n > len(raw) {
		return nil, ErrForm
	}
	d.id = raw[:n]
	key, rest, ok := parseCOSE(raw[n:])
	if !ok {
		return nil, ErrKey
	}
	d.key = key
	return rest, nil
}

// attestation is an attestation object.
type attestation struct {
	Format    string          `cbor:"fmt"`
	Statement cbor.RawMessage `cbor:"attStmt"`
	AuthData  []byte          `cbor:"authData"`
}

// self is the statement of a packed attestation by the credential's own key.
type self struct {
	Alg  int             `cbor:"alg"`
	Sig  []byte          `cbor:"sig"`
	X5C  cbor.RawMessage `cbor:"x5c"`
	DAA  cbor.RawMessage `cbor:"ecdaaKeyId"`
	Rest cbor.RawMessage `cbor:"ver"`
}

// Register verifies a RegistrationResponseJSON and returns the new credential, without DeviceID, UserID, Name and
// times. issued reports whether the challenge was issued for this registration. Errors are the reasons above.
//
// The attestation is none. A browser passes on the packed attestation of an authenticator by its own key, even if none
// was requested (WebAuthn, section 5.1.3); its signature is verified too.
func (p Party) Register(raw []byte, issued func(challenge string) bool) (Credential, error) {
	var none Credential
	a, err := read(raw, MaxAttestation, "webauthn.create")
	switch {
	case err != nil:
		return none, err
	case !issued(a.challenge):
		return none, ErrChallenge
	}
	if err := p.from(a); err != nil {
		return none, err
	}
	object, ok := jose.Decode(jose.Text(a.response["attestationObject"]))
	var o attestation
	if !ok || strict.Unmarshal(object, &o) != nil {
		return none, ErrForm
	}
	d, err := p.data(o.AuthData, true)
	if err != nil {
		return none, err
	}
	if !bytes.Equal(d.id, a.id) {
		return none, ErrForm
	}
	if err := d.attested(o, a.clientData); err != nil {
		return none, err
	}
	if props, there := a.extensions["credProps"]; there {
		all, ok := jose.Members(props)
		if !ok {
			return none, ErrForm
		}
		if rk := all["rk"]; rk != nil && string(rk) != "true" {
			return none, ErrResident
		}
	}
	return Credential{ID: d.id, Key: d.key, AAGUID: d.aaguid, Eligible: d.flags&flagEligible != 0,
		BackedUp: d.flags&flagBackedUp != 0, Count: d.count, Transports: transports(a.response["transports"])}, nil
}

func (d authData) attested(o attestation, clientData []byte) error {
	switch o.Format {
	case "none":
		if !bytes.Equal(o.Statement, []byte{0xa0}) {
			return ErrForm
		}
		return nil
	case "packed":
		var s self
		if strict.Unmarshal(o.Statement, &s) != nil {
			return ErrForm
		}
		if s.X5C != nil || s.DAA != nil || s.Rest != nil {
			return ErrFormat
		}
		if s.Alg != d.key.alg() {
			return ErrKey
		}
		if !d.key.verify(signedBytes(o.AuthData, clientData), s.Sig) {
			return ErrSignature
		}
		return nil
	}
	return ErrFormat
}

// The transports that are stored, in at most this number. A browser may report others.
var known = []string{"ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb"}

// transports returns the known transports of a registration, sorted; nil for none. They are hints for the browser.
func transports(raw json.RawMessage) (out []string) {
	var all []string
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for _, t := range known {
		if slices.Contains(all, t) {
			out = append(out, t)
		}
	}
	return out
}

// Assertion is a parsed AuthenticationResponseJSON whose signature is not verified yet.
type Assertion struct {
	ID        []byte // of the credential
	Challenge string // that the browser was given
	Handle    string // of the user; "" if the authenticator did not send it
	BackedUp  bool
	Count     uint32
	eligible  bool
	signed    []byte
	sig       []byte
}

// Parse reads an AuthenticationResponseJSON, and verifies everything except the challenge, the signature and the facts
// about the credential. Errors are the reasons above.
func (p Party) Parse(raw []byte) (Assertion, error) {
	var none Assertion
	a, err := read(raw, MaxAssertion, "webauthn.get")
	if err != nil {
		return none, err
	}
	if err := p.from(a); err != nil {
		return none, err
	}
	authenticator, ok := jose.Decode(jose.Text(a.response["authenticatorData"]))
	sig, okSig := jose.Decode(jose.Text(a.response["signature"]))
	if !ok || !okSig || len(sig) == 0 {
		return none, ErrForm
	}
	d, err := p.data(authenticator, false)
	if err != nil {
		return none, err
	}
	handle := jose.Text(a.response["userHandle"])
	if h := a.response["userHandle"]; h != nil && string(h) != "null" {
		if b, ok := jose.Decode(handle); !ok || len(b) == 0 || len(b) > 64 {
			return none, ErrForm
		}
	}
	return Assertion{ID: a.id, Challenge: a.challenge, Handle: handle, BackedUp: d.flags&flagBackedUp != 0,
		Count: d.count, eligible: d.flags&flagEligible != 0, signed: signedBytes(authenticator, a.clientData),
		sig: sig}, nil
}

// By verifies that a credential made the assertion. Its counter is judged by Falls, and its flags of a backup by Moves.
// Errors are the reasons above.
func (a Assertion) By(c Credential) error {
	if right := c.Key.verify(a.signed, a.sig); subtle.ConstantTimeCompare(a.ID, c.ID) != 1 || !right {
		return ErrSignature
	}
	return nil
}

// Moves returns the write by which a credential gets the changed flags of an assertion; false if they are the same. A
// passkey that begins to be synchronised or backed up settles again: copies of it may be on other devices.
//
// WebAuthn Level 3, section 7.2, step 20, refuses a changed flag BE. Managers of passkeys do change it, when they learn
// to synchronise, and their users would be locked out (D-AUTH-18).
func (a Assertion) Moves(c Credential, now time.Time) (w Moved, changed bool) {
	w = Moved{UserID: c.UserID, DeviceID: c.DeviceID, Eligible: a.eligible, BackedUp: a.BackedUp, Since: c.Since}
	if a.eligible && !c.Eligible || a.BackedUp && !c.BackedUp {
		w.Since = now
	}
	return w, a.eligible != c.Eligible || a.BackedUp != c.BackedUp
}

// Falls reports whether the counter of an assertion did not rise since the last one. It is a sign of a copied
// authenticator. One without a counter always sends 0.
func (a Assertion) Falls(stored uint32) bool {
	return (a.Count != 0 || stored != 0) && a.Count <= stored
}

func signedBytes(authenticator, clientData []byte) []byte {
	sum := sha256.Sum256(clientData)
	return append(slices.Clone(authenticator), sum[:]...)
}

// Text is the compact form of an assertion as evidence keeps it: base64url of the JSON. No JWS has this prefix.
const Text = "webauthn:"

// Evidence is what a kept assertion proves.
type Evidence struct{ Challenge, Origin string }

// Evident verifies the kept form of an assertion with a key: that its user was present and verified, and that it was
// made for an answer. It returns the challenge and the origin of the page that it signed.
func Evident(kept string, k Key) (e Evidence, ok bool) {
	encoded, is := strings.CutPrefix(kept, Text)
	raw, ok := jose.Decode(encoded)
	if !is || !ok {
		return e, false
	}
	a, err := read(raw, MaxAssertion, "webauthn.get")
	data, okData := jose.Decode(jose.Text(a.response["authenticatorData"]))
	sig, okSig := jose.Decode(jose.Text(a.response["signature"]))
	if err != nil || !okData || !okSig || len(data) < headBytes || data[32]&flagPresent == 0 ||
		data[32]&flagVerified == 0 || !k.verify(signedBytes(data, a.clientData), sig) {
		return e, false
	}
	return Evidence{a.challenge, a.origin}, true
}

// Keep returns the kept form of an AuthenticationResponseJSON.
func Keep(raw []byte) string { return Text + jose.Encode(raw) }

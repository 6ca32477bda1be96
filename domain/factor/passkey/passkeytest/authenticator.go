// Package passkeytest holds a software authenticator for tests.
//
// Start reading at Authenticator.
package passkeytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"castellan/domain/kit/storetest"
)

// The flags of authenticator data.
const (
	Present    = 1 << 0
	Verified   = 1 << 2
	Eligible   = 1 << 3
	BackedUp   = 1 << 4
	Attested   = 1 << 6
	Extensions = 1 << 7
)

// Authenticator is a browser with one discoverable passkey. Its exported fields may be changed between ceremonies, so
// that a test can make a wrong answer.
type Authenticator struct {
	Origin  string
	Party   string // rpId
	Flags   byte
	Count   uint32
	AAGUID  [16]byte
	ID      []byte
	Handle  string // base64url, from the creation options
	Key     crypto.Signer
	Client  func(map[string]any)           // changes the client data
	Object  func(map[string]any)           // changes the attestation object
	Cose    func(map[int]any)              // changes the COSE key
	Data    func([]byte) []byte            // changes the authenticator data before it is signed
	Wire    func(map[string]any)           // changes the response
	Rewrite func(clientData string) string // changes the text of the client data before it is signed
}

// New returns an authenticator with a new P-256 key for a page.
func New(t testing.TB, party, origin string) *Authenticator {
	t.Helper()
	k := storetest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	a := &Authenticator{Origin: origin, Party: party, Flags: Present | Verified | Eligible | BackedUp, Key: k,
		ID: make([]byte, 32)}
	rand.Read(a.ID)
	rand.Read(a.AAGUID[:])
	return a
}

// UseRSA replaces the key by an RSA key.
func (a *Authenticator) UseRSA(t testing.TB) {
	t.Helper()
	k := storetest.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
	a.Key = k
}

// Encode returns base64url without padding.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Options are the members of creation and request options that an authenticator reads.
type Options struct {
	Challenge string `json:"challenge"`
	RPID      string `json:"rpId"`
	RP        struct {
		ID string `json:"id"`
	} `json:"rp"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	AllowCredentials []struct {
		ID string `json:"id"`
	} `json:"allowCredentials"`
	ExcludeCredentials []struct {
		ID string `json:"id"`
	} `json:"excludeCredentials"`
	UserVerification string `json:"userVerification"`
}

// Read parses options.
func Read(t testing.TB, options []byte) (o Options) {
	t.Helper()
	if err := json.Unmarshal(options, &o); err != nil {
		t.Fatalf("%s: %v", options, err)
	}
	return o
}

// Create returns the RegistrationResponseJSON for creation options.
func (a *Authenticator) Create(t testing.TB, options []byte) []byte {
	t.Helper()
	o := Read(t, options)
	a.Handle = o.User.ID
	client := a.client(t, "webauthn.create", o.Challenge)
	data := a.data(t, true)
	object := map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data}
	if a.Object != nil {
		a.Object(object)
	}
	packed := storetest.Value(cbor.Marshal(object))(t)
	return a.wire(t, map[string]any{"clientDataJSON": Encode(client), "attestationObject": Encode(packed),
		"transports": []string{"internal", "hybrid"}})
}

// SelfAttest makes the attestation a packed one by the key itself. Set it as Object; client is the client data.
func (a *Authenticator) SelfAttest(t testing.TB, client []byte) func(map[string]any) {
	return func(o map[string]any) {
		data, _ := o["authData"].([]byte)
		sum := sha256.Sum256(client)
		sig := a.Sign(t, append(data[:len(data):len(data)], sum[:]...))
		o["fmt"], o["attStmt"] = "packed", map[string]any{"alg": a.alg(), "sig": sig}
	}
}

// Get returns the AuthenticationResponseJSON for request options. The counter rises by one if it is not 0.
func (a *Authenticator) Get(t testing.TB, options []byte) []byte {
	t.Helper()
	o := Read(t, options)
	if a.Count > 0 {
		a.Count++
	}
	client := a.client(t, "webauthn.get", o.Challenge)
	data := a.data(t, false)
	sum := sha256.Sum256(client)
	return a.wire(t, map[string]any{"clientDataJSON": Encode(client), "authenticatorData": Encode(data),
		"signature": Encode(a.Sign(t, append(data[:len(data):len(data)], sum[:]...))), "userHandle": a.Handle})
}

// ClientData returns the client data of a ceremony.
func (a *Authenticator) ClientData(t testing.TB, kind, challenge string) []byte {
	t.Helper()
	return a.client(t, kind, challenge)
}

func (a *Authenticator) client(t testing.TB, kind, challenge string) []byte {
	t.Helper()
	all := map[string]any{"type": kind, "challenge": challenge, "origin": a.Origin, "crossOrigin": false}
	if a.Client != nil {
		a.Client(all)
	}
	b := storetest.Value(json.Marshal(all))(t)
	if a.Rewrite != nil {
		b = []byte(a.Rewrite(string(b)))
	}
	return b
}

func (a *Authenticator) data(t testing.TB, attested bool) []byte {
	t.Helper()
	party := sha256.Sum256([]byte(a.Party))
	flags := a.Flags
	if attested {
		flags |= Attested
	}
	b := binary.BigEndian.AppendUint32(append(party[:], flags), a.Count)
	if attested {
		b = append(b, a.AAGUID[:]...)
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(a.ID))), a.ID...)
		b = append(b, a.cose(t)...)
	}
	if a.Data != nil {
		b = a.Data(b)
	}
	return b
}

func (a *Authenticator) alg() int {
	if _, is := a.Key.(*rsa.PrivateKey); is {
		return -257
	}
	return -7
}

func (a *Authenticator) cose(t testing.TB) []byte {
	t.Helper()
	var all map[int]any
	switch k := a.Key.Public().(type) {
	case *ecdsa.PublicKey:
		b := storetest.Value(k.Bytes())(t)
		all = map[int]any{1: 2, 3: -7, -1: 1, -2: b[1:33], -3: b[33:]}
	case *rsa.PublicKey:
		all = map[int]any{1: 3, 3: -257, -1: k.N.Bytes(), -2: []byte{1, 0, 1}}
	}
	if a.Cose != nil {
		a.Cose(all)
	}
	return storetest.Value(cbor.Marshal(all))(t)
}

// Sign returns the key's signature in the form of WebAuthn.
func (a *Authenticator) Sign(t testing.TB, message []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(message)
	return storetest.Value(a.Key.Sign(rand.Reader, sum[:], crypto.SHA256))(t)
}

func (a *Authenticator) wire(t testing.TB, response map[string]any) []byte {
	t.Helper()
	all := map[string]any{"id": Encode(a.ID), "rawId": Encode(a.ID), "type": "public-key", "response": response,
		"authenticatorAttachment": "platform", "clientExtensionResults": map[string]any{}}
	if a.Wire != nil {
		a.Wire(all)
	}
	return storetest.Value(json.Marshal(all))(t)
}

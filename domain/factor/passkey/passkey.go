// Package passkey owns the rules of passkeys: the options of a ceremony, and the verification of its answer by Web
// Authentication Level 3 (decision D-AUTH-18).
//
// The one idea: a verifier is strict about the part that a browser controls (type, challenge, origin) and the part
// that an authenticator controls (relying party, flags, counter, key). Both are under one signature. Each text has one
// reading: JSON without repeated members, CBOR without repeated keys, indefinite lengths, tags or trailing bytes. The
// attestation is none, so the maker of an authenticator is not verified.
//
// Start reading at Party. trust.go says which passkeys count for what. The store is in store.go; domain/proof/device
// registers passkeys as devices.
package passkey

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/jose"
)

// Limits of the inputs, in bytes, and the time that a browser gives its user.
const (
	MaxAttestation = 16 << 10 // of a registration, as JSON
	MaxAssertion   = 8 << 10  // of an assertion, as JSON
	maxID          = 1023     // of a credential (WebAuthn, section 7.1)
	minID          = 16
	HandleBytes    = 32 // of a user handle
	ceremonyMs     = 300_000
)

// Party is this service as a relying party.
type Party struct {
	ID      string   // the domain of the service's pages
	Name    string   // shown by the browser
	Origins []string // from which a ceremony is accepted, such as https://id.example.com
}

// NewParty returns the party of a service at a public base URL. related are further origins whose pages may use its
// passkeys (Related Origin Requests). An address is no domain, so a loopback address and the address of all
// interfaces are called localhost. false: the URL has no host.
func NewParty(publicURL, name string, related []string) (Party, bool) {
	origin, ok := OriginOf(publicURL)
	if !ok {
		return Party{}, false
	}
	u, err := url.Parse(origin)
	if err != nil {
		return Party{}, false
	}
	p := Party{ID: u.Hostname(), Name: name, Origins: []string{origin}}
	if ip, err := netip.ParseAddr(p.ID); err == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		p.ID = "localhost"
		local, _ := OriginOf(u.Scheme + "://localhost:" + u.Port())
		p.Origins = append(p.Origins, strings.TrimSuffix(local, ":"))
	}
	for _, o := range related {
		if !slices.Contains(p.Origins, o) {
			p.Origins = append(p.Origins, o)
		}
	}
	return p, true
}

// OriginOf returns the origin of a URL as a browser writes it: in lower case, without the default port.
func OriginOf(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	} else {
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host, true
}

// Credential is a registered passkey.
type Credential struct {
	DeviceID   string // of the device that it is
	UserID     string
	ID         []byte // as the authenticator chose it
	Key        Key
	AAGUID     [16]byte // the model of the authenticator; zero if it does not say
	Eligible   bool     // the flag BE of the last signature: the passkey may exist on several devices
	BackedUp   bool     // the flag BS of the last signature
	Count      uint32
	Transports []string // as the browser names them, such as internal or hybrid

	Brand, Model, Description, Platform string

	CreatedAt  time.Time
	LastUsedAt time.Time // zero: it has signed nothing since its registration
	Trust
}

// Descriptor names a credential to a browser.
type Descriptor struct {
	Type       string   `json:"type"`
	ID         string   `json:"id"`
	Transports []string `json:"transports,omitempty"`
}

type entity struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// User is the account for which a passkey is created, as the authenticator stores it. Handle is random and opaque.
type User struct {
	Handle string // base64url
	Name   string // such as a mail address
	Shown  string // the name of the person
}

type userEntity struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
}

type parameter struct {
	Type string `json:"type"`
	Alg  int    `json:"alg"`
}

type selection struct {
	ResidentKey        string `json:"residentKey"`
	RequireResidentKey bool   `json:"requireResidentKey"`
	UserVerification   string `json:"userVerification"`
}

type creation struct {
	RP                     entity          `json:"rp"`
	User                   userEntity      `json:"user"`
	Challenge              string          `json:"challenge"`
	PubKeyCredParams       []parameter     `json:"pubKeyCredParams"`
	Timeout                int             `json:"timeout"`
	ExcludeCredentials     []Descriptor    `json:"excludeCredentials"`
	AuthenticatorSelection selection       `json:"authenticatorSelection"`
	Attestation            string          `json:"attestation"`
	Extensions             map[string]bool `json:"extensions"`
}

type request struct {
	Challenge        string       `json:"challenge"`
	Timeout          int          `json:"timeout"`
	RPID             string       `json:"rpId"`
	AllowCredentials []Descriptor `json:"allowCredentials"`
	UserVerification string       `json:"userVerification"`
}

const publicKey, required = "public-key", "required"

// Creation returns the PublicKeyCredentialCreationOptionsJSON of a registration: discoverable, with user verification.
// have are the passkeys of the account, which a second registration would replace.
func (p Party) Creation(challenge string, u User, have []Credential) json.RawMessage {
	return encoded(creation{RP: entity{p.ID, p.Name}, User: userEntity{u.Handle, u.Name, u.Shown},
		Challenge:        challenge,
		PubKeyCredParams: []parameter{{publicKey, algES256}, {publicKey, algRS256}},
		Timeout:          ceremonyMs, ExcludeCredentials: descriptors(have),
		AuthenticatorSelection: selection{required, true, required}, Attestation: "none",
		Extensions: map[string]bool{"credProps": true}})
}

// Request returns the PublicKeyCredentialRequestOptionsJSON of an assertion. Without allowed credentials the browser
// offers all passkeys of the party.
func (p Party) Request(challenge string, allowed []Credential) json.RawMessage {
	return encoded(request{Challenge: challenge, Timeout: ceremonyMs, RPID: p.ID,
		AllowCredentials: descriptors(allowed), UserVerification: required})
}

func descriptors(cs []Credential) []Descriptor {
	out := make([]Descriptor, len(cs))
	for i, c := range cs {
		out[i] = Descriptor{publicKey, jose.Encode(c.ID), c.Transports}
	}
	return out
}

func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of plain strings and numbers
	}
	return b
}

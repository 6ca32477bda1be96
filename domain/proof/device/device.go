// Package device owns the registered devices of an account with their public keys, and the proofs that they sign
// (decisions D-AUTH-06, D-2FA-06, 07, 09 and 18).
//
// The one idea: a proof names its request, its body, the challenge and the decision in claims under one signature. So
// no part of it can be reused in another request. The verifier compares every claim with the received data. All
// faults except staleness give the same refusal, which does not reveal which devices exist.
//
// Start reading at Service.Present, then proof.go for the signed data, key.go for the keys, and action.go for the
// addition and removal of devices. passkey.go has the devices that are passkeys.
package device

import (
	"cmp"
	"context"
	"crypto/ecdh"
	"encoding/json"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"castellan/domain/factor/passkey"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
	"castellan/domain/kit/legible"
)

// Status is the status of a device. Only an active one may sign.
type Status string

// Active is the status of a new device. A removed one has no row.
const Active Status = "ACTIVE"

// Limits of a device's fields, in characters or bytes, and of the devices of an account.
const (
	MaxDevices     = 10 // per account
	maxTextChars   = 128
	maxTargetBytes = 2048 // of a URL
)

// Device is a registered device.
type Device struct {
	ID          string
	UserID      string
	Key         Key
	Brand       string
	Model       string
	Description string
	Platform    string
	Target      []byte // sealed with TargetData; nil: it is never woken
	Status      Status
	CreatedAt   time.Time
	LastUsedAt  time.Time // zero: it has signed nothing since its registration
}

// TargetData returns the associated data of a sealed push target: it opens for its own row only (SEC-45).
func TargetData(userID, id string) []byte { return []byte("push-target/" + userID + "/" + id) }

// Name returns the display name of the device.
func (d Device) Name() string { return name(d.Brand, d.Model, d.Description) }

func name(brand, model, description string) string {
	return cmp.Or(strings.TrimSpace(brand+" "+model), description)
}

// Registration is a device that a user wants to add. As JSON it is the command of DEVICE_ADD.
type Registration struct {
	Key         Key    `json:"key,omitzero"`
	Brand       string `json:"brand"`
	Model       string `json:"model"`
	Description string `json:"description"`
	Platform    string `json:"platform"`
	Target      string `json:"target,omitempty"` // of ParseTarget
	// Passkey replaces Key, and Handle is then the name of the account inside it, base64url.
	Passkey *passkey.Credential `json:"passkey,omitempty"`
	Handle  string              `json:"handle,omitempty"`
}

// thumbprint names the key of the registration (RFC 7638).
func (r Registration) thumbprint() string {
	if r.Passkey != nil {
		return HashBody([]byte(r.Passkey.Key.JWK()))
	}
	return r.Key.Thumbprint()
}

// Check returns INVALID_FIELD with every faulty text.
func (r Registration) Check() error {
	var ps fault.Problems
	for _, f := range []struct{ field, text string }{{"brand", r.Brand}, {"model", r.Model},
		{"description", r.Description}, {"platform", r.Platform}} {
		switch {
		case utf8.RuneCountInString(f.text) > maxTextChars:
			ps.Require(false, f.field, "is longer than 128 characters")
		case !legible.Valid(f.text):
			ps.Require(false, f.field, "must not contain control characters")
		}
	}
	return fault.All(ps)
}

// target is where a device is woken: a subscription of Web Push (RFC 8030, 8291) or a webhook.
type target struct {
	Type     string      `json:"type"`
	Endpoint string      `json:"endpoint,omitempty"`
	Keys     *targetKeys `json:"keys,omitempty"`
	URL      string      `json:"url,omitempty"`
}

type targetKeys struct {
	P256DH string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// ParseTarget reads a pushTarget and returns it in its one stored form:
//
//	{"type":"webpush","endpoint":URL,"keys":{"p256dh":…,"auth":…}}
//	{"type":"webhook","url":URL}
//
// URLs are https; where loopback is true http to a loopback address is accepted
// too. INVALID_FIELD for anything else. Which networks may be reached is the
// sender's to judge, when it connects.
func ParseTarget(text []byte, loopback bool) (string, error) {
	var t target
	if json.Unmarshal(text, &t) != nil {
		return "", fault.Invalid("pushTarget", "must be an object with type webpush or webhook")
	}
	var out target
	switch t.Type {
	case "webpush":
		if !reachable(t.Endpoint, loopback) {
			return "", fault.Invalid("pushTarget", "endpoint must be an https URL")
		}
		if t.Keys == nil || !subscriptionKey(t.Keys.P256DH) || len(decode(t.Keys.Auth)) != 16 {
			return "", fault.Invalid("pushTarget", "keys must hold p256dh, a P-256 point, and auth, 16 bytes, in base64url")
		}
		out = target{Type: t.Type, Endpoint: t.Endpoint, Keys: &targetKeys{unpadded(t.Keys.P256DH), unpadded(t.Keys.Auth)}}
	case "webhook":
		if !reachable(t.URL, loopback) {
			return "", fault.Invalid("pushTarget", "url must be an https URL")
		}
		out = target{Type: t.Type, URL: t.URL}
	default:
		return "", fault.Invalid("pushTarget", "type must be webpush or webhook")
	}
	b, err := json.Marshal(out)
	return string(b), err
}

func reachable(text string, loopback bool) bool {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxTargetBytes || u.Host == "" || u.User != nil || u.Fragment != "" ||
		strings.ContainsFunc(text, unicode.IsControl) {
		return false
	}
	if u.Scheme == "http" && loopback {
		ip, err := netip.ParseAddr(u.Hostname())
		return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	}
	return u.Scheme == "https"
}

func subscriptionKey(text string) bool {
	_, err := ecdh.P256().NewPublicKey(decode(text))
	return err == nil
}

// unpadded drops the padding that some browsers' scripts add.
func unpadded(text string) string { return strings.TrimRight(text, "=") }

// decode reads base64url, also with padding; nil for anything else.
func decode(text string) []byte {
	b, _ := jose.Decode(unpadded(text))
	return b
}

// Add inserts a device. The unit fails with RECORD_ALREADY_EXIST when the account has one with this key. user.SetPush
// accompanies it.
type Add struct{ Device }

func (Add) Table() string { return "device" }
func (w Add) Row() string { return w.ID }

// Remove removes a device of a user, including its key and target. user.SetPush accompanies it.
type Remove struct{ UserID, ID string }

func (Remove) Table() string { return "device" }
func (w Remove) Row() string { return w.ID }

// Mute removes the push target of a device if it is still this one. It never fails the unit: the target may have been
// removed meanwhile.
type Mute struct {
	ID     string
	Target []byte // in its sealed, stored form
}

func (Mute) Table() string { return "device" }
func (w Mute) Row() string { return w.ID }

// Use records that a signature of the device was accepted. It is fenced: the device must still belong to the user and
// be active.
type Use struct {
	UserID, ID string
	At         time.Time
}

func (Use) Table() string { return "device" }

// Fence makes two uses of one device go into different batches.
func (w Use) Fence() (string, int64) { return w.ID, w.At.UnixMilli() }

// See remembers a proof or a nonce, by its keyed hash, until an instant. It is fenced: a remembered one is refused.
type See struct {
	ID    string
	At    time.Time
	Until time.Time
}

func (See) Table() string            { return "device_proof" }
func (w See) Fence() (string, int64) { return w.ID, 0 }

// Store reads devices. Writes go through commit.Committer as the values above.
// It is safe for concurrent use.
type Store interface {
	// Get reads a device; RECORD_NOT_FOUND if it does not exist.
	Get(ctx context.Context, id string) (Device, error)
	// List returns the devices of a user, newest first.
	List(ctx context.Context, userID string) ([]Device, error)
	// Shared reports whether a device of one user is also registered, by its key, in the account of another.
	Shared(ctx context.Context, userID, other string) (bool, error)
	// Purge forgets the proofs and nonces that need not be remembered at an instant any more.
	Purge(ctx context.Context, now time.Time) error
}

package client

import (
	"cmp"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"castellan/client/internal/device"
	"castellan/client/internal/intent"
)

// Device approves challenges with a key that never leaves it (D-AUTH-06).
type Device struct {
	ID  string        // "" until the enrolment is complete
	Key crypto.Signer // of P-256 or Ed25519
	// Audience is the service's own public URL; "": the client's URL.
	Audience string
}

// About is the description in the owner's list of devices, and the address at which the device is woken.
type About struct {
	Brand       string          `json:"brand"`
	Model       string          `json:"model"`
	Description string          `json:"description"`
	Platform    string          `json:"platform"`
	PushTarget  json.RawMessage `json:"pushTarget,omitempty"`
}

// Enroll starts the registration of a device with the account of the session. Enrolled reads the data of the outcome.
func (c *Client) Enroll(ctx context.Context, d *Device, a About) (*Flow, error) {
	public, ok := device.PublicKey(d.Key)
	if !ok {
		return nil, errors.New("devices have keys of P-256 or Ed25519")
	}
	body := struct {
		PublicKey device.Key `json:"publicKey"`
		About
	}{public, a}
	return c.Start(ctx, http.MethodPost, "/auth/devices", body, signedBy(d, device.Claims{Issuer: public.Thumbprint()}))
}

// Enrolled reads the device's id from the outcome of Enroll.
func (d *Device) Enrolled(o Outcome) error {
	var data struct {
		DeviceID string `json:"deviceId"`
	}
	if !o.Success {
		return &Error{Status: http.StatusOK, Code: o.Code, Detail: o.Message, Message: o.Message}
	}
	err := json.Unmarshal(o.Data, &data)
	d.ID = data.DeviceID
	return err
}

// Document describes an operation to its approver: the words and values that a device shows and signs (D-EXT-09).
type Document = intent.Document

// Row is one value of a Document.
type Row = intent.Row

// Approval is a challenge that waits for a device.
type Approval struct {
	Body string `json:"body"`
	Data struct {
		ChallengeID    string `json:"challengeId"`
		MethodID       string `json:"methodId"`
		Action         string `json:"action"`
		ActionTitle    string `json:"actionTitle"`
		NumberMatching bool   `json:"numberMatching"`
		Params         struct {
			DateTime  string `json:"dateTime"`
			Expire    int64  `json:"expire"` // seconds left
			InfoTable struct {
				Data [][]string `json:"data"`
			} `json:"infoTable"`
		} `json:"params"`
	} `json:"data"`
	// Intent is the document that Answer signs: show its title and rows. nil from an older release.
	Intent *Document `json:"intent"`
}

// Ongoing reads the challenges that wait for the device into out, such as a *[]Approval. It needs no session.
func (c *Client) Ongoing(ctx context.Context, d *Device, out any) error {
	target := "/auth/2fa/challenge/ongoing?intent=true&deviceId=" + url.QueryEscape(d.ID)
	_, err := c.send(ctx, http.MethodGet, target, nil, out,
		signedBy(d, device.Claims{Issuer: d.ID}))
	return err
}

// The answers of a device. With number matching the answer is Approved, a colon and the number on the other screen.
const (
	Approved = "APPROVED"
	Denied   = "DENIED"
)

// Answer answers a waiting challenge, and signs the Intent of the approval. It needs no session. The device learns that
// the challenge is done, but receives no token.
func (c *Client) Answer(ctx context.Context, d *Device, a Approval, value string) (Outcome, error) {
	id, method, signed := a.Data.ChallengeID, a.Data.MethodID, ""
	if a.Intent != nil { // the digest is computed here, so it covers the shown values
		signed = intent.Digest(a.Intent.Canonical())
	}
	return (&Flow{client: c}).complete(ctx, map[string]string{"challengeId": id, "methodId": method, "method": "PUSH",
		"value": value, "deviceId": d.ID},
		signedBy(d, device.Claims{Issuer: d.ID, Challenge: id, MethodID: method, Value: value, Intent: signed}))
}

// Alarm reports a challenge that the owner did not start, and returns how many sessions of the account ended. Deny it
// first, so that the denial is part of its evidence. Alarm needs no session, and is repeated when the answer is lost.
//
// Errors: *Error; CHALLENGE_NOT_FOUND for a challenge of another account.
func (c *Client) Alarm(ctx context.Context, d *Device, challengeID string) (ended int, err error) {
	var r record[struct {
		Ended int `json:"ended"`
	}]
	_, err = c.send(ctx, http.MethodPost, "/auth/devices/alarm", map[string]string{"challengeId": challengeID}, &r,
		signedBy(d, device.Claims{Issuer: d.ID}), repeatable)
	return r.Data.Ended, err
}

func signedBy(d *Device, claims device.Claims) Option {
	return func(c *call) { c.device, c.claims = d, claims }
}

// sign creates the proof of one request: a repetition needs a new proof.
func (d *Device) sign(c device.Claims, base, method, target string, body []byte) (string, error) {
	c.Audience = cmp.Or(d.Audience, base)
	c.Method, c.Target, c.BodyHash = method, target, device.HashBody(body)
	return device.Sign(d.Key, c)
}

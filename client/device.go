package client

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"castellan/domain/access/device"
)

// Device approves challenges with a key that never leaves it (D-AUTH-06).
type Device struct {
	ID  string        // "" until the enrolment is complete
	Key crypto.Signer // of P-256 or Ed25519
	// Audience is the service's own public URL; "": that of the client.
	Audience string
}

// About is what the owner reads in the list of devices, and where the device is woken.
type About struct {
	Brand       string          `json:"brand"`
	Model       string          `json:"model"`
	Description string          `json:"description"`
	Platform    string          `json:"platform"`
	PushTarget  json.RawMessage `json:"pushTarget,omitempty"`
}

// Enroll starts the registration of a device with the account of the session. The data
// of the outcome is read by Enrolled.
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

// Enrolled takes the device's id from the outcome of Enroll.
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

// Approval waits for a device.
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
}

// Ongoing reads what waits for the device into out, such as a *[]Approval. It needs no
// session.
func (c *Client) Ongoing(ctx context.Context, d *Device, out any) error {
	_, err := c.send(ctx, http.MethodGet, "/auth/2fa/challenge/ongoing?deviceId="+url.QueryEscape(d.ID), nil, out,
		signedBy(d, device.Claims{Issuer: d.ID}))
	return err
}

// What a device answers. Where numbers are matched it is Approved, a colon and the
// number that the other screen shows.
const (
	Approved = "APPROVED"
	Denied   = "DENIED"
)

// Answer answers what waits for the device. It needs no session; a device is told that
// the challenge is done, and no token.
func (c *Client) Answer(ctx context.Context, d *Device, a Approval, value string) (Outcome, error) {
	id, method := a.Data.ChallengeID, a.Data.MethodID
	return (&Flow{client: c}).complete(ctx, map[string]string{"challengeId": id, "methodId": method, "method": "PUSH",
		"value": value, "deviceId": d.ID},
		signedBy(d, device.Claims{Issuer: d.ID, Challenge: id, MethodID: method, Value: value}))
}

func signedBy(d *Device, claims device.Claims) Option {
	return func(c *call) { c.device, c.claims = d, claims }
}

// sign makes the proof of one request: a repeat needs one of its own.
func (d *Device) sign(c device.Claims, base, method, target string, body []byte) (string, error) {
	if c.Audience = d.Audience; c.Audience == "" {
		c.Audience = base
	}
	c.Method, c.Target, c.BodyHash = method, target, device.HashBody(body)
	return device.Sign(d.Key, c)
}

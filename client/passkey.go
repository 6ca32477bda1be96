package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// PasskeyOptions are what a browser needs for a ceremony: PublicKey is the JSON of WebAuthn Level 3. Ticket belongs to
// a login.
type PasskeyOptions struct {
	PublicKey json.RawMessage `json:"publicKey"`
	Ticket    string          `json:"ticket"`
}

// PasskeyLogin requests the options of a login by a passkey. They are the same for every caller.
func (c *Client) PasskeyLogin(ctx context.Context) (PasskeyOptions, error) {
	var got record[PasskeyOptions]
	_, err := c.send(ctx, http.MethodPost, "/auth/login/passkey", nil, &got)
	return got.Data, err
}

// LoginByPasskey sends the answer of a browser, an AuthenticationResponseJSON, in place of identifier and password. If
// the policy lets a passkey suffice, Flow.Wait returns the outcome at once.
func (c *Client) LoginByPasskey(ctx context.Context, ticket string, assertion json.RawMessage) (*Flow, error) {
	in := struct {
		Ticket    string          `json:"ticket"`
		Assertion json.RawMessage `json:"assertion"`
	}{ticket, assertion}
	return c.start(ctx, http.MethodPost, "/auth/login", in, c.signing)
}

// CreatePasskey requests the options of a registration for the account of the session.
func (c *Client) CreatePasskey(ctx context.Context) (PasskeyOptions, error) {
	var got record[PasskeyOptions]
	err := c.Call(ctx, http.MethodPost, "/auth/devices/passkey", nil, &got)
	return got.Data, err
}

// AddPasskey sends the answer of a browser, a RegistrationResponseJSON, and starts the challenge DEVICE_ADD.
func (c *Client) AddPasskey(ctx context.Context, a About, attestation json.RawMessage) (*Flow, error) {
	return c.Start(ctx, http.MethodPost, "/auth/devices", struct {
		About
		Attestation json.RawMessage `json:"attestation"`
	}{a, attestation})
}

// Assert approves a push with the answer of a browser to Method.WebAuthn, an AuthenticationResponseJSON.
func (f *Flow) Assert(ctx context.Context, m Method, assertion json.RawMessage) (Outcome, error) {
	return f.complete(ctx, map[string]string{"methodId": m.ID, "method": m.Name, "value": "APPROVED"},
		Header("webauthn-assertion", base64.RawURLEncoding.EncodeToString(assertion)))
}

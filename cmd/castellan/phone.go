package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"castellan/domain/device"
)

// phone is the demo device: a private key, and the service that knows it. As JSON
// it is the file that holds the device.
type phone struct {
	Server   string     `json:"server"`   // where requests go
	Audience string     `json:"audience"` // the service's own public URL, which proofs name
	DeviceID string     `json:"deviceId"` // "" until the enrolment is complete
	Key      privateKey `json:"privateKey"`
}

// privateKey is a private JWK.
type privateKey struct{ crypto.Signer }

type privateJWK struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	D     string `json:"d"`
}

// MarshalJSON writes the private part; the public one follows from it.
func (k privateKey) MarshalJSON() ([]byte, error) {
	switch s := k.Signer.(type) {
	case *ecdsa.PrivateKey:
		d, err := s.Bytes()
		if err != nil {
			return nil, err
		}
		return json.Marshal(privateJWK{"EC", "P-256", base64.RawURLEncoding.EncodeToString(d)})
	case ed25519.PrivateKey:
		return json.Marshal(privateJWK{"OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(s.Seed())})
	}
	return nil, errors.New("no private key")
}

// UnmarshalJSON reads what MarshalJSON wrote. Its errors do not quote the key.
func (k *privateKey) UnmarshalJSON(b []byte) error {
	var j privateJWK
	if json.Unmarshal(b, &j) != nil {
		return errors.New("privateKey is not a JWK")
	}
	d, err := base64.RawURLEncoding.DecodeString(j.D)
	if err != nil {
		return errors.New("privateKey.d is not base64url")
	}
	switch {
	case j.Curve == "Ed25519" && len(d) == ed25519.SeedSize:
		k.Signer = ed25519.NewKeyFromSeed(d)
	case j.Curve == "P-256":
		s, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d)
		if err != nil {
			return errors.New("privateKey is not a key of P-256")
		}
		k.Signer = s
	default:
		return errors.New("privateKey is neither of P-256 nor of Ed25519")
	}
	return nil
}

func newPrivateKey(alg string) (k privateKey, err error) {
	if alg == device.EdDSA {
		_, k.Signer, err = ed25519.GenerateKey(rand.Reader)
	} else {
		k.Signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return k, err
}

func readPhone(file string) (p phone, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return p, fmt.Errorf("%s: there is no device yet; make one with \"castellan device enroll\"", file)
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err == nil && p.DeviceID == "" {
		err = errors.New("the enrolment of this device was not completed")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return p, err
}

// write writes the file of the device, for its owner alone. A new one must not
// be there; another is replaced as a whole.
func (p phone) write(file string, isNew bool) error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	to := file
	if !isNew {
		to += ".new"
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil && !isNew {
		err = os.Rename(to, file)
	}
	return err
}

// refusal is an answer that is a problem of the interface.
type refusal struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Field  string `json:"field"`
	Left   *int   `json:"attemptsLeft"`
	nonce  string
}

// Error implements error.
func (r *refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("the server answered with status %d", r.Status)
	}
	text := r.Code + ": " + r.Detail
	if r.Left != nil {
		text += fmt.Sprintf(" (%d attempts left)", *r.Left)
	}
	return text
}

const (
	phoneTimeout = 45 * time.Second // longer than the service waits for an action
	maxAnswer    = 1 << 20
)

// send sends a request and reads the answer into out. With claims it is signed,
// and signed again when the server asks for its nonce, because the clock of this
// device is off.
func (p phone) send(
	ctx context.Context,
	method, path string,
	body any,
	headers map[string]string,
	claims *device.Claims,
	out any,
) (http.Header, error) {
	got, err := p.once(ctx, method, path, body, headers, claims, out)
	var r *refusal
	if claims != nil && errors.As(err, &r) && r.nonce != "" {
		claims.Nonce, claims.ID = r.nonce, ""
		got, err = p.once(ctx, method, path, body, headers, claims, out)
	}
	return got, err
}

func (p phone) once(
	ctx context.Context,
	method, path string,
	body any,
	headers map[string]string,
	claims *device.Claims,
	out any,
) (http.Header, error) {
	var text []byte
	var err error
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, phoneTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, p.Server+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	if claims != nil {
		c := *claims
		c.Audience, c.Method, c.Target, c.BodyHash = p.Audience, method, req.URL.RequestURI(), device.HashBody(text)
		proof, err := device.Sign(p.Key.Signer, c)
		if err != nil {
			return nil, err
		}
		req.Header.Set("device-signature", proof)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		r := &refusal{}
		if json.Unmarshal(answer, r) != nil {
			r = &refusal{}
		}
		r.Status, r.nonce = resp.StatusCode, resp.Header.Get("device-signature-nonce")
		return nil, r
	}
	return resp.Header, json.Unmarshal(answer, out)
}

// serverURL is a base URL in the one spelling that proofs name.
func serverURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil {
		return "", fmt.Errorf("%q is not a URL such as https://id.example.com", text)
	}
	return strings.TrimRight(text, "/"), nil
}

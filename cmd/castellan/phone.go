package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"castellan/client"
	"castellan/domain/proof/device"
)

// phone is the demo device: a private key, and the service that it is registered with. As JSON it is the file of the
// device.
type phone struct {
	Server   string     `json:"server"`   // the address for requests
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

// MarshalJSON writes the private part; the public part follows from it.
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

// UnmarshalJSON reads the output of MarshalJSON. Its errors do not quote the key.
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

// readPhone reads the device in a file, with the service that it is registered with.
func readPhone(file string) (*client.Client, *client.Device, error) {
	var p phone
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: there is no device; create one with \"castellan device enroll\"", file)
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err == nil && p.DeviceID == "" {
		err = errors.New("the enrolment of this device was not completed")
	}
	var c *client.Client
	if err == nil {
		c, err = client.New(p.Server)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, &client.Device{ID: p.DeviceID, Key: p.Key.Signer, Audience: p.Audience}, nil
}

// write writes the file of the device, readable only by its owner. A new file must not exist yet; an existing one is
// replaced atomically.
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

package totp_test

import (
	"bytes"
	"testing"
	"time"

	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/proof/totp"
)

// A secret of another service is read in every spelling that apps show, and bounded.
func TestParseSecret(t *testing.T) {
	for _, text := range []string{"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "gezd gnbv gy3t qojq gezd gnbv gy3t qojq",
		"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ====="} {
		got, err := totp.ParseSecret(text)
		if err != nil || string(got) != "12345678901234567890" ||
			totp.FormatSecret(got) != "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "A", "GEZDGNBV", "1BADBASE32TEXT99", "GEZDGNBVGY3TQOJQ\nGEZDGNBVGY3TQOJQ"} {
		if got, err := totp.ParseSecret(text); err == nil {
			t.Errorf("%q was read as %q", text, got)
		}
	}
}

// An authenticator of another service is adopted with its sealed secret, which only its own definition reveals.
func TestAdoptedAuthenticator(t *testing.T) {
	ring, now := keyringtest.Ring(t, time.Now), time.UnixMilli(1_700_000_000_000)
	secret := []byte("12345678901234567890")
	d := totp.Adopt(ring, "u1", secret, now).Definition
	if d.UserID != "u1" || d.ID == "" || !d.CreatedAt.Equal(now) || bytes.Contains(d.Sealed, secret) {
		t.Errorf("%+v", d)
	}
	if got, err := totp.Reveal(ring, d); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("%q, %v", got, err)
	}
	for _, edit := range []func(*totp.Definition){func(d *totp.Definition) { d.UserID = "u2" },
		func(d *totp.Definition) { d.ID = "other" }} {
		other := d
		edit(&other)
		if got, err := totp.Reveal(ring, other); err == nil {
			t.Errorf("revealed for another definition: %q", got)
		}
	}
}

package clientkey_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/clientkey"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

// A secret matches under its own name and domain, and under each stored sum.
func TestMatches(t *testing.T) {
	ring := keyringtest.Ring(t, time.Now)
	header, sum := clientkey.New(ring, "d", "n")
	second, other := clientkey.New(ring, "d", "n")
	name, secret, ok := clientkey.Split(header)
	if !ok || name != "n" || len(secret) != 43 || header == second {
		t.Fatalf("%q, %q, %t", name, secret, ok)
	}
	if !clientkey.Matches(ring, "d", "n", secret, sum) || !clientkey.Matches(ring, "d", "n", secret, sum, other) ||
		!clientkey.Matches(ring, "d", "n", secret, other, sum) {
		t.Error("the secret does not match")
	}
	if clientkey.Matches(ring, "d", "n", secret) || clientkey.Matches(ring, "d", "n", secret, other) ||
		clientkey.Matches(ring, "d", "m", secret, sum) || clientkey.Matches(ring, "e", "n", secret, sum) ||
		clientkey.Matches(ring, "d", "n", secret+"x", sum) {
		t.Error("another secret matches")
	}
}

// A header has a name and a secret, and at most 256 bytes.
func TestSplit(t *testing.T) {
	for header, want := range map[string]bool{"": false, "n": false, "n.s": true, "n.": true, ".s": true,
		"n." + strings.Repeat("s", 254): true, "n." + strings.Repeat("s", 255): false} {
		if _, _, ok := clientkey.Split(header); ok != want {
			t.Errorf("%.10q, %d bytes: %t", header, len(header), ok)
		}
	}
}

// A name has 1 to 64 plain characters.
func TestCheckName(t *testing.T) {
	long := strings.Repeat("a", 64)
	for name, fields := range map[string]string{"a": "", "Z9_-": "", long: "", "": "name", long + "a": "name",
		"-a": "name", "a.b": "name", "ü": "name", "a\n": "name"} {
		storetest.WantsFields(t, clientkey.CheckName(name), fields)
	}
}

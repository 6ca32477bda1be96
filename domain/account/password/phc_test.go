package password

import (
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
)

// A hash made by another program verifies here: the text is the common format.
func TestParseForeignHashes(t *testing.T) {
	salt := []byte("somesaltsomesalt")
	b64 := base64.RawStdEncoding.EncodeToString
	phc := "$argon2id$v=19$m=1024,t=3,p=2$" + b64(salt) + "$" + b64(argon2.IDKey([]byte("pässword"), salt, 3, 1024, 2, 32))
	s, err := parse(phc)
	if err != nil || s.params != (Params{1024, 3, 2}) || string(s.salt) != string(salt) || s.String() != phc {
		t.Fatalf("%+v, %v", s, err)
	}
	h := small(t, HasherOptions{})
	for password, want := range map[string]bool{"pässword": true, "pa\u0308ssword": true, "passw0rd": false, "": false} {
		right, stale, err := h.Verify(t.Context(), password, phc)
		if err != nil || right != want || stale != want {
			t.Errorf("%q: right %v, stale %v, %v", password, right, stale, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	good := "$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	if _, err := parse(good); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"argon2id", "argon2i"}, {"v=19", "v=16"}, {"$v=19", ""}, {"m=64", "m=064"}, {"m=64", "m=+64"}, {"m=64", "m=4"},
		{"m=64", "m=5000000"},
		{"t=1", "t=0"}, {"t=1", "t=1000"}, {"p=1", "p=0"}, {"p=1", "p=300"}, {"p=1", "p=1,x=2"}, {"m=64,t=1", "t=1,m=64"},
		{"MDEyMzQ1Njc4OWFiY2RlZg$", "MDEyMzQ1Njc4OWFiY2RlZh$"}, {"MDEyMzQ1Njc4OWFiY2RlZg$", "$"}, {"ZWY", "ZWY="},
		{"ZWY", "ZWZ"},
		{"$argon2id", "argon2id"}, {"ZWY", "ZWY$"}, {good, ""}, {good, "password123"}, {"$", "$$"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if _, err := parse(text); err == nil {
			t.Errorf("%q was accepted", text)
		} else if strings.Contains(err.Error(), "MDEy") || strings.Contains(err.Error(), "password123") {
			t.Errorf("the error shows the text: %v", err)
		}
	}
}

func FuzzPHC(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY")
	f.Fuzz(func(t *testing.T, phc string) {
		if s, err := parse(phc); err == nil && (s.String() != phc || s.params.Validate() != nil) {
			t.Fatalf("%q was read as %q", phc, s)
		}
	})
}

package intent_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"castellan/domain/factor/intent"
	"castellan/domain/kit/storetest"
)

func sample() intent.Document {
	return intent.Document{Version: 1, ChallengeID: "01K8VSBQJ0TCCPEX7Q5YGHP4PY", Action: "WITHDRAW",
		UserID: "01K8VSBQJ0TCCPEX7Q5YGHP4PZ", CreatedAt: 1795566706968, Language: "tr", Title: "Para çekme",
		Rows: []intent.Row{{"amount", "Tutar", "1.5 BTC"}, {"address", "Adres", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"},
			{"note", "Not", "\"\\\b\f\n\r\t\u0001\u007f\u2028<&>😀"}},
		CommandDigest: intent.Digest([]byte("sealed"))}
}

// The canonical form is that of an independent implementation of RFC 8785.
func TestCanonicalIsRFC8785(t *testing.T) {
	d := sample()
	for range 200 {
		runes := make([]rune, rand.IntN(40))
		for i := range runes {
			runes[i] = rune(rand.IntN(0x2100))
			if rand.IntN(8) == 0 {
				runes[i] = rune(0x10000 + rand.IntN(0x1000))
			}
		}
		d.Rows[2].Value, d.Title = string(runes), string(runes)
		plain := storetest.Value(json.Marshal(d))(t)
		want := jsontext.Value(plain)
		storetest.Must(t, want.Canonicalize())
		got := d.Canonical()
		if string(got) != string(want) {
			t.Fatalf("canonical form\n%s\nwant\n%s", got, want)
		}
		back, err := intent.Parse(got)
		if err != nil || string(back.Canonical()) != string(got) {
			t.Fatalf("%v: %v", err, back)
		}
	}
}

// A changed byte of a document is refused or gives another digest, whatever the byte.
func TestChangedDocument(t *testing.T) {
	text := sample().Canonical()
	digest := intent.Digest(text)
	for i := range text {
		for range 4 {
			changed := []byte(string(text))
			changed[i] ^= byte(1 + rand.IntN(255))
			if intent.Digest(changed) == digest {
				t.Fatalf("byte %d: the digest is unchanged", i)
			}
			if d, err := intent.Parse(changed); err == nil && string(d.Canonical()) != string(changed) {
				t.Fatalf("byte %d: accepted in another spelling", i)
			}
		}
	}
	for _, bad := range []string{"", "{}", "null", "[]", " " + string(text), string(text) + " ",
		`{"v":1}`, `{"v":2,"action":""}`} {
		if _, err := intent.Parse([]byte(bad)); !errors.Is(err, intent.ErrNotCanonical) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

// A document of a later version is written in decimal digits, and not read.
func TestLaterVersion(t *testing.T) {
	d := sample()
	d.Version = 12
	text := string(d.Canonical())
	if !strings.HasSuffix(text, `,"v":12}`) {
		t.Error(text)
	}
	if _, err := intent.Parse([]byte(text)); !errors.Is(err, intent.ErrNotCanonical) {
		t.Errorf("%v", err)
	}
}

// Covers compares the action, the challenge and the command of a canonical document.
func TestCovers(t *testing.T) {
	d := sample()
	text := d.Canonical()
	for name, c := range map[string]struct {
		action, id, digest string
		want               bool
	}{
		"all":             {d.Action, d.ChallengeID, d.CommandDigest, true},
		"another action":  {"LOGIN", d.ChallengeID, d.CommandDigest, false},
		"a longer action": {d.Action + "S", d.ChallengeID, d.CommandDigest, false},
		"another id":      {d.Action, d.UserID, d.CommandDigest, false},
		"another command": {d.Action, d.ChallengeID, intent.Digest(nil), false},
		"a shorter one":   {d.Action, d.ChallengeID, d.CommandDigest[1:], false},
		"no command":      {d.Action, d.ChallengeID, "", false},
		"swapped":         {d.ChallengeID, d.Action, d.CommandDigest, false},
	} {
		storetest.Equal(t, intent.Covers(text, c.action, c.id, c.digest), c.want, name)
	}
	if intent.Covers(text[:40], d.Action, d.ChallengeID, d.CommandDigest) {
		t.Error("a torn document covers its command")
	}
}

package challenge_test

import (
	"math/rand/v2"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
)

// A changed document, command or digest is not what was shown, whatever the change.
func TestShownIsExact(t *testing.T) {
	command := []byte("the sealed command")
	d := intent.Document{Version: 1, ChallengeID: "c1", Action: "WITHDRAW", UserID: "u1", CreatedAt: 1, Language: "en",
		Title: "Withdrawal", Rows: []intent.Row{{Key: "amount", Label: "Amount", Value: "0.5 BTC"}},
		CommandDigest: intent.Digest(command)}
	document := d.Canonical()
	c := challenge.Challenge{ID: "c1", Action: "WITHDRAW", Body: challenge.Body{IntentDigest: intent.Digest(document)}}
	if !c.Shown(document, command) {
		t.Fatal("the document and the command are refused")
	}
	flip := func(b []byte) []byte {
		out := append([]byte(nil), b...)
		out[rand.IntN(len(out))] ^= byte(1 + rand.IntN(255))
		return out
	}
	for range 100_000 {
		switch changed := c; rand.IntN(4) {
		case 0:
			if c.Shown(flip(document), command) {
				t.Fatal("a changed document was accepted")
			}
		case 1:
			if c.Shown(document, flip(command)) {
				t.Fatal("a changed command was accepted")
			}
		case 2:
			changed.IntentDigest = string(flip([]byte(c.IntentDigest)))
			if changed.Shown(document, command) {
				t.Fatal("a changed digest was accepted")
			}
		default: // another valid document of the same command
			other := d
			other.Rows = []intent.Row{{Key: "amount", Label: "Amount", Value: string(flip([]byte("0.5 BTC")))}}
			if text := other.Canonical(); c.Shown(text, command) {
				t.Fatalf("%s was accepted", text)
			}
		}
	}
	for name, other := range map[string]challenge.Challenge{
		"another challenge": {ID: "c2", Action: c.Action, Body: c.Body},
		"another action":    {ID: c.ID, Action: "LOGIN", Body: c.Body}} {
		if other.Shown(document, command) {
			t.Errorf("%s accepts the document", name)
		}
	}
}

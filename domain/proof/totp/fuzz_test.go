package totp

import (
	"testing"
	"time"
)

// FuzzMatch: only the codes of three time steps match, letter by letter (SEC-06).
func FuzzMatch(f *testing.F) {
	secret, now := []byte("12345678901234567890"), time.Unix(1_700_000_000, 0)
	codes := map[string]bool{}
	for s := StepAt(now) - skewSteps; s <= StepAt(now)+skewSteps; s++ {
		codes[CodeAt(secret, s)] = true
		f.Add(CodeAt(secret, s))
		f.Add(" " + CodeAt(secret, s))
	}
	f.Add("１２３４５６")
	f.Fuzz(func(t *testing.T, code string) {
		if _, ok := Match(secret, now, code); ok != codes[code] {
			t.Fatalf("%q: %v", code, ok)
		}
	})
}

package stepup

import (
	"strings"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func TestHint(t *testing.T) {
	for _, c := range []struct {
		name     challenge.Name
		to, dial string
		want     string
	}{
		{challenge.SMS, "+905321234512", "90", "+90********12"},
		{challenge.SMS, "+12025550123", "1", "+1********23"},
		{challenge.SMS, "+35312345678", "353", "+353******78"},
		{challenge.SMS, "+905321234512", "", "+**********12"},
		{challenge.SMS, "+9012", "90", "***"},
		{challenge.MAIL, "alice@example.com", "", "a***@example.com"},
		{challenge.MAIL, "ş@example.com", "", "ş***@example.com"},
		{challenge.MAIL, "nobody", "", "***"},
	} {
		storetest.Equal(t, c.name.Hint(c.to, c.dial), c.want, c.to)
	}
}

// Codes have six digits, and every digit appears at every position about equally often: chi-squared with nine degrees
// of freedom, beyond 40 once in 10^5.
func TestCodesAreEven(t *testing.T) {
	const n = 200_000
	var seen [6][10]int
	for range n {
		code := newCode()
		if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
			t.Fatalf("code %q", code)
		}
		for i := range 6 {
			seen[i][code[i]-'0']++
		}
	}
	for i, digits := range seen {
		chi := 0.0
		for _, k := range digits {
			d := float64(k) - n/10
			chi += d * d / (n / 10)
		}
		if chi > 40 {
			t.Errorf("place %d: %v", i, digits)
		}
	}
}

func TestTypedCodes(t *testing.T) {
	for in, want := range map[string]string{"123 456": "123456", "\u200e123456\u200e": "123456",
		"12\u20663456\u2069": "123456", "１２３": "123", "12\t3\n": "123", "١٢٣-٤٥٦": "123456", "123–456": "123456"} {
		storetest.Equal(t, Typed(in), want, in)
	}
}

// A text that cannot be a code is refused and costs no attempt.
func TestNoCodeIsNoAttempt(t *testing.T) {
	p := newPorts(t, 1, "SMS")
	for _, text := range []string{"", "12345", "1234567", "12345a", "½23456", "12345\x00"} {
		_, err := p.Complete(t.Context(), Answer{ChallengeID: "c1", MethodID: "m1", Method: challenge.SMS, Value: text})
		storetest.Wants(t, err, fault.InvalidField)
	}
	storetest.Equal(t, len(p.answers), 0, "answers were judged")
}

package totp_test

import (
	"testing"

	"castellan/domain/access/totp"
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

package user_test

import (
	"strings"
	"testing"

	"castellan/domain/account/user"
)

// The last digit of a tax number is a check digit: of ten numbers that differ only in it, one is valid.
func TestValidTaxNumber(t *testing.T) {
	for _, known := range []string{"1234567890", "4540536920", "0010000104"} {
		if !user.ValidTaxNumber(known) {
			t.Errorf("%s is refused", known)
		}
		valid := 0
		for last := range 10 {
			if user.ValidTaxNumber(known[:9] + string(rune('0'+last))) {
				valid++
			}
		}
		if valid != 1 {
			t.Errorf("%d last digits fit %s", valid, known[:9])
		}
	}
	for _, wrong := range []string{"", "123456789", "12345678901", "1234567891", "123456789x", " 234567890", "-234567890",
		"\u0661234567890", strings.Repeat("9", 100)} {
		if user.ValidTaxNumber(wrong) {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

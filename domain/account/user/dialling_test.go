package user_test

import (
	"testing"

	"castellan/domain/account/user"
)

// A number in international form is divided as the numbering plan divides it, and is the canonical number.
func TestInternational(t *testing.T) {
	for text, want := range map[string][2]string{
		"+905321234567":     {"90", "+905321234567"},
		" +90 532 123 4567": {"90", "+905321234567"},
		"+1 (212) 555-0123": {"1", "+12125550123"},
		"+77011234567":      {"7", "+77011234567"},
		"+355671234567":     {"355", "+355671234567"},
		"+447700900123":     {"44", "+447700900123"},
		"05321234567":       {}, "+": {}, "": {}, "+0905321234567": {}, "+9x": {}, "+90": {}, "+90abc": {}, "+90123": {},
		"+901234567890123456": {},
	} {
		dial, e164, err := user.International(text)
		if dial != want[0] || e164 != want[1] || (err == nil) != (e164 != "") {
			t.Errorf("%q: %q, %q, %v", text, dial, e164, err)
		}
	}
}

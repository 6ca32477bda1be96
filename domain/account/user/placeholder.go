package user

import (
	"fmt"
	"strings"
)

const placeholderDial = "90"

// PlaceholderPrefix is the start of every placeholder: no Turkish number begins with 0 after the country code.
const PlaceholderPrefix = "+" + placeholderDial + "0"

// SetPlaceholder gives an account without its own number a phone number that cannot exist (D-COR-02). Each n below
// 10⁹ gives a different one.
func (u *User) SetPlaceholder(n int64) {
	u.CountryCode, u.Phone = placeholderDial, fmt.Sprintf("+%s%010d", placeholderDial, n)
}

// Reachable returns the phone number; "" for a placeholder.
func (u User) Reachable() string {
	if strings.HasPrefix(u.Phone, PlaceholderPrefix) {
		return ""
	}
	return u.Phone
}

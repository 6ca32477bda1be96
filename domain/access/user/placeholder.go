package user

import (
	"fmt"
	"strings"
)

const placeholderDial = "90"

// PlaceholderPrefix begins every placeholder: no number of Turkey begins with 0
// behind the country code.
const PlaceholderPrefix = "+" + placeholderDial + "0"

// SetPlaceholder gives the account a phone number that nobody can have, for one that
// is made without a number of its own (D-COR-02). Each n below 10⁹ gives another one.
func (u *User) SetPlaceholder(n int64) {
	u.CountryCode, u.Phone = placeholderDial, fmt.Sprintf("+%s%010d", placeholderDial, n)
}

// Reachable is the phone number where it can be reached; "" for a placeholder.
func (u User) Reachable() string {
	if strings.HasPrefix(u.Phone, PlaceholderPrefix) {
		return ""
	}
	return u.Phone
}

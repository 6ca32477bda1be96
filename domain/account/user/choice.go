package user

// SetPreferences writes a user's preferences for messages. Use it with Store.Hold. It raises no version.
type SetPreferences struct {
	UserID    string
	Language  string // "" for the default of the installation
	Campaigns Campaigns
}

func (SetPreferences) Table() string { return "users" }

func (w SetPreferences) Row() string { return w.UserID }

// SetTaxNumber writes the tax number of an account; "" if it is unknown. It raises no version.
type SetTaxNumber struct{ UserID, TaxNumber string }

func (SetTaxNumber) Table() string { return "users" }

func (w SetTaxNumber) Row() string { return w.UserID }

// ValidTaxNumber reports whether a number is a Turkish tax number (VKN): ten digits, the last of which is a check
// digit.
func ValidTaxNumber(number string) bool {
	if len(number) != 10 || !digits(number) {
		return false
	}
	sum := 0
	for i := range 9 {
		n := (int(number[i]-'0') + 9 - i) % 10
		if n == 0 {
			continue
		}
		if n = (n << (9 - i)) % 9; n == 0 {
			n = 9
		}
		sum += n
	}
	return int(number[9]-'0') == (10-sum%10)%10
}

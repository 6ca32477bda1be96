package user

import "context"

// Audience selects the accounts of a bulk message; zero fields do not restrict it.
type Audience struct {
	IDs      []string // at most a thousand
	Statuses []string
	Types    []string
	KYC      []string
	Level    *int
	Dial     string // country code of the phone number
	SMS      bool   // only accounts that User.TakesSMS permits; any dialling code if Dial is ""
	Mail     bool   // only accounts with a mail address
}

// Audiences reads the recipients of a bulk message. It joins the transaction of its context.
type Audiences interface {
	// Audience lists up to limit ids of the selected accounts after the id after, in order; "" means from the
	// beginning, limit 0 means all.
	Audience(ctx context.Context, a Audience, after string, limit int) ([]string, error)
	// CountAudience counts the selected accounts.
	CountAudience(ctx context.Context, a Audience) (int, error)
	// CountSMS counts the accounts with the ids of a, or all without ids, by the result of an SMS to them. It agrees
	// with Audience and with User.TakesSMS.
	CountSMS(ctx context.Context, a Audience) (SMSCount, error)
}

// SMSCount counts accounts. An account excluded for several reasons counts for the first.
type SMSCount struct {
	Filtered   int // not of the statuses, types, KYC states or level
	NoNumber   int // no phone number of the dialling code
	NoCampaign int // no campaigns by SMS permitted
	Recipients int
}

// Known returns the number of counted accounts.
func (c SMSCount) Known() int { return c.Filtered + c.NoNumber + c.NoCampaign + c.Recipients }

// TakesSMS reports whether the account receives campaigns by SMS; it needs a phone number with the dialling code.
func (u User) TakesSMS(dial string) bool {
	return u.Reachable() != "" && u.CountryCode == dial && u.Campaigns.SMS
}

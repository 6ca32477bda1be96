package user

import "context"

// Audience selects the accounts of a message to many; what is zero selects nothing
// out.
type Audience struct {
	IDs      []string // at most a thousand
	Statuses []string
	Types    []string
	KYC      []string
	Level    *int
	Dial     string // country code of the phone number
	SMS      bool   // only those that User.TakesSMS permits, of any dialling code where Dial is ""
	Mail     bool   // only those that have a mail address
}

// Audiences reads whom a message to many goes to. It joins the transaction that
// its context carries.
type Audiences interface {
	// Audience lists up to limit ids of the selected accounts that follow after (""
	// is the beginning), in their order; limit 0: all.
	Audience(ctx context.Context, a Audience, after string, limit int) ([]string, error)
	// CountAudience counts the selected accounts.
	CountAudience(ctx context.Context, a Audience) (int, error)
	// CountSMS counts the accounts with the ids of a, all of them without ids, by what
	// becomes of an SMS to them. It agrees with Audience and with User.TakesSMS.
	CountSMS(ctx context.Context, a Audience) (SMSCount, error)
}

// SMSCount counts accounts. One that several reasons leave out counts for the first.
type SMSCount struct {
	Filtered   int // not of the statuses, types, KYC states or level
	NoNumber   int // no phone number of the dialling code
	NoCampaign int // no campaigns by SMS permitted
	Recipients int
}

// Known is the number of accounts that were counted.
func (c SMSCount) Known() int { return c.Filtered + c.NoNumber + c.NoCampaign + c.Recipients }

// TakesSMS reports whether a campaign by SMS goes to the account, which needs a phone number
// of the dialling code.
func (u User) TakesSMS(dial string) bool {
	return u.Reachable() != "" && u.CountryCode == dial && u.Campaigns.SMS
}

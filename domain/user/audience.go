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
	SMS      bool   // only those that can be reached by SMS and let campaigns come so
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
}

// Package level owns the levels of accounts and the limits that come with them
// (section 2.7 of the interface; D-KYC-08).
//
// Levels are rows that an installation begins with. Start reading at Level.
package level

import (
	"context"

	"castellan/domain/amount"
)

// Level is a level of accounts.
type Level struct {
	ID      int64 // the number of the level; a new account has level 0
	Label   string
	Special bool // given by hand, apart from the order of the others
	Limits
}

// Limits are the most that an account may send and receive, in TRY: Try of the
// currency TRY itself, Crypto of all others together.
type Limits struct {
	SendTryDaily       amount.Amount `json:"sendLimitTRYDaily"`
	SendCryptoDaily    amount.Amount `json:"sendLimitCryptoDaily"`
	SendTryMonthly     amount.Amount `json:"sendLimitTRYMonthly"`
	SendCryptoMonthly  amount.Amount `json:"sendLimitCryptoMonthly"`
	ReceiveTryDaily    amount.Amount `json:"receiveLimitTRYDaily"`
	ReceiveCryptoDaily amount.Amount `json:"receiveLimitCryptoDaily"`
	// The interface does not name limits of a month for what is received. A level may
	// have them; nil: thirty times the daily one (D-USR-09).
	ReceiveTryMonthly    *amount.Amount `json:"receiveLimitTRYMonthly,omitempty"`
	ReceiveCryptoMonthly *amount.Amount `json:"receiveLimitCryptoMonthly,omitempty"`
}

// Query selects levels; nil: any.
type Query struct{ Special *bool }

// Store keeps the levels. It is safe for concurrent use, joins the transaction
// that its context carries, and passes leveltest.Run.
type Store interface {
	// List lists the selected levels, by their numbers.
	List(ctx context.Context, q Query) ([]Level, error)
}

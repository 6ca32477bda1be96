// Package level manages the levels of accounts and their limits (section 2.7 of the interface; D-KYC-08).
//
// A new installation has a set of levels. Start reading at Level.
package level

import (
	"context"
	"fmt"
	"slices"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// Level is a level of accounts.
type Level struct {
	ID      int64 `audit:"-"` // number of the level, the target; a new account has level 0
	Label   string
	Special bool // assigned manually, outside the order of the other levels
	Limits
}

// Limits are the maximum amounts that an account may send and receive, in TRY: Try for the currency TRY itself, Crypto
// for all other currencies together.
type Limits struct {
	SendTryDaily       amount.Amount `json:"sendLimitTRYDaily"`
	SendCryptoDaily    amount.Amount `json:"sendLimitCryptoDaily"`
	SendTryMonthly     amount.Amount `json:"sendLimitTRYMonthly"`
	SendCryptoMonthly  amount.Amount `json:"sendLimitCryptoMonthly"`
	ReceiveTryDaily    amount.Amount `json:"receiveLimitTRYDaily"`
	ReceiveCryptoDaily amount.Amount `json:"receiveLimitCryptoDaily"`
	// The interface has no monthly limits for received amounts. A level may have them; nil: thirty times the daily
	// limit (D-USR-09).
	ReceiveTryMonthly    *amount.Amount `json:"receiveLimitTRYMonthly,omitempty"`
	ReceiveCryptoMonthly *amount.Amount `json:"receiveLimitCryptoMonthly,omitempty"`
}

// Query selects levels; a nil field does not filter.
type Query struct{ Special *bool }

// Store stores the levels. It is safe for concurrent use and joins the transaction that its context carries.
type Store interface {
	// List lists the matching levels, by number.
	List(ctx context.Context, q Query) ([]Level, error)
	// Add inserts a level; RECORD_ALREADY_EXIST if its number or its label is taken, also under concurrent calls.
	Add(ctx context.Context, l Level) error
	// Change calls f with the level and saves the result, as one step; the number is unchanged. RECORD_NOT_FOUND;
	// RECORD_ALREADY_EXIST if the label is taken.
	Change(ctx context.Context, id int64, f func(Level) (Level, error)) error
}

// Service manages the levels and assigns them to accounts. All fields are required.
type Service struct {
	Store   Store
	Users   user.Store
	Changes admin.Changes // without a topic: no node caches levels or the level of an account
}

// ActionGive is the audit name of assigning a level to an account.
const ActionGive = "USER_LEVEL"

// Assign assigns a level to an account. Assigning the level it already has changes nothing. RECORD_NOT_FOUND for an
// account or a level.
func (s *Service) Assign(ctx context.Context, by audit.By, userID string, id int64) (l Level, err error) {
	err = s.Changes.Do(ctx, by, ActionGive, func(ctx context.Context) (admin.Done, error) {
		u, err := s.Users.Get(ctx, userID)
		if err != nil {
			return admin.Done{}, err
		}
		all, err := s.Store.List(ctx, Query{})
		if err != nil {
			return admin.Done{}, err
		}
		i := slices.IndexFunc(all, func(l Level) bool { return l.ID == id })
		if i < 0 {
			return admin.Done{}, fault.New(fault.RecordNotFound, "there is no such level")
		}
		if l = all[i]; int64(u.Level) == id {
			return admin.Done{}, nil
		}
		return admin.Done{Target: u.ID, UserID: u.ID, Detail: fmt.Sprintf("%d -> %d", u.Level, id),
			Writes: []commit.Write{user.SetLevel{UserID: u.ID, Level: int(id)}}}, nil
	})
	return l, err
}

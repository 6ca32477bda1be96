// Package level owns the levels of accounts and the limits that come with them
// (section 2.7 of the interface; D-KYC-08).
//
// Levels are rows that an installation begins with. Start reading at Level.
package level

import (
	"context"
	"fmt"
	"slices"

	"castellan/domain/access/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
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
	// Add inserts a level; RECORD_ALREADY_EXIST when its number or its label is taken,
	// also under concurrent calls.
	Add(ctx context.Context, l Level) error
	// Change gives the level to f and saves what f returns, as one step; the number
	// stays. RECORD_NOT_FOUND; RECORD_ALREADY_EXIST when the label is taken.
	Change(ctx context.Context, id int64, f func(Level) (Level, error)) error
}

// Service keeps the levels and gives them to accounts. All fields are needed.
type Service struct {
	Store   Store
	Users   user.Store
	Changes admin.Changes // of no topic: no node caches levels or the level of an account
}

// ActionGive is the audit name of another level of an account.
const ActionGive = "USER_LEVEL"

// Give gives an account a level. Of a level that it has nothing changes.
// RECORD_NOT_FOUND for an account or a level.
func (s *Service) Give(ctx context.Context, by audit.By, userID string, id int64) (l Level, err error) {
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

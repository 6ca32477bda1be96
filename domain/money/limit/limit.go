// Package limit computes how much an account may still receive and send today and this month (section 2.7 of the
// interface, decision D-USR-09).
//
// The one idea: the movements of the ledger count, including future ones: a queued withdrawal counts as sent now. A
// pending deposit, or a rejected or reversed movement, does not count.
//
// Start reading at Service.Of; Service.Exceeded checks a withdrawal.
package limit

import (
	"context"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/currency"
	"castellan/domain/money/level"
	"castellan/domain/money/rate"
)

// tryCode is the currency of the limits, which has two decimals.
const (
	tryCode     = "TRY"
	tryDecimals = 2
)

// monthOfDays is the factor for a monthly limit that a level does not set.
const monthOfDays = 30

// Moved is the amount of an asset that an account received or sent.
type Moved struct {
	Asset    int64
	Received bool // otherwise sent
	// Today and Month are the sums of the day and of the month so far. Over is true if a sum is too large for an
	// amount.
	Today, Month amount.Amount
	Over         bool
}

// Store reads the received and sent amounts of an account. It joins the transaction that its context carries and is
// safe for concurrent use.
type Store interface {
	// Moved sums deposits and withdrawals since month by asset. Entries without a transfer, and reversed ones, do not
	// count. A queued withdrawal counts as sent today. All is read at one instant.
	Moved(ctx context.Context, userID string, month, day time.Time) ([]Moved, error)
}

// Info holds the limits of an account as shown in the interface.
type Info struct {
	UserID string
	Level  level.Level
	// Credit is the amount that the account may still receive, Debit the amount it may still send.
	CreditDaily, DebitDaily, CreditMonthly, DebitMonthly amount.Amount
}

// Service computes limits. All fields are required. It is safe for concurrent use.
type Service struct {
	Users   user.Store
	Levels  level.Store
	Store   Store
	Rates   rate.Store
	Catalog func() *currency.Catalog
	Now     func() time.Time
}

// Of returns the limits of an account and the remaining amounts. There are two of each, for TRY and for all other
// currencies together. The smaller remaining amount is returned, so that no currency is rejected for an amount that was
// reported as remaining. Amounts are valued in TRY at the last rates. If an amount has no value, nothing remains.
//
// Errors: RECORD_NOT_FOUND if the account does not exist.
func (s *Service) Of(ctx context.Context, userID string) (info Info, err error) {
	u, err := s.Users.Get(ctx, userID)
	if err != nil {
		return info, err
	}
	info = Info{UserID: u.ID}
	if info.Level, err = s.level(ctx, u); err != nil {
		return info, err
	}
	now := s.Now().UTC()
	month := monthOf(now)
	moved, err := s.Store.Moved(ctx, u.ID, month, user.Day(now))
	if err != nil {
		return info, err
	}
	used, err := s.value(ctx, now, moved)
	l := info.Level.Limits
	info.CreditDaily = least(used[tryIn].today.rest(l.ReceiveTryDaily), used[otherIn].today.rest(l.ReceiveCryptoDaily))
	info.DebitDaily = least(used[tryOut].today.rest(l.SendTryDaily), used[otherOut].today.rest(l.SendCryptoDaily))
	info.CreditMonthly = least(used[tryIn].month.rest(monthly(l.ReceiveTryMonthly, l.ReceiveTryDaily)),
		used[otherIn].month.rest(monthly(l.ReceiveCryptoMonthly, l.ReceiveCryptoDaily)))
	info.DebitMonthly = least(used[tryOut].month.rest(l.SendTryMonthly), used[otherOut].month.rest(l.SendCryptoMonthly))
	return info, err
}

// level returns the level of an account; one without limits if the level does not exist.
func (s *Service) level(ctx context.Context, u user.User) (level.Level, error) {
	all, err := s.Levels.List(ctx, level.Query{})
	for _, l := range all {
		if l.ID == int64(u.Level) {
			return l, err
		}
	}
	return level.Level{ID: int64(u.Level)}, err
}

// monthOf returns the first instant of the UTC month.
func monthOf(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) }

// Check checks an amount that an account is about to send, in addition to sent and queued amounts. It returns nil if
// the limits permit the amount.
//
// Errors: LIMIT_EXCEEDED. ResetAt is when the exceeded limit resets, that of the month if both are exceeded. It is zero
// if the amount has no value because a rate of its currency, or of a currency sent in this month, is missing; the
// message then names its currency.
func (s *Service) Check(ctx context.Context, u user.User, asset int64, a amount.Amount) error {
	l, err := s.level(ctx, u)
	if err != nil {
		return err
	}
	now := s.Now().UTC()
	month, day := monthOf(now), user.Day(now)
	moved, err := s.Store.Moved(ctx, u.ID, month, day)
	if err != nil {
		return err
	}
	used, err := s.value(ctx, now, sending(moved, asset, a))
	if err != nil {
		return err
	}
	sent, daily, monthly := used[otherOut], l.SendCryptoDaily, l.SendCryptoMonthly
	listed, _ := s.Catalog().Pair(asset)
	if code, _ := rate.Code(listed.Currency.Code); code == tryCode {
		sent, daily, monthly = used[tryOut], l.SendTryDaily, l.SendTryMonthly
	}
	exceeded := fault.New(fault.LimitExceeded, "the amount exceeds the current limit of the account")
	switch {
	case sent.month.unrated != "":
		return fault.New(fault.LimitExceeded, "the limits are in TRY, and there is no rate for %s/TRY", sent.month.unrated)
	case sent.month.exceeds(monthly):
		exceeded.ResetAt = month.AddDate(0, 1, 0)
	case sent.today.exceeds(daily):
		exceeded.ResetAt = day.AddDate(0, 0, 1)
	default:
		return nil
	}
	return exceeded
}

// sending adds an amount to the sent amount of an asset.
func sending(moved []Moved, asset int64, a amount.Amount) []Moved {
	all := append([]Moved{{Asset: asset, Today: a, Month: a}}, moved...)
	for i, m := range all[1:] {
		if m.Asset != asset || m.Received {
			continue
		}
		first := &all[0]
		var today, month error
		first.Today, today = m.Today.Add(a)
		first.Month, month = m.Month.Add(a)
		first.Over = m.Over || today != nil || month != nil
		return append(all[:i+1], all[i+2:]...)
	}
	return all
}

// The limits: TRY and all other currencies, in and out.
const (
	tryIn = iota
	tryOut
	otherIn
	otherOut
	kinds
)

// used is the amount used of a limit.
type used struct{ today, month sum }

// sum is an amount of TRY. over is true if it is unknown: too large, or of an asset without a rate.
type sum struct {
	amount.Amount
	over    bool
	unrated string // a currency without a rate, "" for none
}

func (s *sum) add(a amount.Amount, err error) {
	total, tooLarge := s.Add(a)
	if err != nil || tooLarge != nil {
		s.over = true
		return
	}
	s.Amount = total
}

// exceeds reports whether a sum is more than a limit.
func (s sum) exceeds(limit amount.Amount) bool { return s.over || s.Cmp(limit) > 0 }

// rest returns the remaining amount of a limit, at least 0.
func (s sum) rest(limit amount.Amount) amount.Amount {
	left, err := limit.Sub(s.Amount)
	if s.over || err != nil || left.Sign() < 0 {
		return amount.Amount{}
	}
	return left
}

// value adds up the moved amounts in TRY. Each sum of an asset is rounded once.
func (s *Service) value(ctx context.Context, now time.Time, moved []Moved) (all [kinds]used, err error) {
	catalog := s.Catalog()
	codes := make([]string, len(moved))
	for i, m := range moved {
		listed, _ := catalog.Pair(m.Asset) // "" if it no longer exists
		codes[i], _ = rate.Code(listed.Currency.Code)
	}
	last, err := rate.Into(ctx, s.Rates, tryCode, now, codes...)
	if err != nil {
		return all, err
	}
	for i, m := range moved {
		kind := otherIn
		if codes[i] == tryCode {
			kind = tryIn
		}
		if !m.Received {
			kind++
		}
		price, known := rate.Find(rate.Pair{Base: codes[i], Quote: tryCode}, last)
		for _, p := range []struct {
			to    *sum
			moved amount.Amount
		}{{&all[kind].today, m.Today}, {&all[kind].month, m.Month}} {
			switch {
			case p.moved.Sign() == 0 && !m.Over:
			case m.Over:
				p.to.over = true
			case kind >= otherIn && !known:
				p.to.over, p.to.unrated = true, codes[i]
			case kind >= otherIn:
				p.to.add(price.Of(p.moved, tryDecimals))
			default:
				p.to.add(p.moved, nil)
			}
		}
	}
	return all, nil
}

// monthly returns the monthly limit of a level, or else thirty times the daily limit.
func monthly(set *amount.Amount, daily amount.Amount) (of amount.Amount) {
	if set != nil {
		return *set
	}
	for range monthOfDays {
		sum, err := of.Add(daily)
		if err != nil { // no limit applies
			return of
		}
		of = sum
	}
	return of
}

func least(a, b amount.Amount) amount.Amount {
	if b.Cmp(a) < 0 {
		return b
	}
	return a
}

package level

import (
	"context"
	"strconv"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

// Check rejects invalid limits: INVALID_FIELD with every negative amount and every monthly limit below its daily limit.
func (l Limits) Check() error {
	var ps fault.Problems
	for _, kind := range []struct {
		name    string
		daily   amount.Amount
		monthly *amount.Amount
	}{
		{"sendLimitTRY", l.SendTryDaily, &l.SendTryMonthly},
		{"sendLimitCrypto", l.SendCryptoDaily, &l.SendCryptoMonthly},
		{"receiveLimitTRY", l.ReceiveTryDaily, l.ReceiveTryMonthly},
		{"receiveLimitCrypto", l.ReceiveCryptoDaily, l.ReceiveCryptoMonthly},
	} {
		day, month := kind.name+"Daily", kind.name+"Monthly"
		ps.Require(kind.daily.Sign() >= 0, day, "must not be negative")
		if kind.monthly == nil {
			continue
		}
		ps.Require(kind.monthly.Sign() >= 0, month, "must not be negative")
		ps.Require(kind.monthly.Sign() < 0 || kind.monthly.Cmp(kind.daily) >= 0, month, "must be at least %s", day)
	}
	return fault.All(ps)
}

// Add adds a level. INVALID_FIELD as in Check; RECORD_ALREADY_EXIST if the number or the label is taken.
func (s *Service) Add(ctx context.Context, by audit.By, l Level) error {
	if err := l.Check(); err != nil {
		return err
	}
	return s.Changes.Do(ctx, by, "LEVEL_ADD", func(ctx context.Context) (admin.Done, error) {
		return admin.Done{Target: number(l.ID), Detail: admin.Values(l)}, s.Store.Add(ctx, l)
	})
}

// Change edits a level; its number cannot change. If nothing differs afterwards, nothing is written. The limits apply
// at once to every account of the level.
//
// Errors: RECORD_NOT_FOUND; INVALID_FIELD as in Check, for the resulting level; RECORD_ALREADY_EXIST if the label is
// taken.
func (s *Service) Change(ctx context.Context, by audit.By, id int64, edit func(*Level)) (next Level, err error) {
	err = s.Changes.Do(ctx, by, "LEVEL_UPDATE", func(ctx context.Context) (done admin.Done, err error) {
		err = s.Store.Change(ctx, id, func(before Level) (Level, error) {
			next = before
			edit(&next)
			next.ID = before.ID
			if detail := admin.Difference(before, next); detail != admin.Unchanged {
				done = admin.Done{Target: number(id), Detail: detail}
			}
			return next, next.Check()
		})
		return done, err
	})
	return next, err
}

func number(id int64) string { return strconv.FormatInt(id, 10) }

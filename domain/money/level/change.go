package level

import (
	"context"
	"fmt"
	"strconv"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

// Check rejects invalid limits: INVALID_FIELD with every negative amount and every monthly limit below its daily limit.
func (l Limits) Check() error {
	zero, bad := amount.Amount{}, []fault.Problem(nil)
	refuse := func(field, message string) { bad = append(bad, fault.Problem{Field: field, Message: message}) }
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
		if kind.daily.Cmp(zero) < 0 {
			refuse(day, "must not be negative")
		}
		switch {
		case kind.monthly == nil:
		case kind.monthly.Cmp(zero) < 0:
			refuse(month, "must not be negative")
		case kind.monthly.Cmp(kind.daily) < 0:
			refuse(month, fmt.Sprintf("must be at least %s", day))
		}
	}
	return fault.All(bad)
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

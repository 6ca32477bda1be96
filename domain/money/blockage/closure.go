package blockage

import (
	"context"
	"slices"
	"time"

	"castellan/domain/money/ledger"
)

// Close plans the effect of closing an account on its money: all available funds are locked, by one blockage for each
// currency. An existing closure locks them in addition to its amount, so no funds are released meanwhile (D-KYC-04).
// told lists the blockages.
func (s *Service) Close(ctx context.Context, now time.Time, userID string, typeID int64,
	has []ledger.Balance) (m ledger.Movement, told string, err error) {
	all, err := s.Store.Closures(ctx, userID)
	if err != nil {
		return m, "", err
	}
	var moved []int // across all closures
	for _, balance := range has {
		free := balance.Available()
		if free.Sign() == 0 {
			continue
		}
		p, err := s.Currencies.Pair(balance.Asset)
		if err != nil {
			return m, "", err
		}
		i := slices.IndexFunc(all, func(b Blockage) bool { return b.CurrencyID == p.CurrencyID })
		if i < 0 {
			i, all = len(all), append(all, Blockage{ID: newID(now), UserID: userID, CurrencyID: p.CurrencyID, TypeID: typeID,
				Status: Active, Closure: true, CreatedAt: now, CurrencyCode: p.Currency.Code})
		}
		b := &all[i]
		if b.Amount, err = b.Amount.Add(free); err != nil {
			return m, "", ledger.ErrTooLarge
		}
		m.Take = append(m.Take, b.hold(now, balance.Account, free))
		if !slices.Contains(moved, i) {
			moved = append(moved, i)
		}
	}
	for _, i := range moved {
		b := all[i]
		told += ", " + b.key() + " " + b.Amount.String() + " " + b.CurrencyCode
		if b.Version == 0 {
			m.With = append(m.With, Add{b})
			continue
		}
		b.UpdatedAt = now
		m.With = append(m.With, Save{b})
	}
	return m, told, nil
}

// Reopen plans the effect of reopening an account on its money: its closures are released. Blockages made by
// administrators stay.
func (s *Service) Reopen(ctx context.Context, now time.Time, userID string) (m ledger.Movement, told string,
	err error) {
	all, err := s.Store.Closures(ctx, userID)
	for _, b := range all {
		ends, err := s.unlock(ctx, b)
		if err != nil {
			return m, "", err
		}
		m.End = append(m.End, ends...)
		b.Status, b.UpdatedAt = Released, now
		m.With = append(m.With, Save{b})
		told += ", " + b.key() + " " + b.Amount.String() + " " + b.CurrencyCode
	}
	return m, told, err
}

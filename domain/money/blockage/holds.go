package blockage

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/sorting"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
)

// source is the source of the holds; their reference is the id of the blockage and a number.
const source = "blockage"

// key returns the id as text.
func (b Blockage) key() string { return strconv.FormatInt(b.ID, 10) }

func (b Blockage) ref(n int) string { return b.key() + "/" + strconv.Itoa(n) }

// hold adds one hold to the blockage.
func (b *Blockage) hold(now time.Time, of ledger.Account, a amount.Amount) ledger.Hold {
	b.Holds++
	h := ledger.NewHold(now, source, b.ref(b.Holds), source, of, a)
	h.Beyond = true
	return h
}

// lock adds the holds that lock an amount.
func (b *Blockage) lock(now time.Time, a amount.Amount, has []ledger.Balance) (holds []ledger.Hold, err error) {
	parts, err := spread(a, has)
	for i, part := range parts {
		if part.Sign() > 0 {
			holds = append(holds, b.hold(now, has[i].Account, part))
		}
	}
	return holds, err
}

// unlock ends every active hold of the blockage.
func (s *Service) unlock(ctx context.Context, b Blockage) (ends []ledger.End, err error) {
	for n := 1; n <= b.Holds; n++ {
		h, err := s.Ledger.Store.HoldByRef(ctx, source, b.ref(n))
		if err != nil {
			return nil, err
		}
		if h.State == ledger.Active {
			ends = append(ends, ledger.End{Hold: h.ID})
		}
	}
	return ends, nil
}

// spread divides an amount among balances, which it sorts, so that the available total falls by exactly the amount, or
// to 0. Balances of assets with fewer decimals come first. The last balance has the most decimals and the least id; it
// takes the digits that the others cannot hold and the excess over all available funds.
func spread(a amount.Amount, has []ledger.Balance) (parts []amount.Amount, err error) {
	sorting.Func(has, func(x, y ledger.Balance) int {
		return cmp.Or(cmp.Compare(y.Unit, x.Unit), cmp.Compare(y.Asset, x.Asset))
	})
	for i, b := range has {
		part := a
		if free := b.Available(); i < len(has)-1 && free.Cmp(a) < 0 {
			part = free
		}
		if i < len(has)-1 {
			hi, lo := part.Parts()
			if part, err = amount.Of(hi, lo-lo%b.Unit); err != nil {
				return nil, err
			}
		}
		if a, err = a.Sub(part); err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// pairs returns a currency on its networks, by id.
func (s *Service) pairs(currencyID int64) []currency.Listed {
	return slices.DeleteFunc(slices.Clone(s.Currencies.Catalog().Pairs(nil)),
		func(p currency.Listed) bool { return p.CurrencyID != currencyID })
}

// accounts returns the open accounts of a user on which an amount of a currency can be locked. If none has enough
// decimals for the amount, the first asset that does is added and its account opened. INVALID_FIELD amount if no
// network has enough decimals.
func (s *Service) accounts(ctx context.Context, userID string, a amount.Amount,
	pairs []currency.Listed) (all []ledger.Account, err error) {
	owned, err := s.Ledger.Store.Owned(ctx, userID)
	if err != nil {
		return nil, err
	}
	account := func(p currency.Listed) ledger.Account {
		return ledger.Account{Kind: ledger.User, Owner: userID, Asset: p.ID}
	}
	fine := false
	for _, p := range pairs {
		if slices.ContainsFunc(owned, func(b ledger.Balance) bool { return b.Asset == p.ID }) {
			all, fine = append(all, account(p)), fine || a.Fits(p.Decimals())
		}
	}
	if fine {
		return all, nil
	}
	i := slices.IndexFunc(pairs, func(p currency.Listed) bool { return a.Fits(p.Decimals()) })
	if i < 0 {
		return nil, ledger.ErrPrecision
	}
	return append(all, account(pairs[i])), nil
}

package transaction

import (
	"context"

	"castellan/domain/money/ledger"
)

// Side is an account of an adjustment, before and after it.
type Side struct{ Before, After ledger.Balance }

// Preview returns both accounts of an adjustment before and after it. It books nothing, and another movement may happen
// before the adjustment (D-TX-12). The errors are those of Adjust, except that of a unique id.
func (s *Service) Preview(ctx context.Context, a Adjustment) (user, treasury Side, err error) {
	p, err := s.plan(ctx, a)
	if err != nil {
		return user, treasury, err
	}
	user.Before.Account, treasury.Before.Account = p.account, p.treasury
	found, err := s.Ledger.Store.Balances(ctx, p.account, p.treasury)
	if err != nil {
		return user, treasury, err
	}
	for _, b := range found {
		if b.Account == p.account {
			user.Before = b
		} else {
			treasury.Before = b
		}
	}
	user.After, treasury.After = user.Before, treasury.Before
	gains, pays := &user.After, &treasury.After
	if a.Direction == Debit {
		if user.Before.Available().Cmp(a.Amount) < 0 {
			return user, treasury, ledger.ErrInsufficient
		}
		gains, pays = pays, gains
	}
	var gained, paid error
	gains.Posted, gained = gains.Posted.Add(a.Amount)
	pays.Posted, paid = pays.Posted.Sub(a.Amount)
	switch {
	case a.Direction == Credit && gained != nil:
		err = ledger.ErrTooLarge
	case gained != nil || paid != nil: // a debit of the user is covered
		err = a.refused(ledger.ErrFull)
	}
	return user, treasury, err
}

package transaction

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/job"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
)

// Service executes transactions. All fields but Judge are required.
type Service struct {
	Ledger     *ledger.Ledger
	Users      user.Store
	Currencies *currency.Cache
	Parameters *parameter.Cache
	Now        func() time.Time

	Store   Store
	Changes admin.Changes // without a topic: no node caches transactions
	Jobs    *job.Service
	// Await returns a job when it is over, or after the time limit of a response.
	Await     func(ctx context.Context, jobID string) (job.Job, error)
	Messenger Messenger
	// MayMove checks whether a caller may decide on money of a user (D-AUTH-03). Each row of an update is checked when
	// it moves.
	MayMove func(caller, userID string) error
	// Judge judges credits and adjustments by the rules of the money policy; nil: none is judged.
	Judge *Judge
	// Claims are the external ids of deposits reported by other services.
	Claims integration.Store
}

// Messenger makes the notifications of a user on each channel of the account (stepup.Messenger).
type Messenger interface {
	Notify(to challenge.Account, topic, template string, v message.Values, ip string, on ...challenge.Name) []commit.Write
}

// Adjustment is a correction of a user's balance.
type Adjustment struct {
	UserID                    string
	CurrencyCode, NetworkCode string
	Amount                    amount.Amount
	Direction                 Direction
	UniqueID                  string
	At                        time.Time // when it takes effect; zero: now
	// Reason is only recorded in the audit trail; it is not part of the identity of an adjustment.
	Reason string
}

// Adjusted is an adjustment as first made.
type Adjusted struct {
	Adjustment
	TransactionID      string
	Address, ToAddress string // of the user, and the destination
	Status             Status
	CreatedAt          time.Time
}

const maxUniqueID = 128

// check makes the checks that need no records. INVALID_FIELD.
func (a Adjustment) check() error {
	var ps fault.Problems
	ps.Require(a.Amount.Sign() > 0, "amount", "must be greater than 0")
	ps.Require(utf8.RuneCountInString(a.UniqueID) <= maxUniqueID, "uniqueId", "must be at most 128 characters")
	return fault.All(ps)
}

// planned is the amount and the accounts of an adjustment.
type planned struct {
	owner             user.User
	pair              currency.Listed
	account, treasury ledger.Account
	transfer          ledger.Transfer
	to                string // the destination address
}

// plan makes the checks that do not need the ledger. The errors are those of Adjust.
func (s *Service) plan(ctx context.Context, a Adjustment) (p planned, err error) {
	if err := a.check(); err != nil {
		return p, err
	}
	pair, ok := s.Currencies.Catalog().Info(&a.CurrencyCode, &a.NetworkCode)
	if !ok {
		return p, fault.New(fault.RecordNotFound, "there is no such currency on this network")
	}
	if !a.Amount.Fits(pair.Decimals()) {
		return p, ledger.ErrPrecision
	}
	if p.owner, err = s.Users.Get(ctx, a.UserID); err != nil {
		if fault.CodeOf(err) == fault.RecordNotFound {
			err = fault.New(fault.RecordNotFound, "there is no such user")
		}
		return p, err
	}
	p.pair = pair
	p.account = ledger.Account{Kind: ledger.User, Owner: a.UserID, Asset: pair.ID}
	p.treasury = ledger.Account{Kind: ledger.Treasury, Asset: pair.ID}
	p.transfer = ledger.New(s.Now(), kindAdjustment, a.UniqueID, p.treasury, p.account, a.Amount)
	p.transfer.EffectiveAt = a.At
	p.to = Address(p.account)
	if a.Direction == Debit {
		p.transfer.Debit, p.transfer.Credit = p.account, p.treasury
		first, err := s.Ledger.Store.ByRef(ctx, kindAdjustment, a.UniqueID)
		var w Withdrawal
		if err == nil { // a repetition
			w, err = s.Store.Withdrawal(ctx, first.ID)
		}
		if p.to = w.ToAddress; fault.CodeOf(err) != fault.RecordNotFound {
			return p, err
		}
		p.to = parameter.Treasury.In(s.Parameters.Set())[pair.Currency.Code][pair.Network.Code]
		if p.to == "" {
			return p, fault.New(fault.InvalidState, "the treasury has no address for this currency and network")
		}
	}
	return p, nil
}

// Adjust corrects a user's balance, once for each unique id: a deposit from the treasury, or a withdrawal to its
// address (D-TX-10). The movement, its row, the user's coin address and the audit row commit together. A repeat of the
// same adjustment returns the first result (D-TX-06).
//
// Errors: INVALID_FIELD; RECORD_NOT_FOUND for a currency, network or user; INVALID_STATE if the treasury has no address
// or the balance is insufficient; POLICY_DENIED, and FORBIDDEN for a second person who is not in the group that must
// approve; RECORD_ALREADY_EXIST if the unique id belongs to another adjustment; ErrFull of the
// ledger.
func (s *Service) Adjust(ctx context.Context, by audit.By, a Adjustment) (Adjusted, error) {
	p, err := s.plan(ctx, a)
	if err != nil {
		return Adjusted{}, err
	}
	var ruled ruling
	plan := func(ctx context.Context, _ []ledger.Balance) (m ledger.Movement, err error) {
		r, err := s.adjusted(ctx, by, a, p)
		ruled = r
		t, facts := p.transfer, stored(r.facts)
		with := append(r.gates, AddAddress{Account: p.account, At: t.At})
		if a.Direction == Credit {
			with = append(with, AddDeposit{Deposit{ID: t.ID, UserID: a.UserID, Asset: p.pair.ID, Amount: a.Amount,
				Status: Finalized, TxID: a.UniqueID, ToAddress: p.to, TransferID: t.ID, At: t.At,
				Initiator: initiatorOf(by), Facts: facts}})
		} else {
			with = append(with, AddWithdrawal{Withdrawal{ID: t.ID, UserID: a.UserID, Asset: p.pair.ID, Amount: a.Amount,
				Status: Finalized, ToAddress: p.to, TransferID: t.ID, At: t.At, Initiator: initiatorOf(by),
				Facts: facts}})
		}
		with = append(with, by.Did(audit.Record{At: t.At, Action: "ADJUST_BALANCE", UserID: a.UserID, Target: t.ID,
			Detail: withReason(string(a.Direction)+" "+a.Amount.String()+" "+p.pair.Currency.Code, a.Reason)}))
		return ledger.Movement{Transfers: []ledger.Transfer{t}, With: with, Once: true}, err
	}
	r, err := s.Judge.decide(ctx, s.Ledger, by, []ledger.Account{p.account, p.treasury}, plan)
	if err != nil {
		return Adjusted{}, a.refused(deniedBy(ctx, s.Ledger.Commit, s.Now(), by, err))
	}
	first := r.Transfers[0]
	if first.ID == p.transfer.ID && audit.Approver(ctx) != audit.Rehearsed { // and no repetition
		s.Judge.hit(ruled.Verdict)
	}
	a.CurrencyCode, a.NetworkCode, a.At = p.pair.Currency.Code, p.pair.Network.Code, first.EffectiveAt
	return Adjusted{Adjustment: a, TransactionID: first.ID, Address: Address(p.account), ToAddress: p.to,
		Status: Finalized, CreatedAt: first.At}, nil
}

// refused blames the amount for a full treasury if no real adjustment has such an amount (D-TX-10).
func (a Adjustment) refused(err error) error {
	if errors.Is(err, ledger.ErrFull) && a.Amount.Cmp(currency.StandardMaxDeposit) > 0 {
		return ledger.ErrTooLarge
	}
	return err
}

// withReason returns the detail of an audit row, with the reason if one was given.
func withReason(detail, reason string) string {
	if reason == "" {
		return detail
	}
	return detail + "; " + reason
}

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

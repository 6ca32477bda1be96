package transaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"castellan/domain/access/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
)

// QueueUpdate decides on a withdrawal in the queue: QueueSuccess, which needs the
// code of its currency, or QueueWaiting.
type QueueUpdate struct {
	ID           string
	To           QueueStatus
	CurrencyCode string
	Reason       string // for the audit
}

var errNotQueued = fault.New(fault.InvalidState,
	"the withdrawal waits neither for the hot wallet nor after a time-out")

// moved reports whether another change of a row was faster.
func moved(err error) bool { return errors.Is(err, commit.ErrFenced) }

// UpdateQueue moves an entry of the queue that is in HotWalletIsEmpty or TimeOut
// (D-TX-08). QueueSuccess says that the withdrawal has gone out: what it held is
// settled by a transfer of the amount to the treasury and one of the fee, its status
// is Processing, and it gets a process that is finalized. All of it is one
// transaction, and happens once.
//
// Errors: RECORD_NOT_FOUND; INVALID_STATE for any other status, also after a race;
// INVALID_FIELD for another currency; INVALID_STATE where the fee is not there or is
// too fine for the network.
func (s *Service) UpdateQueue(ctx context.Context, by audit.By, u QueueUpdate) (q Queued, err error) {
	err = s.Changes.Do(ctx, by, "WITHDRAWAL_QUEUE_STATUS", func(ctx context.Context) (done admin.Done, err error) {
		if q, err = s.Store.Queued(ctx, u.ID); err != nil {
			return done, err
		}
		if !Allowed(Decision, q.Status, u.To) {
			return done, errNotQueued
		}
		from := q.Status
		q.Status = u.To
		// First of all, so that of two who decide one waits for the other here.
		if err := s.Changes.Commit.Commit(ctx, SetQueued{q}); err != nil {
			return done, err
		}
		w, err := s.Store.Withdrawal(ctx, q.ID)
		if err == nil && u.To == QueueSuccess {
			w, err = s.gone(ctx, by, q, w, u.CurrencyCode)
		}
		detail := fmt.Sprintf("%s to %s: %s %s", from, u.To, w.Amount, s.code(w.Asset))
		if w.Fee.Sign() > 0 {
			detail += ", fee " + w.Fee.String()
		}
		return admin.Done{Target: q.ID, UserID: q.UserID, Detail: because(detail, u.Reason)}, err
	})
	if moved(err) {
		err = errNotQueued
	}
	return q, err
}

// gone books a withdrawal that has gone out. One that has its transfer was booked,
// with its fee, before it came into the queue.
func (s *Service) gone(ctx context.Context, by audit.By, q Queued, w Withdrawal, code string) (_ Withdrawal,
	err error) {
	pair, _ := s.Currencies.Catalog().Pair(q.Asset)
	if !strings.EqualFold(pair.Currency.Code, code) {
		return w, fault.Invalid("currencyCode", "is not the currency of the withdrawal")
	}
	now := s.Changes.Now()
	if w.TransferID == "" {
		if w.Fee, err = s.fee(q, pair); err != nil {
			return w, err
		}
		m := w.settle(now)
		if _, err := s.Ledger.Do(ctx, by, m); err != nil {
			return w, err
		}
		w.TransferID = m.Transfers[0].ID
	}
	w.Status = Processing
	return w, s.Changes.Commit.Commit(ctx, SetWithdrawal{w}, w.process(q, now))
}

// settle is the movement that books a withdrawal: it settles the hold by a transfer of the
// amount, the first one, and by one of the fee where there is a fee.
func (w Withdrawal) settle(now time.Time) ledger.Movement {
	from := account(w.UserID, w.Asset)
	t := ledger.New(now, holdSource, w.ID, from, ledger.Account{Kind: ledger.Treasury, Asset: w.Asset}, w.Amount)
	m := ledger.Movement{Transfers: []ledger.Transfer{t}, End: []ledger.End{{Hold: w.HoldID, Transfer: t.ID}}}
	if w.Fee.Sign() > 0 {
		m.Transfers = append(m.Transfers, ledger.New(now, feeKind, w.ID, from,
			ledger.Account{Kind: ledger.Fee, Asset: w.Asset}, w.Fee))
	}
	return m
}

// process is the process of a withdrawal that has gone out.
func (w Withdrawal) process(q Queued, now time.Time) AddProcess {
	return AddProcess{Process{ID: id.New(now), TransactionID: w.ID, UserID: w.UserID, Asset: w.Asset, TxID: q.TxID,
		Internal: internal(w.ToAddress), Status: Finalized, At: now}}
}

// code is the code of the currency of an asset.
func (s *Service) code(asset int64) string {
	pair, _ := s.Currencies.Catalog().Pair(asset)
	return pair.Currency.Code
}

// fee is what a withdrawal costs: what it says itself, else what its currency costs
// (REQ-TX-20).
func (s *Service) fee(q Queued, pair currency.Listed) (amount.Amount, error) {
	return feeOf(s.Parameters, q, pair)
}

// Cost is the fee of an entry: the booked one, else what it says itself or what its currency
// costs now.
func (s *Service) Cost(e Entry) amount.Amount {
	if e.Withdrawal.TransferID != "" {
		return e.Withdrawal.Fee
	}
	pair, _ := s.Currencies.Catalog().Pair(e.Queued.Asset)
	fee, _ := s.fee(e.Queued, pair) // a fee that is too fine is shown as it is
	return fee
}

func feeOf(parameters *parameter.Live, q Queued, pair currency.Listed) (amount.Amount, error) {
	fee := parameter.Fee.In(parameters.Set())[pair.Currency.Code]
	if q.Fee != nil {
		fee = *q.Fee
	}
	if !fee.Fits(pair.Decimals()) {
		return fee, fault.New(fault.InvalidState, "the fee has more decimals than the currency has on this network")
	}
	return fee, nil
}

// Processes lists the processes of a user, newest first. userType, where it is not
// nil, is the type that the user must have: a user of another type, or one that is
// not there, has none (D-PRC-04).
func (s *Service) Processes(ctx context.Context, q ProcessQuery, userType *string,
	p page.Query[Place]) (none page.Of[Process], err error) {
	if userType != nil {
		u, err := s.Users.Get(ctx, q.UserID)
		if fault.CodeOf(err) == fault.RecordNotFound || err == nil && u.Type != user.Type(*userType) {
			return none, nil
		}
		if err != nil {
			return none, err
		}
	}
	return s.Store.Processes(ctx, q, p)
}

// Assets are the pairs of a currency and a network by their codes, each nil for any;
// nil where both are. Where there is no such pair it is one that no row has.
func (s *Service) Assets(currencyCode, networkCode *string) (ids []int64) {
	if currencyCode == nil && networkCode == nil {
		return nil
	}
	for _, l := range s.Currencies.Catalog().Pairs(nil) {
		if (currencyCode == nil || *currencyCode == l.Currency.Code) &&
			(networkCode == nil || *networkCode == l.Network.Code) {
			ids = append(ids, l.ID)
		}
	}
	if ids == nil {
		return []int64{0}
	}
	return ids
}

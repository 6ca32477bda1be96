package transaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"castellan/domain/account/user"
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

// QueueUpdate decides on a withdrawal in the queue: QueueSuccess, which requires the code of its currency, or
// QueueWaiting.
type QueueUpdate struct {
	ID           string
	To           QueueStatus
	CurrencyCode string
	Reason       string // for the audit trail
}

var errNotQueued = fault.New(fault.InvalidState,
	"the withdrawal is not waiting for the hot wallet and has not timed out")

// moved reports whether a concurrent change of a row was faster.
func moved(err error) bool { return errors.Is(err, commit.ErrFenced) }

// UpdateQueue moves an entry of the queue that is in HotWalletIsEmpty or TimeOut (D-TX-08). With QueueSuccess the
// withdrawal counts as sent. Transfers of the amount to the treasury and of the fee settle its hold, its status becomes
// Processing, and it gets a finalized process. All is one transaction, and happens once.
//
// Errors: RECORD_NOT_FOUND; INVALID_STATE for any other status, also after a concurrent change; INVALID_FIELD for
// another currency; INVALID_STATE if the fee is missing or has too many decimals for the network.
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
		// This comes first, so that of two concurrent decisions one waits here for the other.
		if err := s.Changes.Commit.Commit(ctx, SetQueued{q}, SetHeld{q}); err != nil {
			return done, err
		}
		w, err := s.Store.Withdrawal(ctx, q.ID)
		if err == nil && u.To == QueueSuccess {
			w, err = s.bookSent(ctx, by, q, w, u.CurrencyCode)
		}
		detail := fmt.Sprintf("%s to %s: %s %s", from, u.To, w.Amount, s.code(w.Asset))
		if w.Fee.Sign() > 0 {
			detail += ", fee " + w.Fee.String()
		}
		return admin.Done{Target: q.ID, UserID: q.UserID, Detail: withReason(detail, u.Reason)}, err
	})
	if moved(err) {
		err = errNotQueued
	}
	return q, err
}

// bookSent books a withdrawal that was sent. A withdrawal that has its transfer was booked, with its fee, before it
// entered the queue.
func (s *Service) bookSent(ctx context.Context, by audit.By, q Queued, w Withdrawal, code string) (_ Withdrawal,
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

// settle returns the movement that books a withdrawal. The first transfer, of the amount, settles the hold. The second
// one, if there is a fee, moves the fee.
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

// process returns the process of a sent withdrawal.
func (w Withdrawal) process(q Queued, now time.Time) AddProcess {
	return AddProcess{Process{ID: id.New(now), TransactionID: w.ID, UserID: w.UserID, Asset: w.Asset, TxID: q.TxID,
		Internal: internal(w.ToAddress), Status: Finalized, At: now}}
}

// code returns the code of the currency of an asset.
func (s *Service) code(asset int64) string {
	pair, _ := s.Currencies.Catalog().Pair(asset)
	return pair.Currency.Code
}

// fee returns the cost of a withdrawal: its own fee, or else that of its currency (REQ-TX-20).
func (s *Service) fee(q Queued, pair currency.Listed) (amount.Amount, error) {
	return feeOf(s.Parameters, q, pair)
}

// Cost returns the fee of an entry: the booked fee, or else its own fee or the current fee of its currency.
func (s *Service) Cost(e Entry) amount.Amount {
	if e.Withdrawal.TransferID != "" {
		return e.Withdrawal.Fee
	}
	pair, _ := s.Currencies.Catalog().Pair(e.Queued.Asset)
	fee, _ := s.fee(e.Queued, pair) // a fee with too many decimals is shown unchanged
	return fee
}

func feeOf(parameters *parameter.Cache, q Queued, pair currency.Listed) (amount.Amount, error) {
	fee := parameter.Fee.In(parameters.Set())[pair.Currency.Code]
	if q.Fee != nil {
		fee = *q.Fee
	}
	if !fee.Fits(pair.Decimals()) {
		return fee, fault.New(fault.InvalidState, "the fee has more decimals than the currency has on this network")
	}
	return fee, nil
}

// Processes lists the processes of a user, newest first. If userType is not nil, the user must have that type: a user
// of another type, or a missing one, has no processes (D-PRC-04).
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

// Assets returns the pairs of a currency and a network by their codes, each nil for any; nil if both are. If no pair
// matches, it returns an id that no row has.
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

package transaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/ledger"
)

// WalletMove is a move of the wallet. TxID is required for QueueSent, and Reason for QueueFailed.
type WalletMove struct {
	ID           string
	From         QueueStatus // the withdrawal must have this status; 0: any
	To           QueueStatus
	TxID, Reason string
}

var (
	errMove   = fault.New(fault.InvalidState, "the withdrawal cannot change to this status")
	errFrom   = fault.New(fault.InvalidState, "the status of the withdrawal differs from the field from")
	errBooked = fault.New(fault.InvalidState, "the withdrawal is already booked and has no hold")
)

// Move executes a move of the wallet, once: repeating the last move of the withdrawal with the same fields returns the
// record, whatever From is. QueueSuccess books the withdrawal (D-TX-08), QueueFailed releases its hold, both in the
// unit of the move.
//
// Errors: RECORD_NOT_FOUND; INVALID_FIELD txId; INVALID_STATE for a move that is not in the table (Moves), for another
// status than From, and for a fee that cannot be booked.
func (s *Withdrawals) Move(ctx context.Context, by audit.By, m WalletMove) (Outgoing, error) {
	return s.change(ctx, by, Wallet, m.ID, m.To, func(q *Queued) (repeated bool, err error) {
		if q.Status == m.To && (m.TxID == "" || address.Same(m.TxID, q.TxID)) && (m.Reason == "" || m.Reason == q.Reason) {
			return true, nil
		}
		if m.From != 0 && m.From != q.Status {
			return false, errFrom
		}
		if !address.Plain(m.TxID) {
			return false, fault.Invalid("txId", "must have visible ASCII characters only")
		}
		if m.TxID != "" {
			q.TxID = m.TxID
		}
		q.Reason = m.Reason
		return false, nil
	})
}

// Resume returns a stuck withdrawal, or one that waits for approval, to the wallet. Errors: RECORD_NOT_FOUND,
// INVALID_STATE.
func (s *Withdrawals) Resume(ctx context.Context, by audit.By, id, reason string) (Outgoing, error) {
	return s.change(ctx, by, Resume, id, QueueReady, give(reason))
}

// Cancel releases the hold of a withdrawal that the wallet has not claimed. Errors:
// RECORD_NOT_FOUND, INVALID_STATE.
func (s *Withdrawals) Cancel(ctx context.Context, by audit.By, id, reason string) (Outgoing, error) {
	return s.change(ctx, by, Cancel, id, QueueCancelled, give(reason))
}

func give(reason string) func(*Queued) (bool, error) {
	return func(q *Queued) (bool, error) { q.Reason = reason; return false, nil }
}

// change moves a withdrawal. edit sets the fields of the move, reports that the withdrawal has already made this move,
// or refuses it.
func (s *Withdrawals) change(ctx context.Context, by audit.By, mover Mover, id string, to QueueStatus,
	edit func(*Queued) (repeated bool, err error)) (o Outgoing, err error) {
	if o, err = s.Get(ctx, id); err != nil {
		return o, err
	}
	_, err = s.Ledger.Decide(ctx, by, []ledger.Account{account(o.Queued.UserID, o.Queued.Asset)},
		func(ctx context.Context, _ []ledger.Balance) (m ledger.Movement, err error) {
			if o, err = s.Get(ctx, id); err != nil {
				return m, err
			}
			from := o.Queued.Status
			if repeated, err := edit(&o.Queued); repeated || err != nil {
				return m, err
			}
			if !Allowed(mover, from, to) {
				return m, errMove
			}
			o.Queued.Status = to
			return s.move(by, mover, from, o)
		})
	if errors.Is(err, commit.ErrFenced) {
		err = errMove
	}
	if err != nil {
		return Outgoing{}, err
	}
	return s.Get(ctx, id)
}

// actions are the audit names of the moves.
var actions = map[Mover]string{Wallet: "WITHDRAWAL_MOVE", Resume: "WITHDRAWAL_RESUME", Cancel: "WITHDRAWAL_CANCEL"}

// move returns the ledger movement of an allowed move.
func (s *Withdrawals) move(by audit.By, mover Mover, from QueueStatus, o Outgoing) (m ledger.Movement, err error) {
	now, w, q := s.Now().UTC().Truncate(time.Millisecond), o.Withdrawal, o.Queued
	switch q.Status {
	case QueueSuccess:
		if m, err = s.finalized(&w, q, now); err != nil {
			return m, err
		}
		m.With = append(m.With, SetWithdrawal{w}, w.process(q, now))
	case QueueFailed, QueueCancelled:
		if w.TransferID != "" {
			return m, errBooked
		}
		if w.Status = Failed; q.Status == QueueCancelled {
			w.Status = Cancelled
		}
		m.End = []ledger.End{{Hold: w.HoldID}}
		m.With = append(m.With, SetWithdrawal{w})
	}
	pair, _ := s.Currencies.Catalog().Pair(q.Asset)
	m.With = append(m.With, SetQueued{q}, by.Did(audit.Record{At: now, Action: actions[mover], UserID: q.UserID,
		Target: q.ID, Detail: withReason(fmt.Sprintf("%s to %s: %s %s", from, q.Status, w.Amount, pair.Currency.Code),
			q.Reason)}))
	switch mover {
	case Resume:
		m.With = append(m.With, s.event(integration.WithdrawalResumed, o, now))
	case Cancel:
		m.With = append(m.With, s.event(integration.WithdrawalCancelled, o, now))
	}
	return m, nil
}

// finalized returns the movement that books a withdrawal, and sets its fields. A withdrawal that has its transfer was
// booked before it entered the queue.
func (s *Withdrawals) finalized(w *Withdrawal, q Queued, now time.Time) (m ledger.Movement, err error) {
	w.Status = Finalized
	if w.TransferID != "" {
		return m, nil
	}
	pair, _ := s.Currencies.Catalog().Pair(q.Asset)
	if w.Fee, err = feeOf(s.Parameters, q, pair); err != nil {
		return m, err
	}
	m = w.settle(now)
	w.TransferID = m.Transfers[0].ID
	return m, nil
}

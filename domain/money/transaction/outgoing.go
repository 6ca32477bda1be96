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
	"castellan/domain/money/policy"
)

// WalletMove is a move of the wallet. TxID is required for QueueSent, and Reason for QueueFailed. Claim is the token of
// the worker that claims an entry; "" for none.
type WalletMove struct {
	ID           string
	From         QueueStatus // the withdrawal must have this status; 0: any
	To           QueueStatus
	TxID, Reason string
	Claim        string
}

var (
	errMove     = fault.New(fault.InvalidState, "the withdrawal cannot change to this status")
	errFrom     = fault.New(fault.InvalidState, "the status of the withdrawal differs from the field from")
	errRestored = fault.New(fault.InvalidState, "no withdrawal can be claimed: the service was restored from a backup "+
		"and waits for castellan restore reconcile --finish")
	errUncompared = fault.New(fault.InvalidState, "the withdrawal was restored from a backup and was not compared with "+
		"the wallet: castellan restore reconcile")
	errBooked = fault.New(fault.InvalidState, "the withdrawal is already booked and has no hold")
)

// Move executes a move of the wallet, once: repeating the last move of the withdrawal with the same fields returns the
// record, whatever From is. QueueSuccess books the withdrawal (D-TX-08), QueueFailed releases its hold, both in the
// unit of the move. A claim (QueueProcessing) reads the account again: if it may not withdraw, the entry becomes
// QueueWaiting with Held, and the claim is refused (D-POL-02).
//
// Errors: RECORD_NOT_FOUND; INVALID_FIELD txId; INVALID_STATE, with the record. INVALID_STATE means a move that is not
// in the table (Moves), or another status than From. It also means a held withdrawal, one that another worker has
// claimed, and a fee that cannot be booked. After a restore no withdrawal can be claimed before it was compared
// (D-EXT-17).
func (s *Withdrawals) Move(ctx context.Context, by audit.By, m WalletMove) (Outgoing, error) {
	return s.change(ctx, by, step{mover: Wallet}, m.ID, m.To, func(q *Queued) (repeated bool, err error) {
		if q.Status == m.To && (m.TxID == "" || address.Same(m.TxID, q.TxID)) && (m.Reason == "" || m.Reason == q.Reason) {
			if m.To == QueueProcessing && !q.claimed(m.Claim) {
				return false, errClaimed
			}
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
		q.Reason, q.Claim, q.ClaimedAt = m.Reason, claimOf(m.Claim), time.Time{}
		if m.To == QueueProcessing {
			q.ClaimedAt = s.Now().UTC().Truncate(time.Millisecond)
			q.LeftAt = q.ClaimedAt
		}
		return false, nil
	})
}

// Resume returns a stuck withdrawal, or one that waits for approval, to the wallet. If rules of the money policy ask
// for approvals, it is the approval of the caller, and the last one that is needed returns the withdrawal.
//
// Errors: RECORD_NOT_FOUND; INVALID_STATE, also during a wait that rules ask for; ACCOUNT_NOT_ACTIVE,
// WITHDRAWAL_PROHIBITED and AML_RISKY while the account may not withdraw; POLICY_DENIED; FORBIDDEN if the caller may
// not give an approval that is missing.
func (s *Withdrawals) Resume(ctx context.Context, by audit.By, id, reason string) (Outgoing, error) {
	return s.ResumeSigned(ctx, by, id, reason, Signed{})
}

// ResumeSigned is Resume by an operator who has completed a challenge that shows the order (Shown). It is stored with
// the approval. INVALID_STATE, too, if the withdrawal has another order now.
func (s *Withdrawals) ResumeSigned(ctx context.Context, by audit.By, id, reason string, signed Signed) (Outgoing,
	error) {
	o, err := s.change(ctx, by, step{mover: Resume, signed: signed}, id, QueueReady, give(reason))
	return o, s.Denied(ctx, by, err)
}

// Cancel releases the hold of a withdrawal that the wallet has not claimed. Errors:
// RECORD_NOT_FOUND, INVALID_STATE.
func (s *Withdrawals) Cancel(ctx context.Context, by audit.By, id, reason string) (Outgoing, error) {
	return s.change(ctx, by, step{mover: Cancel}, id, QueueCancelled, give(reason))
}

// CancelOwn is Cancel by the owner of the account, for a withdrawal that waits for the wallet or for a person. Errors:
// RECORD_NOT_FOUND, also for a withdrawal of another account; INVALID_STATE.
func (s *Withdrawals) CancelOwn(ctx context.Context, by audit.By, id string) (Outgoing, error) {
	q, err := s.Store.Queued(ctx, id)
	if err == nil && q.UserID != by.UserID {
		err = fault.New(fault.RecordNotFound, "the account has no such withdrawal")
	}
	if err != nil {
		return Outgoing{}, err
	}
	return s.change(ctx, by, step{mover: OwnerCancel}, id, QueueCancelled, give(""))
}

func give(reason string) func(*Queued) (bool, error) {
	return func(q *Queued) (bool, error) { q.Reason = reason; return false, nil }
}

// change moves a withdrawal. edit sets the fields of the move, reports that the withdrawal has already made this move,
// or refuses it. With INVALID_STATE it returns the record.
func (s *Withdrawals) change(ctx context.Context, by audit.By, begin step, id string, to QueueStatus,
	edit func(*Queued) (repeated bool, err error)) (o Outgoing, err error) {
	mover := begin.mover
	leaves := mover == Hold || mover == Resume || mover == Release || mover == Wallet && to == QueueProcessing
	var accounts []ledger.Account // a move that books nothing needs no balance
	if to.Final() || mover == Release {
		q, err := s.Store.Queued(ctx, id)
		if err != nil {
			return o, err
		}
		accounts = []ledger.Account{account(q.UserID, q.Asset)}
	}
	var held error
	var hit policy.Verdict
	_, err = s.Judge.decide(ctx, s.Ledger, by, accounts, func(ctx context.Context,
		_ []ledger.Balance) (m ledger.Movement, err error) {
		if o, err = s.Get(ctx, id); err != nil {
			return m, err
		}
		held, hit = nil, policy.Verdict{}
		next := o
		repeated, err := edit(&next.Queued)
		if err != nil {
			return m, err
		}
		if !repeated && !Allowed(mover, o.Queued.Status, to) {
			return m, errMove
		}
		next.Queued.Status = to
		step := begin
		step.next = next
		if leaves {
			if step, err = s.again(ctx, by, step, o, repeated); err != nil || step.mover == "" {
				return m, err
			}
		}
		if repeated {
			return m, nil
		}
		hit = step.hit
		if held = step.refused; held == nil {
			if err := s.compared(ctx, mover, id, step.next.Queued.Status); err != nil {
				return m, err
			}
		}
		next = step.next
		m, err = s.move(by, step.mover, o.Queued, &next)
		m.With = append(m.With, step.with...)
		if err == nil {
			m.With = append(m.With, s.told(by, step.owner, o.Queued, next)...)
			o = next
			o.Queued.Version++
		}
		return m, err
	})
	if errors.Is(err, commit.ErrFenced) {
		err = errMove
	}
	if err == nil {
		s.Judge.hit(hit)
	}
	// Inside a transaction, an error would roll back the hold, and the approval of the caller.
	if err == nil && mover != Hold && mover != Release && (mover != Resume || !commit.Inside(ctx)) {
		err = held
	}
	if err != nil && fault.CodeOf(err) != fault.InvalidState {
		return Outgoing{}, err
	}
	return o, err
}

// compared refuses the moves that could pay a withdrawal twice after a restore from a backup (D-EXT-17): the wallet may
// have paid it after the point of the backup.
func (s *Withdrawals) compared(ctx context.Context, mover Mover, id string, to QueueStatus) error {
	claims := mover == Wallet && to == QueueProcessing
	if !claims && mover != Resume && mover != Cancel && mover != OwnerCancel && mover != Release {
		return nil
	}
	open, waits, err := s.Store.Restored(ctx, id)
	switch {
	case err != nil:
		return err
	case claims && open:
		return errRestored
	case waits:
		return errUncompared
	}
	return nil
}

// actions are the audit names of the moves.
var actions = map[Mover]string{Wallet: "WITHDRAWAL_MOVE", Resume: "WITHDRAWAL_RESUME", Cancel: "WITHDRAWAL_CANCEL",
	OwnerCancel: "WITHDRAWAL_CANCEL", Hold: "MONEY_HOLD", Release: "MONEY_RELEASE", Approve: "MONEY_APPROVE"}

// events are the types of the events of moves that the wallet does not make.
var events = map[Mover]integration.Type{Resume: integration.WithdrawalResumed,
	Cancel: integration.WithdrawalCancelled, OwnerCancel: integration.WithdrawalCancelled,
	Hold: integration.WithdrawalHeld}

// move returns the ledger movement of an allowed move, and sets what it changes in o.
func (s *Withdrawals) move(by audit.By, mover Mover, was Queued, o *Outgoing) (m ledger.Movement, err error) {
	now, w, q := s.Now().UTC().Truncate(time.Millisecond), &o.Withdrawal, &o.Queued
	switch q.Status {
	case QueueSuccess:
		if m, err = w.booked(s.Parameters, s.Currencies, *q, now); err != nil {
			return m, err
		}
		w.Status = Finalized
		m.With = append(m.With, SetWithdrawal{*w}, w.process(*q, now))
		w.Version++
	case QueueFailed, QueueCancelled:
		if w.TransferID != "" {
			return m, errBooked
		}
		if w.Status = Failed; q.Status == QueueCancelled {
			w.Status = Cancelled
		}
		m.End = []ledger.End{{Hold: w.HoldID}}
		m.With = append(m.With, SetWithdrawal{*w})
		w.Version++
	}
	if q.Status != QueueWaiting {
		q.Held = approved(q.Held.Asked().Approved)
	}
	if mover == Resume {
		q.ResumedAt = now
	}
	pair, _ := s.Currencies.Catalog().Pair(q.Asset)
	said := q.Reason
	action := actions[mover]
	switch {
	case mover == Hold || mover == Approve:
		said = withReason(q.Held.detail(), said)
	case was.Held.Reason == HeldPolicy:
		said = withReason(was.Held.detail(), said)
		if mover == Resume {
			action = actions[Release]
		}
	}
	m.With = append(m.With, SetQueued{*q}, SetHeld{*q}, by.Did(audit.Record{At: now, Action: action,
		UserID: q.UserID, Target: q.ID, Detail: withReason(fmt.Sprintf("%s to %s: %s %s", was.Status, q.Status, w.Amount,
			pair.Currency.Code), said)}))
	t, is := events[mover]
	if mover == Release {
		if t, is = integration.WithdrawalResumed, true; q.Status == QueueCancelled {
			t = integration.WithdrawalCancelled
		}
	}
	if q.Status == QueueReady && was.unannounced() {
		t = integration.WithdrawalQueued
	}
	if is && q.Status != was.Status {
		m.With = append(m.With, s.event(t, *o, now))
	}
	return m, nil
}

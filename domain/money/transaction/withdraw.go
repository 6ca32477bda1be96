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
	"castellan/domain/kit/integration"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/addressbook/address"
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

// bookSent books a withdrawal that was sent.
func (s *Service) bookSent(ctx context.Context, by audit.By, q Queued, w Withdrawal, code string) (_ Withdrawal,
	err error) {
	pair, _ := s.Currencies.Catalog().Pair(q.Asset)
	if !strings.EqualFold(pair.Currency.Code, code) {
		return w, fault.Invalid("currencyCode", "is not the currency of the withdrawal")
	}
	now := s.Changes.Now()
	m, err := w.booked(s.Parameters, s.Currencies, q, now)
	if err == nil && len(m.Transfers) > 0 {
		_, err = s.Ledger.Do(ctx, by, m)
	}
	if err != nil {
		return w, err
	}
	w.Status = Processing
	return w, s.Changes.Commit.Commit(ctx, SetWithdrawal{w}, w.process(q, now))
}

// booked returns the movement that books a withdrawal, and sets its fee and transfer. The first transfer, of the
// amount, settles the hold. The second one, if there is a fee, moves the fee. A withdrawal that has its transfer was
// booked, with its fee, before it entered the queue: the movement is empty.
func (w *Withdrawal) booked(parameters *parameter.Cache, currencies *currency.Cache, q Queued, now time.Time) (
	m ledger.Movement, err error) {
	if w.TransferID != "" {
		return m, nil
	}
	pair, _ := currencies.Catalog().Pair(q.Asset)
	if w.Fee, err = feeOf(parameters, q, pair); err != nil {
		return m, err
	}
	from := account(w.UserID, w.Asset)
	t := ledger.New(now, holdSource, w.ID, from, ledger.Account{Kind: ledger.Treasury, Asset: w.Asset}, w.Amount)
	w.TransferID = t.ID
	m = ledger.Movement{Transfers: []ledger.Transfer{t}, End: []ledger.End{{Hold: w.HoldID, Transfer: t.ID}}}
	if w.Fee.Sign() > 0 {
		m.Transfers = append(m.Transfers, ledger.New(now, feeKind, w.ID, from,
			ledger.Account{Kind: ledger.Fee, Asset: w.Asset}, w.Fee))
	}
	return m, nil
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

// Cost returns the fee of an entry: the booked fee, or else its own fee or the current fee of its currency.
func (s *Service) Cost(e Entry) amount.Amount {
	if e.Withdrawal.TransferID != "" {
		return e.Withdrawal.Fee
	}
	pair, _ := s.Currencies.Catalog().Pair(e.Queued.Asset)
	fee, _ := feeOf(s.Parameters, e.Queued, pair) // a fee with too many decimals is shown unchanged
	return fee
}

// feeOf returns the cost of a withdrawal: its own fee, or else that of its currency (REQ-TX-20).
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
func (s *Service) Assets(currencyCode, networkCode *string) []int64 {
	if currencyCode == nil && networkCode == nil {
		return nil
	}
	ids := s.Currencies.Catalog().IDs(func(l currency.Listed) bool {
		return (currencyCode == nil || *currencyCode == l.Currency.Code) &&
			(networkCode == nil || *networkCode == l.Network.Code)
	})
	if len(ids) == 0 {
		return []int64{0}
	}
	return ids
}

// Uncompared is an entry of the queue that waits for the comparison with the wallet after a restore.
type Uncompared struct {
	Queued
	Former QueueStatus // at the point of the backup
}

// Reconciliation compares the queue with the records of the wallet after a restore from a backup (D-EXT-17). All fields
// are required.
type Reconciliation struct {
	Store interface {
		Store
		// Uncompared lists the entries that wait for the comparison, oldest first.
		Uncompared(ctx context.Context) ([]Uncompared, error)
		// Compared ends the wait of an entry, and Finished that of the restores, in the transaction of ctx.
		Compared(ctx context.Context, id string, sent bool, now time.Time) error
		Finished(ctx context.Context, now time.Time) error
	}
	Claims integration.Store
	Commit commit.Committer
	Now    func() time.Time
}

// Payment is a line of the wallet's records: what it did with a withdrawal.
type Payment struct {
	ID, ExternalID string // at least one
	Sent           bool
	TxID           string // of a sent one
}

// Verdict is the effect of a Payment.
type Verdict string

// The verdicts.
const (
	MarkedSent   Verdict = "sent"      // the entry is QueueSent; the wallet reports its success
	MarkedUnsent Verdict = "unsent"    // the entry may be resumed or cancelled
	Lost         Verdict = "lost"      // paid, but unknown here: book it by an adjustment
	Agrees       Verdict = "no change" // nothing waits
)

// Settle applies one line of the wallet's records, in one transaction with its audit row. A withdrawal that was paid
// and is unknown, because it was requested after the point, keeps its external id: a repeated request is refused.
func (r Reconciliation) Settle(ctx context.Context, by audit.By, p Payment) (v Verdict, err error) {
	if p.Sent && (p.TxID == "" || !address.Plain(p.TxID)) {
		return "", fault.Invalid("txId", "must have visible ASCII characters only")
	}
	err = r.Commit.InTx(ctx, func(ctx context.Context) (err error) {
		v, err = r.settle(ctx, by, p)
		return err
	})
	return v, err
}

func (r Reconciliation) settle(ctx context.Context, by audit.By, p Payment) (Verdict, error) {
	q, claim, err := r.find(ctx, p)
	if err != nil {
		return "", err
	}
	now := r.Now().UTC().Truncate(time.Millisecond)
	did := func(v Verdict, target string, writes ...commit.Write) (Verdict, error) {
		row := by.Did(audit.Record{At: now, Action: "RESTORE_RECONCILE", UserID: q.UserID, Target: target,
			Detail: strings.TrimSpace(fmt.Sprintf("%s %s %s", v, p.ExternalID, p.TxID))})
		return v, r.Commit.Commit(ctx, append(writes, row)...)
	}
	if q.ID == "" {
		if !p.Sent || strings.HasPrefix(claim.RecordID, lost) {
			return Agrees, nil
		}
		if p.ExternalID == "" {
			return did(Lost, p.ID)
		}
		if claim.RecordID != "" { // it waits for its owner
			return did(Lost, p.ID, integration.Rebind{Kind: claim.Kind, ExternalID: claim.ExternalID, From: claim.RecordID,
				To: lost + p.ID})
		}
		return did(Lost, p.ID, integration.Add{Claim: integration.Claim{Kind: integration.Withdrawals,
			ExternalID: p.ExternalID, Digest: []byte{}, RecordID: lost + p.ID, At: now}})
	}
	_, waits, err := r.Store.Restored(ctx, q.ID)
	if err != nil {
		return "", err
	}
	unclaimed := q.Status == QueueReady || q.Status == QueueWaiting
	switch {
	case p.Sent && unclaimed:
		q.Status, q.TxID = QueueSent, p.TxID
		if err := r.Store.Compared(ctx, q.ID, true, now); err != nil {
			return "", err
		}
		return did(MarkedSent, q.ID, SetQueued{q})
	case waits:
		if err := r.Store.Compared(ctx, q.ID, false, now); err != nil {
			return "", err
		}
		return did(MarkedUnsent, q.ID)
	}
	return Agrees, nil
}

// lost is the prefix of the record of an external id whose withdrawal a restore has lost.
const lost = "lost/"

// find returns the entry of a payment: that of its id, else that of its external id. An empty entry if it is unknown.
func (r Reconciliation) find(ctx context.Context, p Payment) (q Queued, c integration.Claim, err error) {
	absent := func(err error) bool { return fault.CodeOf(err) == fault.RecordNotFound }
	if p.ID != "" {
		if q, err = r.Store.Queued(ctx, p.ID); !absent(err) {
			return q, c, err
		}
	}
	if p.ExternalID == "" {
		return Queued{}, c, nil
	}
	if c, err = r.Claims.Claim(ctx, integration.Withdrawals, p.ExternalID); err != nil {
		if absent(err) {
			err = nil
		}
		return Queued{}, integration.Claim{}, err
	}
	if q, err = r.Store.Queued(ctx, c.RecordID); absent(err) {
		return Queued{}, c, nil
	}
	return q, c, err
}

// ErrUncompared refuses to finish while entries wait.
var ErrUncompared = errors.New("entries of the queue were not compared with the wallet yet")

// Finish lets the wallet claim withdrawals again. ErrUncompared.
func (r Reconciliation) Finish(ctx context.Context, by audit.By) error {
	return r.Commit.InTx(ctx, func(ctx context.Context) error {
		left, err := r.Store.Uncompared(ctx)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("%w: %d", ErrUncompared, len(left))
		}
		now := r.Now().UTC().Truncate(time.Millisecond)
		if err := r.Store.Finished(ctx, now); err != nil {
			return err
		}
		return r.Commit.Commit(ctx, by.Did(audit.Record{At: now, Action: "RESTORE_FINISH"}))
	})
}

package transaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/money/addressbook/address"
)

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
	Commit interface {
		commit.Committer
		InTx(ctx context.Context, fn func(context.Context) error) error
	}
	Now func() time.Time
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

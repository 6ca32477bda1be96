package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/id"
)

// KindReversal is the kind of a transfer that reverses another one.
const KindReversal = "reversal"

// Transfer is one transfer between two accounts.
type Transfer struct {
	ID    string // begins with its time; the key of its rows
	Group string // shared by the transfers of one unit; the id of the first one
	// Kind and Ref identify a movement, which counts once: the same pair again is the same movement.
	Kind, Ref     string
	Debit, Credit Account // of one asset
	Amount        amount.Amount
	Unit          int64  // smallest amount of the asset when it was made, in parts of 10⁻¹⁸
	Reverses      string // id of the reversed transfer; "" for none
	Reason        string // short, human readable
	ActorID       string
	At            time.Time // when it was made; in milliseconds
	EffectiveAt   time.Time // when it takes effect; zero becomes At
	// DebitSeq and CreditSeq number the transfers of a bounded account; 0 for an
	// unbounded one.
	DebitSeq, CreditSeq int64
}

// New returns a transfer from one account to another, made now.
func New(now time.Time, kind, ref string, debit, credit Account, a amount.Amount) Transfer {
	now = now.UTC().Truncate(time.Millisecond)
	t := Transfer{ID: id.New(now), Kind: kind, Ref: ref, Debit: debit, Credit: credit, Amount: a, At: now}
	t.Group = t.ID
	return t
}

// Reversal returns the transfer that reverses t exactly. A transfer is reversed at most once, so its reference is t's
// id.
func Reversal(now time.Time, t Transfer, reason string) Transfer {
	r := New(now, KindReversal, t.ID, t.Credit, t.Debit, t.Amount)
	r.Reverses, r.Reason, r.Unit = t.ID, reason, t.Unit
	return r
}

// Digest returns the SHA-256 of all fields except the numbers. It commits in the audit row of the same unit, so that
// the audit chain covers the transfers.
func (t Transfer) Digest() [sha256.Size]byte {
	hi, lo := t.Amount.Parts()
	c := Content{t.ID, t.Group, t.Kind, t.Ref, t.Debit.ID(), t.Credit.ID(), t.Reverses, t.Reason, t.ActorID,
		t.Debit.Asset, t.Unit, hi, lo, t.At.UnixMilli(), t.EffectiveAt.UnixMilli()}
	return c.Digest()
}

// Content holds the fields covered by the digest of a transfer, in the form of its row: accounts by their ids, times in
// milliseconds.
type Content struct {
	ID, Group, Kind, Ref, Debit, Credit, Reverses, Reason, ActorID string
	Asset, Unit, Hi, Lo, At, EffectiveAt                           int64
}

// Digest returns the digest of the transfer. Every text is preceded by its length.
func (c *Content) Digest() [sha256.Size]byte {
	var room [512]byte
	b := room[:0]
	for _, s := range [...]string{c.ID, c.Group, c.Kind, c.Ref, c.Debit, c.Credit, c.Reverses, c.Reason, c.ActorID} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	for _, n := range [...]int64{c.Asset, c.Unit, c.Hi, c.Lo, c.At, c.EffectiveAt} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return sha256.Sum256(b)
}

// same reports whether t requests the same transfer as o. Actor, time and id are ignored.
func (t Transfer) same(o Transfer) bool {
	if t.EffectiveAt.IsZero() {
		t.EffectiveAt = o.At
	}
	return t.Kind == o.Kind && t.Ref == o.Ref && t.Debit == o.Debit && t.Credit == o.Credit && t.Amount == o.Amount &&
		t.Reverses == o.Reverses && t.EffectiveAt.Equal(o.EffectiveAt)
}

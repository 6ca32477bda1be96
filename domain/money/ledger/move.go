package ledger

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
)

// ActionTransfer is the audit action of a transfer: its target is the transfer's id, its detail the digest.
const ActionTransfer = "LEDGER_TRANSFER"

// Movement happens in one unit: completely or not at all.
type Movement struct {
	Transfers []Transfer
	Take      []Hold
	End       []End
	// With commits with the movement: the rows of the requesting slice.
	With []commit.Write
	// Once makes Decide return the first result of a movement that was made before, as Do does.
	Once bool
	// Commit commits the writes of the movement in place of Ledger.Commit; nil: that.
	Commit func(ctx context.Context, writes ...commit.Write) error
}

// End ends a hold: a transfer of the same movement settles it, or it is released.
type End struct {
	Hold     string // hold id
	Transfer string // transfer id; "": released
}

// accounts returns the accounts of the movement, without duplicates.
func (m Movement) accounts(holds []Hold) (all []Account) {
	seen := map[Account]bool{}
	all = make([]Account, 0, 2*len(m.Transfers)+len(m.Take)+len(holds))
	add := func(a Account) {
		if !seen[a] {
			seen[a] = true
			all = append(all, a)
		}
	}
	for _, t := range m.Transfers {
		add(t.Debit)
		add(t.Credit)
	}
	for _, h := range m.Take {
		add(h.Account)
	}
	for _, h := range holds {
		add(h.Account)
	}
	return all
}

// settles reports whether the hold is released, or settled by a transfer of its account.
func (m Movement) settles(e End, h Hold) bool {
	return e.Transfer == "" || slices.ContainsFunc(m.Transfers, func(t Transfer) bool {
		return t.ID == e.Transfer && t.Debit == h.Account
	})
}

// sides holds the balances of a movement while it is decided.
type sides struct {
	before, after map[Account]Balance
	added         map[Account]Add // added to unbounded accounts
}

// decide returns the writes of a movement on balances and on the holds that it ends, in the order of m.End. Every
// account has its balance. Errors: ErrInsufficient, ErrEnded, ErrAmount, ErrPrecision, ErrTooLarge, ErrFull, and
// commit.ErrFenced if a hold and its balance were read at different times; then the movement has no effect.
func decide(m Movement, balances []Balance, holds []Hold, by audit.By) ([]commit.Write, error) {
	s := sides{map[Account]Balance{}, map[Account]Balance{}, map[Account]Add{}}
	for _, b := range balances {
		s.before[b.Account], s.after[b.Account] = b, b
	}
	writes := make([]commit.Write, 0, 4*len(m.Transfers)+len(m.Take)+len(m.End)+len(m.With)+2)
	for i, e := range m.End {
		if !m.settles(e, holds[i]) {
			return nil, fmt.Errorf("ledger: no transfer of its account settles the hold %s", e.Hold)
		}
		h, err := holds[i].ended(e.Transfer)
		if err == nil {
			err = s.lock(h.Account, h.Amount.Neg)
		}
		if err != nil {
			return nil, err
		}
		writes = append(writes, EndHold{h})
	}
	for _, t := range m.Transfers {
		if err := s.move(&t); err != nil {
			return nil, err
		}
		t.ActorID = by.UserID
		digest := t.Digest()
		writes = append(writes, Post{t}, by.Did(audit.Record{At: t.At, Action: ActionTransfer, UserID: userOf(t),
			Target: t.ID, Detail: hex.EncodeToString(digest[:])}))
	}
	for _, h := range m.Take {
		if err := s.take(h); err != nil {
			return nil, err
		}
		writes = append(writes, Take{h})
	}
	return s.settle(append(writes, m.With...))
}

// move adds a transfer to both of its sides.
func (s *sides) move(t *Transfer) error {
	unit := s.before[t.Debit].Unit
	switch _, lo := t.Amount.Parts(); {
	case t.Debit.Asset != t.Credit.Asset || t.Debit == t.Credit:
		return fmt.Errorf("ledger: a transfer from %s to %s", t.Debit.ID(), t.Credit.ID())
	case t.Amount.Sign() <= 0:
		return ErrAmount
	case lo%unit != 0:
		return ErrPrecision
	}
	t.Unit = unit
	if t.EffectiveAt.IsZero() {
		t.EffectiveAt = t.At
	}
	out, err := t.Amount.Neg()
	if err != nil {
		return ErrTooLarge
	}
	if t.DebitSeq, err = s.post(t.Debit, out); err == nil {
		t.CreditSeq, err = s.post(t.Credit, t.Amount)
	}
	return err
}

// post adds an amount to one account and returns the number of the transfer there.
func (s *sides) post(to Account, a amount.Amount) (seq int64, err error) {
	if !to.Bounded() {
		sum, ok := s.added[to].Plus(Add{to, a, 1})
		if !ok {
			return 0, ErrFull
		}
		sum.Account = to
		s.added[to] = sum
		return 0, nil
	}
	b := s.after[to]
	if b.Posted, err = b.Posted.Add(a); err != nil {
		return 0, ErrTooLarge
	}
	b.Seq++
	s.after[to] = b
	return b.Seq, nil
}

// lock changes the locked amount.
func (s *sides) lock(of Account, a func() (amount.Amount, error)) error {
	by, err := a()
	if err != nil {
		return ErrTooLarge
	}
	b := s.after[of]
	if b.Locked, err = b.Locked.Add(by); err != nil {
		return ErrTooLarge
	}
	s.after[of] = b
	return nil
}

func (s *sides) take(h Hold) error {
	if _, lo := h.Amount.Parts(); lo%s.before[h.Account].Unit != 0 {
		return ErrPrecision
	}
	if h.Amount.Sign() <= 0 {
		return ErrAmount
	}
	if !h.Account.Bounded() {
		return fmt.Errorf("ledger: a hold on %s", h.Account.ID())
	}
	if !h.Beyond && s.after[h.Account].Available().Cmp(h.Amount) < 0 {
		return ErrInsufficient
	}
	return s.lock(h.Account, func() (amount.Amount, error) { return h.Amount, nil })
}

// settle checks the resulting balances and appends their writes.
func (s *sides) settle(writes []commit.Write) ([]commit.Write, error) {
	for account, b := range s.after {
		was := s.before[account]
		if b == was {
			continue
		}
		if b.Locked.Sign() < 0 { // the hold has ended since it was read
			return nil, commit.ErrFenced
		}
		if b.Posted.Sign() < 0 || takesLocked(was, b) {
			return nil, ErrInsufficient
		}
		writes = append(writes, Save{b})
	}
	for account, a := range s.added {
		if _, err := s.before[account].Posted.Add(a.Amount); err != nil {
			return nil, ErrFull // the database also rejects it, whatever was added meanwhile
		}
		writes = append(writes, a)
	}
	return writes, nil
}

// takesLocked reports whether a debit takes locked funds: the balance falls below the locked amount, and by more than
// the lock decreases. The database enforces the same (trigger balance_locked).
func takesLocked(was, is Balance) bool {
	if is.Posted.Cmp(was.Posted) >= 0 || is.Posted.Cmp(is.Locked) >= 0 {
		return false
	}
	fell, err := was.Posted.Sub(is.Posted)
	unlocked, err2 := was.Locked.Sub(is.Locked)
	return err != nil || err2 != nil || unlocked.Cmp(fell) < 0
}

// userOf returns the user whose account a transfer touches, "" for none.
func userOf(t Transfer) string {
	for _, a := range [...]Account{t.Credit, t.Debit} {
		if a.Kind == User {
			return a.Owner
		}
	}
	return ""
}

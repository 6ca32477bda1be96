package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/id"
	"castellan/domain/kit/sorting"
)

// ErrBroken is the error of Verify; the text names the first fault with its id.
var ErrBroken = errors.New("ledger: broken")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBroken}, args...)...)
}

// Totals are the figures of one asset.
type Totals struct {
	Asset               int64
	Accounts, Transfers int64
	Owned, Locked       amount.Sum // by users
	Unexplained         amount.Sum // balance of the suspense accounts
}

// Verify verifies the ledger, with constant memory (docs/ledger.md). Every transfer is unchanged and has its audit row,
// and no audited transfer is missing. Every balance, number, lock and closed day follows from the transfers and holds.
// The balances of an asset add up to zero. It returns the totals of each asset or ErrBroken, whose text names the first
// fault.
func Verify(ctx context.Context, b Books) (totals []Totals, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sealed := make(chan error, 1)
	go func() {
		sealed <- verdict(ctx, b, func(r *reader) error { return verifySeals(r, b) })
	}()
	err = verdict(ctx, b, func(r *reader) (err error) {
		totals, err = verifyAccounts(r, b)
		return err
	})
	if err != nil && !errors.Is(err, ErrBroken) {
		cancel()
		<-sealed
		return nil, err
	}
	if first := <-sealed; first != nil { // a fault in a transfer is reported before one in its account
		return nil, first
	}
	return totals, err
}

// verdict verifies a part in one snapshot. A failure of a read takes the place of its result.
func verdict(ctx context.Context, b Books, verify func(*reader) error) error {
	return b.Snapshot(ctx, func(ctx context.Context) error {
		r := &reader{ctx: ctx}
		err := verify(r)
		return cmp.Or(r.err, err)
	})
}

// verifySeals compares transfers, their digests and the audit trail.
func verifySeals(r *reader, b Books) error {
	transfers, seals := stream[Sealed]{reader: r, next: b.Transfers}, stream[Seal]{reader: r, next: b.Audited}
	var text [2 * sha256.Size]byte
	for last := ""; ; {
		t, s := transfers.peek(), seals.peek()
		switch {
		case t == nil && s == nil:
			return nil
		case s != nil && s.ID == last:
			return broken("transfer %s is in the audit twice", s.ID)
		case t == nil || s != nil && s.ID < t.ID:
			return broken("transfer %s is in the audit and not in the ledger", s.ID)
		}
		sum := t.Digest()
		hex.Encode(text[:], sum[:])
		switch {
		case !slices.Equal(t.Sum, sum[:]):
			return broken("transfer %s does not match its digest", t.ID)
		case s == nil || t.ID < s.ID:
			return broken("transfer %s is not in the audit", t.ID)
		case s.Digest != string(text[:]):
			return broken("transfer %s does not match the audit", t.ID)
		}
		last = t.ID
		transfers.take()
		seals.take()
	}
}

// accounts verifies one account after the other, from streams in the same order.
type accounts struct {
	debits, credits, holds stream[Entry]
	days                   stream[Day]
	closed                 int64 // the last closed day of all accounts, if anyClosed
	anyClosed              bool
	totals                 map[int64]*Totals
	sums                   map[int64]amount.Sum // of the balances of each asset
}

// verifyEndings finds a settled hold whose transfer is missing or debits another account.
func verifyEndings(r *reader, b Books) error {
	for holds := (stream[Ending]{reader: r, next: b.Endings}); ; holds.take() {
		h := holds.peek()
		if h == nil {
			return nil
		}
		if h.State == Settled && h.Debited != h.Account {
			return broken("hold %s is settled by no transfer of its account", h.ID)
		}
	}
}

func verifyAccounts(r *reader, b Books) ([]Totals, error) {
	err := verifyEndings(r, b)
	if err != nil {
		return nil, err
	}
	entries := func(next func(context.Context, Entry) ([]Entry, error)) stream[Entry] {
		return stream[Entry]{reader: r, next: next}
	}
	v := accounts{debits: entries(b.Debits), credits: entries(b.Credits), holds: entries(b.Active),
		days: stream[Day]{reader: r, next: b.Days}, totals: map[int64]*Totals{}, sums: map[int64]amount.Sum{}}
	if v.closed, v.anyClosed, err = b.LastDay(r.ctx); err != nil {
		return nil, err
	}
	lines := stream[Line]{reader: r, next: b.Lines}
	for l := lines.peek(); l != nil; l = lines.peek() {
		if err := v.account(*l); err != nil {
			return nil, err
		}
		lines.take()
	}
	for _, s := range []*stream[Entry]{&v.debits, &v.credits, &v.holds} {
		if e := s.peek(); e != nil {
			return nil, broken("%s is of account %s, which has no balance", e.ID, e.Account)
		}
	}
	return v.result()
}

// running is the running total of an account's transfers.
type running struct {
	Day
	moved         bool   // the day has transfers
	seqs, squares uint64 // sums of the numbers and of their squares
}

// account verifies a balance against the transfers, holds and days of its account.
func (v *accounts) account(l Line) error {
	r := running{Day: Day{Account: l.ID}}
	for {
		e, in, err := v.entry(l.ID)
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		if err := v.passDays(&r, dayOf(e.ID)); err != nil {
			return err
		}
		r.add(*e, in)
	}
	if err := v.passDays(&r, 1<<40); err != nil {
		return err
	}
	switch n := uint64(l.Seq); {
	case r.Posted != l.Posted.Sum():
		return broken("account %s has %s, its transfers add up to %s", l.ID, l.Posted, r.Posted)
	case r.Seq != l.Seq:
		return broken("account %s counts %d transfers and has %d", l.ID, l.Seq, r.Seq)
	case l.Bounded() && (r.seqs != n*(n+1)/2 || r.squares != n*(n+1)*(2*n+1)/6):
		return broken("account %s does not number its transfers from 1 to %d", l.ID, n)
	case l.Account.ID() != l.ID:
		return broken("account %s is called %s", l.Account.ID(), l.ID)
	}
	return v.locks(l)
}

// entry returns the next transfer of an account, by id; nil at the end. in is true for a credit.
func (v *accounts) entry(account string) (e *Entry, in bool, err error) {
	d, c := v.debits.peek(), v.credits.peek()
	for _, e := range []*Entry{d, c} {
		if e != nil && e.Account < account {
			return nil, false, broken("transfer %s is of account %s, which has no balance", e.ID, e.Account)
		}
	}
	ours := func(e *Entry) bool { return e != nil && e.Account == account }
	switch {
	case ours(d) && (!ours(c) || d.ID < c.ID):
		v.debits.take()
		return d, false, nil
	case ours(c):
		v.credits.take()
		return c, true, nil
	}
	return nil, false, nil
}

// add adds a transfer. Transfers come by id and were booked in another order, so even the balance may exceed an amount
// meanwhile.
func (r *running) add(e Entry, in bool) {
	if a := e.Amount.Sum(); in {
		r.Posted, r.In = r.Posted.Add(a), r.In.Add(a)
	} else {
		r.Posted, r.Out = r.Posted.Sub(a), r.Out.Add(a)
	}
	r.Seq++
	n := uint64(e.Seq)
	r.seqs, r.squares, r.moved = r.seqs+n, r.squares+n*n, true
	r.Day.Day = dayOf(e.ID)
}

// passDays compares the closed days of the account that end before a day.
func (v *accounts) passDays(r *running, day int64) error {
	if !r.moved || r.Day.Day == day {
		return nil
	}
	if v.anyClosed && r.Day.Day <= v.closed {
		d := v.days.peek()
		if d == nil || d.Account != r.Account || d.Day != r.Day.Day {
			return broken("day %d of account %s is not closed according to its transfers", r.Day.Day, r.Account)
		}
		v.days.take()
		if is := r.Day; d.Posted != is.Posted || d.In != is.In || d.Out != is.Out || d.Seq != is.Seq {
			return broken("day %d of account %s does not match its transfers", d.Day, d.Account)
		}
	}
	r.In, r.Out, r.moved = amount.Sum{}, amount.Sum{}, false
	return nil
}

// locks compares the locked amount with the active holds, and adds to the totals.
func (v *accounts) locks(l Line) error {
	var locked amount.Amount
	for h := v.holds.peek(); h != nil && h.Account <= l.ID; h = v.holds.peek() {
		if h.Account < l.ID {
			return broken("hold %s is of account %s, which has no balance", h.ID, h.Account)
		}
		var err error
		if locked, err = locked.Add(h.Amount); err != nil {
			return broken("account %s locks more than the maximum amount at hold %s", l.ID, h.ID)
		}
		v.holds.take()
	}
	if locked != l.Locked {
		return broken("account %s locks %s, its holds add up to %s", l.ID, l.Locked, locked)
	}
	if d := v.days.peek(); d != nil && d.Account <= l.ID {
		return broken("day %d of account %s has no transfers", d.Day, d.Account)
	}
	v.total(l)
	return nil
}

// total adds an account to the figures of its asset.
func (v *accounts) total(l Line) {
	t := v.totals[l.Asset]
	if t == nil {
		t = &Totals{Asset: l.Asset}
		v.totals[l.Asset] = t
	}
	t.Accounts++
	t.Transfers += l.Seq // each transfer counts twice: once on either side
	t.Locked = t.Locked.Add(l.Locked.Sum())
	switch l.Kind {
	case Suspense:
		t.Unexplained = t.Unexplained.Add(l.Posted.Sum())
	case User:
		t.Owned = t.Owned.Add(l.Posted.Sum())
	}
	v.sums[l.Asset] = v.sums[l.Asset].Add(l.Posted.Sum())
}

func (v *accounts) result() (all []Totals, err error) {
	for asset, t := range v.totals {
		if v.sums[asset].Sign() != 0 {
			return nil, broken("asset %d: its balances add up to %s instead of 0", asset, v.sums[asset])
		}
		t.Transfers /= 2
		all = append(all, *t)
	}
	sorting.Func(all, func(a, b Totals) int { return int(a.Asset - b.Asset) })
	return all, nil
}

// String returns the line of the asset in the output of castellan ledger verify.
func (t Totals) String() string {
	text := fmt.Sprintf("asset %d: %d transfers between %d accounts add up to 0; users have %s, of which %s is locked",
		t.Asset, t.Transfers, t.Accounts, t.Owned, t.Locked)
	if t.Unexplained.Sign() != 0 {
		text += fmt.Sprintf("; %s is unexplained", t.Unexplained)
	}
	return text
}

const msOfDay = int64(24 * time.Hour / time.Millisecond)

// dayOf returns the UTC day of the time in an id.
func dayOf(text string) int64 { return id.Millis(text) / msOfDay }

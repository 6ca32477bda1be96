package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/turn"
)

// Ledger executes movements. It is safe for concurrent use. All fields except Full are required.
type Ledger struct {
	Store  Store
	Commit commit.Committer
	// Decimals returns the current decimals of an asset, 0 to amount.Decimals. RECORD_NOT_FOUND for an unknown asset.
	// It is called when an account is opened, or when an amount has more decimals than the ledger has recorded for the
	// asset.
	Decimals func(ctx context.Context, asset int64) (int, error)
	Now      func() time.Time
	// Full is called for each movement that is refused with ErrFull; nil: not.
	Full func(m Movement)

	turns turn.Turns // of bounded accounts
}

// Result is the result of Do.
type Result struct {
	Transfers []Transfer // as first made
	Holds     []Hold     // holds taken, as first made
	Repeated  bool       // the movement existed; nothing was written now
}

// maxTries limits how often a movement is decided again because another node changed one of its balances. Within one
// process the movements of an account take turns.
const maxTries = 50

// Do makes a movement durable, once: a repeat with the same references returns the first result, also under concurrent
// calls and after a crash. The first reference of m, of its transfers or else of its holds, identifies the movement;
// the ended holds identify a movement that only ends holds. Accounts are opened as needed.
//
// After a failed fence the movement is decided again; a failed fence is never reported as insufficient funds. Errors:
// ErrInsufficient, ErrConflict, ErrEnded, ErrAmount, ErrPrecision, ErrTooLarge, ErrFull, ErrNoAsset; RECORD_NOT_FOUND
// for a hold; RECORD_ALREADY_EXIST for a row of m.With; UNAVAILABLE if another node was first inside the caller's
// transaction; OVERLOADED after many tries; those of the commit. After ErrUnknown the caller repeats the call.
func (l *Ledger) Do(ctx context.Context, by audit.By, m Movement) (Result, error) {
	return l.retryOnConflict(ctx, m.accounts(nil), func() (Result, error) { return l.attempt(ctx, by, m, nil) })
}

// Plan returns a movement based on the balances of some accounts. Any other data that it reads must be fenced by a
// write of the movement. It may be called again.
type Plan func(ctx context.Context, balances []Balance) (Movement, error)

// Decide is Do for a movement that depends on balances, such as a hold on all available funds. The movement is executed
// on exactly those balances, or planned again; every plan has new references, or Movement.Once. If the plan is empty,
// nothing is written. Errors: those of plan and of Do.
func (l *Ledger) Decide(ctx context.Context, by audit.By, accounts []Account, plan Plan) (Result, error) {
	return l.retryOnConflict(ctx, accounts, func() (Result, error) {
		seen, err := l.balances(ctx, accounts)
		if err != nil {
			return Result{}, err
		}
		m, err := plan(ctx, seen)
		if err != nil || len(m.Transfers)+len(m.Take)+len(m.End)+len(m.With) == 0 {
			return Result{}, err
		}
		r, err := l.attempt(ctx, by, m, seen)
		if errors.Is(err, ErrEnded) || r.Repeated && !m.Once { // a hold has ended since the plan was made
			err = commit.ErrFenced
		}
		return r, err
	})
}

// retryOnConflict repeats an attempt until the balances it was decided on are unchanged.
func (l *Ledger) retryOnConflict(ctx context.Context, accounts []Account,
	attempt func() (Result, error)) (Result, error) {
	leave, err := l.wait(ctx, accounts)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	exists := 0
	for try := range maxTries {
		var r Result
		if r, err = attempt(); err == nil {
			return r, nil
		}
		fenced := errors.Is(err, commit.ErrFenced)
		// A row may exist, or an account of the operator may be full, because another node was first.
		late := errors.Is(err, commit.ErrCheck) || fault.CodeOf(err) == fault.RecordAlreadyExist &&
			!errors.Is(err, ErrConflict)
		switch {
		case !fenced && (!late || exists > 0):
			return Result{}, err
		case commit.Inside(ctx) && !errors.Is(err, errFiner):
			// A part may already exist, and only the caller can roll that back.
			return Result{}, fault.New(fault.Unavailable, "the account is busy; try again").After(time.Second)
		case !fenced:
			exists++ // the next try reads the result of the other node
		}
		if err := pause(ctx, try); err != nil {
			return Result{}, err
		}
	}
	return Result{}, fault.New(fault.Overloaded, "the account is too busy").After(time.Second)
}

// errFiner requests another decision, because the ledger has just recorded more decimals for an asset. Nothing was
// written.
var errFiner = fmt.Errorf("%w: the asset is finer now", commit.ErrFenced)

// pause gives other nodes time, from the second try on.
func pause(ctx context.Context, try int) error {
	if try == 0 {
		return nil
	}
	select {
	// #nosec G404: the pause before a retry is not secret.
	case <-time.After(time.Duration(rand.Int64N(int64(min(try, 10)) * int64(time.Millisecond)))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait takes the turns of bounded accounts. Inside a transaction of the caller it does not wait: the holder of the turn
// may be waiting for that transaction.
func (l *Ledger) wait(ctx context.Context, accounts []Account) (leave func(), err error) {
	var leaves []func()
	leave = func() {
		for _, f := range leaves {
			f()
		}
	}
	if commit.Inside(ctx) {
		return leave, nil
	}
	var keys []string
	for _, a := range accounts {
		if a.Bounded() {
			keys = append(keys, a.ID())
		}
	}
	slices.Sort(keys) // so that two movements never wait for each other
	for _, key := range keys {
		one, err := l.turns.Take(ctx, key)
		if err != nil {
			leave()
			return nil, err
		}
		leaves = append(leaves, one)
	}
	return leave, nil
}

// attempt reads, decides and commits once. seen are balances that it must not read again, because m was planned on
// them.
func (l *Ledger) attempt(ctx context.Context, by audit.By, m Movement, seen []Balance) (Result, error) {
	for i := range m.Transfers {
		m.Transfers[i].Group = m.Transfers[0].ID
	}
	first, repeated, err := l.first(ctx, m)
	if err != nil || repeated {
		return first, err
	}
	holds := make([]Hold, len(m.End))
	for i, e := range m.End {
		if holds[i], err = l.Store.Hold(ctx, e.Hold); err != nil {
			return Result{}, err
		}
	}
	balances, err := l.balances(ctx, slices.DeleteFunc(m.accounts(holds), func(a Account) bool {
		return slices.ContainsFunc(seen, func(b Balance) bool { return b.Account == a })
	}))
	if err != nil {
		return Result{}, err
	}
	balances = append(balances, seen...)
	writes, err := decide(m, balances, holds, by)
	if errors.Is(err, ErrPrecision) {
		var finer bool
		if finer, err = l.refine(ctx, balances); err == nil && finer {
			return Result{}, errFiner
		} else if err == nil {
			err = ErrPrecision
		}
	}
	if errors.Is(err, ErrFull) && l.Full != nil {
		l.Full(m)
	}
	if err != nil {
		return Result{}, err
	}
	if m.Commit != nil {
		err = m.Commit(ctx, writes...)
	} else {
		err = l.Commit.Commit(ctx, writes...)
	}
	if err != nil {
		return Result{}, err
	}
	return made(writes), nil
}

// made returns the transfers and holds in writes.
func made(writes []commit.Write) (r Result) {
	for _, w := range writes {
		switch w := w.(type) {
		case Post:
			r.Transfers = append(r.Transfers, w.Transfer)
		case Take:
			r.Holds = append(r.Holds, w.Hold)
		}
	}
	return r
}

// first reports whether the movement was made before, and returns its first result. ErrConflict if its reference
// belongs to another movement.
func (l *Ledger) first(ctx context.Context, m Movement) (r Result, repeated bool, err error) {
	for i, t := range m.Transfers {
		was, err := l.Store.ByRef(ctx, t.Kind, t.Ref)
		if known, err := found(err, i, t.same(was)); !known {
			return r, false, err
		}
		r.Transfers = append(r.Transfers, was)
	}
	for i, h := range m.Take {
		was, err := l.Store.HoldByRef(ctx, h.Source, h.Ref)
		if known, err := found(err, len(m.Transfers)+i, h.same(was)); !known {
			return r, false, err
		}
		r.Holds = append(r.Holds, was)
	}
	r.Repeated = len(m.Transfers)+len(m.Take) > 0
	if r.Repeated || len(m.End) == 0 {
		return r, r.Repeated, nil
	}
	for _, e := range m.End { // a release, identified by its holds
		h, err := l.Store.Hold(ctx, e.Hold)
		if err != nil || h.State != Released {
			return r, false, err
		}
	}
	r.Repeated = true
	return r, true, nil
}

// found checks the i-th reference of a movement: if the first one is new, all must be; if it exists, all must exist
// with the same content.
func found(err error, i int, same bool) (known bool, _ error) {
	if fault.CodeOf(err) == fault.RecordNotFound {
		if i == 0 {
			return false, nil
		}
		return false, ErrConflict
	}
	if err == nil && !same {
		err = ErrConflict
	}
	return err == nil, err
}

// balances returns the balances of accounts, which it opens as needed.
func (l *Ledger) balances(ctx context.Context, accounts []Account) ([]Balance, error) {
	for range 2 {
		all, err := l.Store.Balances(ctx, accounts...)
		if err != nil || len(all) == len(accounts) {
			return all, err
		}
		for _, a := range accounts {
			if slices.ContainsFunc(all, func(b Balance) bool { return b.Account == a }) {
				continue
			}
			if err := l.open(ctx, a); err != nil {
				return nil, err
			}
		}
	}
	return nil, commit.ErrFenced // unreachable while accounts never end
}

// open opens an account in a unit of its own: without movements this has no effect. RECORD_ALREADY_EXIST from a
// concurrent node is not an error.
func (l *Ledger) open(ctx context.Context, a Account) error {
	unit, err := l.Store.Unit(ctx, a.Asset)
	if err == nil && unit == 0 {
		err = l.addAsset(ctx, a.Asset)
	}
	if err == nil {
		err = l.Commit.Commit(ctx, Open{a})
	}
	if fault.CodeOf(err) == fault.RecordAlreadyExist {
		err = nil
	}
	return err
}

// addAsset records an asset with its current decimals.
func (l *Ledger) addAsset(ctx context.Context, asset int64) error {
	decimals, err := l.Decimals(ctx, asset)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return ErrNoAsset
	}
	if err == nil {
		err = l.Commit.Commit(ctx, AddAsset{asset, int64(amount.Unit(decimals))})
	}
	if fault.CodeOf(err) == fault.RecordAlreadyExist {
		err = nil
	}
	return err
}

// refine reports whether an asset of the balances has more decimals now, and records them.
func (l *Ledger) refine(ctx context.Context, balances []Balance) (finer bool, err error) {
	for _, b := range balances {
		decimals, err := l.Decimals(ctx, b.Asset)
		if err != nil {
			return false, err
		}
		if int64(amount.Unit(decimals)) < b.Unit {
			err := l.addAsset(ctx, b.Asset)
			return err == nil, err
		}
	}
	return false, nil
}

// Balance returns a user's balance of an asset; 0 if the account is not open.
func (l *Ledger) Balance(ctx context.Context, userID string, asset int64) (Balance, error) {
	a := Account{User, userID, asset}
	all, err := l.Store.Balances(ctx, a)
	if err != nil || len(all) == 0 {
		return Balance{Account: a}, err
	}
	return all[0], nil
}

package password

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/sorting"
)

// maxFenced bounds how often a decision is repeated because another node wrote the row between reading and writing.
// Within one process that does not happen.
const maxFenced = 20

// Guards keeps the guards of accounts. It charges a try durably before the password is hashed, and refunds it when
// the password was right.
//
// Tries for one account take turns inside a process, so they do not fence each other. A try waits when only tries
// that are still being judged would make it refused. So many users of one office can log in to one account at once
// with the right password. The charges never exceed the limits, so waiting gives no guess away. Tries for an account
// from one prefix wait in line: first come, first served.
type Guards struct {
	store  GuardStore
	commit commit.Committer
	rules  GuardRules
	now    func() time.Time

	mu       sync.Mutex
	accounts map[string]*account
}

// defaultWait is how long a try waits where the rules do not say.
const defaultWait = 10 * time.Second

// account is an account with tries in this process.
type account struct {
	origins map[string]*origin // by prefix; under Guards.mu
	turn    chan struct{}      // holds a token while a try is decided

	// For the holder of the turn only.
	guard    Guard
	loaded   bool          // guard is what this process last wrote or read
	former   []string      // other keys, whose tries count while the guard does not exist
	resolved chan struct{} // closed and replaced when a try is judged
}

// origin is a prefix with tries for an account.
type origin struct {
	users   int           // of this value; under Guards.mu
	line    chan struct{} // holds a token of the first in line; the runtime serves the others in order
	pending int           // tries that are being judged; for the holder of the account's turn
}

// NewGuards returns Guards over a store.
func NewGuards(store GuardStore, c commit.Committer, r GuardRules, now func() time.Time) *Guards {
	return &Guards{store: store, commit: c, rules: r, now: now, accounts: map[string]*account{}}
}

func (g *Guards) Rules() GuardRules { return g.rules }

// Attempt is a charged try. Refunded, RefundAlone, Return or Wrong settles it. Wrong does nothing after one of the
// others, so it can be deferred.
type Attempt struct {
	// Closed reports whether the account has now used up its tries from anywhere, unless this one is right
	// (Guard.Closed).
	Closed bool

	guard   Guard // as this try left it
	g       *Guards
	a       *account
	from    *origin
	key     string
	prefix  string
	settled bool
	// The state of a refund in progress:
	turn   bool // this attempt holds the turn of the account
	rounds int
	refund SaveGuard
}

// Charge counts a try for the account key from prefix, durably before it returns. A key without a guard starts with
// the tries of its former names (keyring.Ring.Former), so a new hashing key allows no additional tries.
//
// Errors: RATE_LIMITED with the time to wait, OVERLOADED after GuardRules.Wait in line, UNAVAILABLE, the error of
// ctx.
func (g *Guards) Charge(ctx context.Context, key, prefix string, former ...string) (*Attempt, error) {
	return g.charge(ctx, asked{key: key, prefix: prefix, former: former, save: g.save})
}

// ChargeSeen is Charge for an account whose guard was just read, so it is not read again. When ChargeSeen returns,
// the try is in its row but not durable (commit.Unflushed). The caller must commit another unit before it reports any
// outcome.
//
// enter is called once, when only enter can still prevent the charge; known reports whether the account knows the
// prefix. An error of enter ends the try uncharged. The resources that enter acquires are not held while the try
// waits in line. since is when the caller began to wait.
func (g *Guards) ChargeSeen(ctx context.Context, seen Guard, prefix string, since time.Time,
	enter func(known bool) error, former ...string) (*Attempt, error) {
	return g.charge(ctx, asked{key: seen.Key, prefix: prefix, former: former, seen: &seen, since: since, enter: enter,
		save: g.saveUnflushed})
}

// asked holds the arguments of Charge.
type asked struct {
	key, prefix string
	former      []string
	seen        *Guard
	since       time.Time
	enter       func(known bool) error
	save        func(context.Context, commit.Write) error
}

// admit calls enter once.
func (t *asked) admit(known bool) error {
	if t.enter == nil {
		return nil
	}
	err := t.enter(known)
	t.enter = nil
	return err
}

func (g *Guards) charge(ctx context.Context, t asked) (_ *Attempt, err error) {
	a, from := g.enter(t.key, t.prefix)
	patience := patience{since: t.since, wait: cmp.Or(g.rules.Wait, defaultWait)}
	defer patience.end()
	defer func() {
		if err != nil {
			g.leave(t.key, t.prefix, a)
		}
	}()
	if err := patience.take(ctx, from.line); err != nil {
		return nil, err
	}
	defer func() { <-from.line }()
	for {
		if err := patience.take(ctx, a.turn); err != nil {
			return nil, err
		}
		a.former = t.former
		if t.seen != nil && !a.loaded {
			a.guard = *t.seen
			if err := g.inherit(ctx, a); err != nil {
				a.pass()
				return nil, err
			}
			a.loaded = true
		}
		t.seen = nil // the next round must not use it again
		fresh, err := g.update(ctx, a, t.key, func(now time.Time, guard Guard) (Guard, error) {
			next, err := guard.Charge(now, g.rules, t.prefix)
			if err == nil {
				err = t.admit(guard.Knows(now, g.rules, t.prefix))
			}
			return next, err
		}, t.save)
		if err == nil {
			from.pending++
			at := &Attempt{Closed: a.guard.Closed(g.now(), g.rules), guard: a.guard, g: g, a: a, from: from, key: t.key,
				prefix: t.prefix}
			a.pass()
			return at, nil
		}
		refused := fault.CodeOf(err) == fault.RateLimited
		wait, resolved := refused && g.mayYetPass(a, t.prefix), a.resolved
		if refused && !wait {
			a.loaded = false
		}
		a.pass()
		switch {
		case wait:
			if err := patience.await(ctx, resolved); err != nil {
				return nil, err
			}
		case refused && !fresh: // an operator may have unlocked the account: read it before refusing
		default:
			return nil, err
		}
	}
}

// Standing returns the state of the prefix after this try, if it stays charged. It reads memory only.
func (at *Attempt) Standing() Standing { return at.guard.standing(at.g.now(), at.g.rules, at.prefix) }

// Refund returns the write that takes the charge back and makes the prefix known, because the password was right. The
// caller commits it together with the writes of the login, and then calls Refunded. If the commit fails with
// commit.ErrFenced, the caller calls Refund again and restarts its unit. No other try for the account is decided
// between Refund and the end of the attempt.
//
// Errors: UNAVAILABLE; the try then counts as wrong.
func (at *Attempt) Refund(ctx context.Context) (commit.Write, error) {
	switch {
	case at.settled:
		return nil, errSettled
	case at.rounds == maxFenced:
		return nil, busy()
	case at.turn:
		at.a.loaded = false // the row was changed by another node
	default:
		at.a.turn <- struct{}{}
		at.turn = true
	}
	at.rounds++
	var err error
	at.refund, _, err = at.g.next(ctx, at.a, at.key, func(now time.Time, guard Guard) (Guard, error) {
		return guard.Refund(now, at.g.rules, at.prefix), nil
	})
	return at.refund, err
}

// Refunded reports that the last write of Refund is durable.
func (at *Attempt) Refunded() {
	at.a.saved(at.refund)
	at.finish()
}

// RefundAlone commits the write of Refund by itself: the password was right, but the login fails. After an error the
// try counts as wrong.
func (at *Attempt) RefundAlone(ctx context.Context) error {
	err := at.g.save(ctx, at.refund)
	for errors.Is(err, commit.ErrFenced) {
		if _, err = at.Refund(ctx); err == nil {
			err = at.g.save(ctx, at.refund)
		}
	}
	if err == nil {
		at.Refunded()
	}
	return err
}

// Return takes the charge back because the password could not be judged. The error is internal or UNAVAILABLE; the
// try then counts as wrong.
func (at *Attempt) Return(ctx context.Context) error {
	if at.settled {
		return errSettled
	}
	at.a.turn <- struct{}{}
	defer at.finish()
	_, err := at.g.update(ctx, at.a, at.key, func(_ time.Time, guard Guard) (Guard, error) {
		return guard.Return(at.prefix), nil
	}, at.g.save)
	return err
}

// Wrong leaves the charge as it is.
func (at *Attempt) Wrong() {
	switch {
	case at.settled:
		return
	case at.turn:
		at.a.loaded = false // the fate of the refund is unknown
	default:
		at.a.turn <- struct{}{} // turns are short and end by themselves
	}
	at.finish()
}

// finish ends the attempt and the turn.
func (at *Attempt) finish() {
	at.settled = true
	at.from.pending--
	close(at.a.resolved)
	at.a.resolved = make(chan struct{})
	at.a.pass()
	at.g.leave(at.key, at.prefix, at.a)
}

// next reads the row unless it is loaded, and decides on it. The caller has the turn. fresh is set when next read the
// row; an error of move changes nothing.
func (g *Guards) next(ctx context.Context, a *account, key string,
	move func(time.Time, Guard) (Guard, error)) (w SaveGuard, fresh bool, err error) {
	if !a.loaded {
		guard, err := g.store.Guard(ctx, key)
		if err != nil {
			return w, false, err
		}
		a.guard, fresh = guard, true
		if err := g.inherit(ctx, a); err != nil {
			return w, false, err
		}
		a.loaded = true
	}
	guard, err := move(g.now(), a.guard)
	return SaveGuard{Guard: guard, Until: guard.Until(g.rules)}, fresh, err
}

// inherit starts a guard that does not exist yet with the tries of its former keys.
func (g *Guards) inherit(ctx context.Context, a *account) error {
	if a.guard.Version > 0 {
		return nil
	}
	for _, key := range a.former {
		before, err := g.store.Guard(ctx, key)
		if err != nil {
			return err
		}
		a.guard.Tries = append(a.guard.Tries, before.Tries...)
	}
	sorting.Stable(a.guard.Tries, func(x, y Try) int { return cmp.Compare(x.At, y.At) })
	return nil
}

// saved adopts the guard that was written.
func (a *account) saved(w SaveGuard) {
	a.guard = w.Guard
	a.guard.Version++
}

// update decides on the row and saves it, and repeats this while other nodes change the row. The caller has the turn.
// fresh is set when the row was read for the last decision.
func (g *Guards) update(ctx context.Context, a *account, key string, move func(time.Time, Guard) (Guard, error),
	save func(context.Context, commit.Write) error) (fresh bool, err error) {
	for range maxFenced {
		w, fresh, err := g.next(ctx, a, key, move)
		if err != nil {
			return fresh, err
		}
		if err = save(ctx, w); err == nil {
			a.saved(w)
			return fresh, nil
		}
		a.loaded = false // another node changed it, or its fate is unknown
		if !errors.Is(err, commit.ErrFenced) {
			return fresh, err
		}
	}
	return true, busy()
}

var errSettled = errors.New("password: an attempt was settled twice")

func busy() error {
	return fault.New(fault.Unavailable, "the account is busy; try again").After(time.Second)
}

func (g *Guards) save(ctx context.Context, w commit.Write) error { return g.commit.Commit(ctx, w) }

func (g *Guards) saveUnflushed(ctx context.Context, w commit.Write) error {
	return g.commit.Commit(ctx, w, commit.Unflushed{})
}

// mayYetPass reports whether a refused try would pass if every try being judged here were right. The caller has the
// turn.
func (g *Guards) mayYetPass(a *account, prefix string) bool {
	if !a.loaded {
		return false
	}
	best, some := a.guard, false
	g.mu.Lock()
	for p, o := range a.origins {
		for range o.pending {
			best, some = best.Return(p), true
		}
	}
	g.mu.Unlock()
	return some && best.wait(g.now(), g.rules, prefix) == 0
}

func (g *Guards) enter(key, prefix string) (*account, *origin) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.accounts[key]
	if a == nil {
		a = &account{turn: make(chan struct{}, 1), origins: map[string]*origin{}, resolved: make(chan struct{})}
		g.accounts[key] = a
	}
	o := a.origins[prefix]
	if o == nil {
		o = &origin{line: make(chan struct{}, 1)}
		a.origins[prefix] = o
	}
	o.users++
	return a, o
}

func (g *Guards) leave(key, prefix string, a *account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := a.origins[prefix]
	if o.users--; o.users == 0 {
		delete(a.origins, prefix)
	}
	if len(a.origins) == 0 {
		delete(g.accounts, key)
	}
}

func (a *account) pass() { <-a.turn }

// Package demo fills a database with a believable platform, so that lists, counts and charts have content
// (docs/demo.md).
//
// The one idea: everything about the n-th record follows from the seed, from n and from the instant that counts as now.
// So an interrupted run continues after its last transaction, and produces the same rows.
//
// Records that the surrounding services deliver, and all pending records, are made through the domain services behind
// the endpoints (services.go). So a missing endpoint shows as a missing record.
//
// Start reading at Run; step.go says how a step fails. people.go has the accounts, money.go their movements, wallet.go
// the wallet's reports, catalogue.go the catalogue, and office.go the work of the staff.
package demo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/ledger"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/money"
)

// Clock is the clock of the database while it is filled: a record is stamped with the instant at which it would have
// been created.
type Clock struct{ at atomic.Pointer[time.Time] }

// Now returns the instant that was last set, else the present.
func (c *Clock) Now() time.Time {
	if at := c.at.Load(); at != nil {
		return *at
	}
	return time.Now()
}

func (c *Clock) set(at time.Time) { c.at.Store(&at) }

// World is the target of a run.
type World struct {
	DB           *persistence.DB // opened with Clock.Now
	Clock        *Clock
	Ring         *keyring.Ring
	Files        blob.Store
	Hasher       *password.Hasher
	HashIdentity func(number string) string
	// Rules and Waiting are those of the address book.
	Rules   address.Rules
	Waiting time.Duration
	// Dev makes the people who can log in demo accounts, which can log in only in development mode.
	Dev bool
	// Password generates a password for a person who can log in.
	Password func() string
	// Keep writes the logins to a file before they become valid.
	Keep func([]Login) error
	// Progress receives the progress of a part of the work; of is 0 if it is unknown.
	Progress func(done, of int, what string)
}

// Options determine a run: the same options produce the same rows.
type Options struct {
	Seed  uint64    `json:"seed"`
	Users int       `json:"users"`
	Now   time.Time `json:"now"`
}

// The limits of Options.Users. Below the minimum not every state occurs.
const (
	LeastUsers = 100
	MostUsers  = 5_000_000
)

// days is the age of the platform.
const days = 365

// perChunk is how many accounts are created in one transaction.
const perChunk = 500

type run struct {
	World
	Options
	start      time.Time
	team       []*person
	assets     []asset
	agreements []int64 // that must be accepted
	doors      *doors
}

// tries is how often a run restarts if the database aborts its transactions. PostgreSQL does that with a transaction
// that computes for five seconds on a stalling machine.
const tries = 5

// Run fills the database of w, which has no people, or continues an interrupted run with the same options. It verifies
// the ledger at the end. It returns ErrPeople, ErrFinished, or, for other options, an error that names the options of
// the unfinished run.
func Run(ctx context.Context, w World, o Options) (Summary, error) {
	for n := 1; ; n++ {
		s, err := begun(ctx, w, o)
		cut := fault.CodeOf(err) == fault.Unavailable || errors.Is(err, commit.ErrUnknown)
		if !cut || n == tries || ctx.Err() != nil {
			return s, err
		}
		w.Progress(0, 0, "the database aborted a transaction; finished work is saved, the run continues")
	}
}

// begun executes a run, or the rest of one.
func begun(ctx context.Context, w World, o Options) (s Summary, err error) {
	r := &run{World: w, Options: o, start: o.Now.AddDate(0, 0, -days)}
	for i := range team {
		r.team = append(r.team, r.member(i))
	}
	defer r.ids("begin", 0)()
	err = attempt(func() {
		check(r.DB.Bulk(ctx))
		r.begin(ctx)
		r.catalogue(ctx)
		r.buildServices(ctx)
		r.once(ctx, "team", r.equip)
		r.people(ctx)
		r.once(ctx, "office", r.office)
		r.Progress(0, 0, "closing the ledger days") // as the service does every night
		check(ledger.CloseDays(ctx, money.NewLedger(r.DB), r.DB, r.Now))
		r.Progress(0, 0, "verifying the ledger")
		s.Totals = value(ledger.Verify(ctx, money.NewLedger(r.DB)))
		s.Logins = r.finish(ctx)
	})
	return s, err
}

// Summary is the result of a run.
type Summary struct {
	Totals []ledger.Totals
	Logins []Login
}

// once runs a stage in one transaction with its marker, the first time.
func (r *run) once(ctx context.Context, stage string, do func(ctx context.Context)) {
	within(stage, func() {
		value(r.DB.Once(ctx, marker+stage, func(ctx context.Context) error {
			r.ids(stage, 0)
			return attempt(func() { do(ctx) })
		}))
	})
}

// ids makes the services generate the same identifiers again in a part of the run.
func (r *run) ids(part string, n int) (end func()) {
	s := sourceOf(r.Seed, "ids of "+part, n)
	return id.Repeat(func(b []byte) { copy(b, s.bytes(len(b))) })
}

// people creates the accounts, chunk by chunk.
func (r *run) people(ctx context.Context) {
	for first := 0; first < r.Users; first += perChunk {
		end := min(first+perChunk, r.Users)
		within(fmt.Sprintf("accounts from %d on", first), func() { r.chunk(ctx, first, end) })
		r.Progress(end, r.Users, "accounts")
	}
}

// chunk creates some accounts with all their records in one transaction, unless it was done before: then the first
// account exists.
func (r *run) chunk(ctx context.Context, first, end int) {
	_, err := account.NewUsers(r.DB).Get(ctx, r.person(first).ID)
	if fault.CodeOf(err) != fault.RecordNotFound {
		check(err)
		return
	}
	b := r.batch()
	var all []*person
	var writes []commit.Write
	for n := first; n < end; n++ {
		p := r.person(n)
		all = append(all, p)
		writes = append(append(writes, r.register(p)...), r.logins(p)...)
		r.money(b, p)
	}
	check(r.DB.InTx(ctx, func(ctx context.Context) error {
		return attempt(func() {
			r.ids("accounts", first)
			r.checkOpen(ctx)
			check(r.DB.Commit(ctx, writes...))
			r.equipAll(ctx, all, b)
		})
	}))
}

// equipAll creates the records of accounts that exist, with their movements.
func (r *run) equipAll(ctx context.Context, all []*person, b *ledger.Batch) {
	for _, p := range all {
		if p.place >= 0 {
			within(p.ID, func() { r.show(ctx, p) })
		}
	}
	for _, round := range b.Rounds() {
		check(r.DB.Commit(ctx, round...))
	}
	r.neighbours(ctx, all)
}

// checkOpen ends the run with ErrServing if days of the ledger are closed, which only a running service does before the
// end: closed days accept no movement.
func (r *run) checkOpen(ctx context.Context) {
	_, closed, err := money.NewLedger(r.DB).LastDay(ctx)
	if check(err); closed {
		check(ErrServing)
	}
}

func (r *run) batch() *ledger.Batch {
	b := &ledger.Batch{By: audit.Operator, Units: map[int64]int64{}}
	for _, a := range r.assets {
		b.Units[a.id] = int64(amount.Unit(a.decimals))
	}
	return b
}

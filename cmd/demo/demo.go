// Package demo fills a database with a believable platform, so that lists, counts and charts have content
// (docs/demo.md).
//
// The one idea: everything about the n-th record follows from the seed, from n and from the instant that counts as now.
// So an interrupted run continues after its last transaction, and produces the same rows.
//
// Records that the surrounding services deliver, and all pending records, are made through the domain services behind
// the endpoints (services.go). So a missing endpoint shows as a missing record.
//
// Start reading at Run. people.go has the accounts, money.go their movements, wallet.go the wallet's reports,
// catalogue.go the catalogue, and office.go the work of the staff.
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
func begun(ctx context.Context, w World, o Options) (Summary, error) {
	r := &run{World: w, Options: o, start: o.Now.AddDate(0, 0, -days)}
	for i := range team {
		r.team = append(r.team, r.member(i))
	}
	var s Summary
	defer r.ids("begin", 0)()
	err := r.DB.Bulk(ctx)
	if err == nil {
		err = r.begin(ctx)
	}
	for _, stage := range []func(context.Context) error{r.catalogue, r.buildServices, r.settle, r.people, r.office,
		r.days, r.verify(&s), r.finish(&s)} {
		if err == nil {
			err = stage(ctx)
		}
	}
	return s, err
}

// Summary is the result of a run.
type Summary struct {
	Totals []ledger.Totals
	Logins []Login
}

// once runs a stage in one transaction with its marker, the first time.
func (r *run) once(ctx context.Context, stage string, do func(ctx context.Context) error) error {
	_, err := r.DB.Once(ctx, marker+stage, func(ctx context.Context) error {
		r.ids(stage, 0)
		return do(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", stage, err)
	}
	return nil
}

// ids makes the services generate the same identifiers again in a part of the run.
func (r *run) ids(part string, n int) (end func()) {
	s := sourceOf(r.Seed, "ids of "+part, n)
	return id.Repeat(func(b []byte) { copy(b, s.bytes(len(b))) })
}

// people creates the accounts, chunk by chunk.
func (r *run) people(ctx context.Context) error {
	for first := 0; first < r.Users; first += perChunk {
		if err := r.chunk(ctx, first, min(first+perChunk, r.Users)); err != nil {
			return fmt.Errorf("accounts from %d on: %w", first, err)
		}
		r.Progress(min(first+perChunk, r.Users), r.Users, "accounts")
	}
	return nil
}

// chunk creates some accounts with all their records in one transaction, unless it was done before: then the first
// account exists.
func (r *run) chunk(ctx context.Context, first, end int) error {
	p := r.person(first)
	_, err := account.NewUsers(r.DB).Get(ctx, p.ID)
	if fault.CodeOf(err) != fault.RecordNotFound {
		return err
	}
	b := r.batch()
	var writes []commit.Write
	var all, everyone []*person // all: the people who are shown with everything
	for n := first; n < end; n++ {
		p := r.person(n)
		if p.place >= 0 {
			all = append(all, p)
		}
		everyone = append(everyone, p)
		brought, err := r.register(p)
		if err != nil {
			return err
		}
		writes = append(append(writes, brought...), r.logins(p)...)
		if err := r.money(b, p); err != nil {
			return err
		}
	}
	return r.DB.InTx(ctx, func(ctx context.Context) error {
		r.ids("accounts", first)
		if err := r.open(ctx); err != nil {
			return err
		}
		if err := r.DB.Commit(ctx, writes...); err != nil {
			return err
		}
		for _, p := range all {
			if err := r.show(ctx, p); err != nil {
				return err
			}
		}
		if err := r.book(ctx, b); err != nil {
			return err
		}
		return r.neighbours(ctx, everyone)
	})
}

// open returns ErrServing if days of the ledger are closed, which only a running service does before the end: closed
// days accept no movement.
func (r *run) open(ctx context.Context) error {
	_, closed, err := money.NewLedger(r.DB).LastDay(ctx)
	if err == nil && closed {
		err = ErrServing
	}
	return err
}

func (r *run) batch() *ledger.Batch {
	b := &ledger.Batch{By: audit.Operator, Units: map[int64]int64{}}
	for _, a := range r.assets {
		b.Units[a.id] = int64(amount.Unit(a.decimals))
	}
	return b
}

// book commits the movements of a batch in the transaction of ctx.
func (r *run) book(ctx context.Context, b *ledger.Batch) error {
	for _, round := range b.Rounds() {
		if err := r.DB.Commit(ctx, round...); err != nil {
			return err
		}
	}
	return nil
}

// days closes the days of the ledger, as the service does every night.
func (r *run) days(ctx context.Context) error {
	r.Progress(0, 0, "closing the ledger days")
	return ledger.CloseDays(ctx, money.NewLedger(r.DB), r.DB, r.Now)
}

func (r *run) verify(s *Summary) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		r.Progress(0, 0, "verifying the ledger")
		s.Totals, err = ledger.Verify(ctx, money.NewLedger(r.DB))
		return err
	}
}

package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/logtest"
	"castellan/internal/pgtest"
)

// A transaction within a transaction is a part of it. Functions that wait for the commit run once, after the outermost
// has ended, and never if that fails.
func TestTransactionsWithinTransactions(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		boom := errors.New("boom")
		for _, fails := range []error{nil, boom} {
			ran := 0
			err := db.InTx(t.Context(), func(ctx context.Context) error {
				storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
					commit.After(ctx, func() { ran++ })
					return db.Commit(ctx, addNote{ID: fmt.Sprint("n", fails)})
				}))
				if !isThereIn(ctx, t, db, fmt.Sprint("n", fails)) || ran != 0 {
					t.Errorf("before the end: the function ran %d times", ran)
				}
				return fails
			})
			if !errors.Is(err, fails) || (ran == 1) != (fails == nil) || ran > 1 ||
				isThere(t, db, fmt.Sprint("n", fails)) != (fails == nil) {
				t.Errorf("ends with %v: %v, the function ran %d times", fails, err, ran)
			}
		}
		storetest.Equal(t, storetest.Value(db.CommitGathered(t.Context(), addNote{ID: "alone"}))(t), 1)
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
			storetest.Equal(t, storetest.Value(db.CommitGathered(ctx, addNote{ID: "part"}))(t), 0, "a part of a transaction")
			return nil
		}))
	})
}

// isThereIn is isThere within a transaction.
func isThereIn(ctx context.Context, t *testing.T, db *DB, id string) bool {
	t.Helper()
	var rows []noteRow
	storetest.Must(t, db.Find(ctx, &rows, "id = $1", "", id))
	one := noteRow{}
	if err := db.Find(ctx, &one, "id = $1", "", id); (err == nil) != (len(rows) == 1) ||
		err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	return len(rows) == 1 && one.ID == id
}

// A rehearsal returns the writes of a transaction and leaves none.
func TestRehearsedWrites(t *testing.T) {
	db := open(t, sqliteFile(t))
	writes, err := commit.Rehearse(t.Context(), db, func(ctx context.Context) error {
		return db.Commit(ctx, addNote{ID: "a"})
	})
	if err != nil || len(writes) != 1 || isThere(t, db, "a") {
		t.Errorf("%v, %v", writes, err)
	}
}

// A check may refuse every write: of a unit before it waits, and of a transaction before it begins and before its end.
func TestAdmittedWrites(t *testing.T) {
	db := open(t, sqliteFile(t))
	stopped := errors.New("stopped")
	var checks, refused int // refused is the check that fails
	db.Admit(func(context.Context) error {
		if checks++; checks == refused {
			return stopped
		}
		return nil
	})
	for n, want := range []string{"true a <nil>", "false  stopped", "false a stopped"} {
		checks, refused = 0, n
		ran := ""
		err := db.InTx(t.Context(), func(ctx context.Context) error {
			ran = "a"
			return db.Commit(ctx, addNote{ID: fmt.Sprint("t", n)})
		})
		storetest.Equal(t, fmt.Sprint(isThere(t, db, fmt.Sprint("t", n)), " ", ran, " ", err), want, n)
	}
	checks, refused = 0, 1
	if err := db.Commit(t.Context(), addNote{ID: "u"}); !errors.Is(err, stopped) || isThere(t, db, "u") {
		t.Errorf("a unit: %v", err)
	}
}

// The database refuses a caller that waited during the whole of a transaction without an answer, and who may try again.
func TestOutages(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	var o outage
	o.note(began, errors.New("a statement failed"), true)
	o.note(began, nil, true)
	storetest.Must(t, o.since(began.Add(-time.Hour)))
	for _, err := range []error{unavailable(io.EOF), fmt.Errorf("%w: x", commit.ErrUnknown)} {
		var o outage
		o.note(began, err, true)
		var refused *fault.Error
		if err := o.since(began.Add(-1)); !errors.As(err, &refused) || refused.RetryAfter != time.Second {
			t.Errorf("waited before: %+v", err)
		}
		storetest.Must(t, o.since(began))
	}
	full := fault.New(fault.Unavailable, "the disk is full")
	o.note(began, fmt.Errorf("%w: %w", commit.ErrUnknown, full), true)
	storetest.Same(t, o.since(began.Add(-1)), error(full))
}

// A caller who leaves before its turn, or during its transaction, is no sign of an outage.
func TestCallersWhoLeaveATransaction(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		slots := make([]*slot, cap(db.slots))
		for i := range slots {
			slots[i] = <-db.slots
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := db.InTx(gone, func(context.Context) error { t.Error("ran without a turn"); return nil }); !errors.Is(err,
			context.Canceled) {
			t.Errorf("%v", err)
		}
		for _, s := range slots {
			db.slots <- s
		}
		going, leave := context.WithCancel(t.Context())
		storetest.Fails(t, db.InTx(going, func(ctx context.Context) error {
			leave()
			return Translate(db.Conn(ctx).NewSelect().Table("note").Column("id").Scan(ctx, new([]string)))
		}), "", "a transaction outlived its caller")
		if began := db.writer.outage.began.Load(); began != 0 || len(db.slots) != cap(db.slots) {
			t.Errorf("outage at %d, %d turns", began, len(db.slots))
		}
		storetest.Must(t, db.InTx(t.Context(), func(context.Context) error { return nil }))
	})
}

// A lock needs a transaction. Transactions with one key take turns, and other keys do not matter.
func TestLocksOfTransactions(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		storetest.Fails(t, db.LockTx(t.Context(), 1), "", "a lock without a transaction")
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error { return db.LockTx(ctx, 1) }))
	})
	dsn := pgtest.DSN(t)
	db, waits := open(t, dsn), openWith(t, dsn, Options{Timeout: time.Minute})
	hurries := open(t, dsn)
	hurries.timeout = 200 * time.Millisecond // a slow machine needs longer to open it
	lock := func(other *DB, key int64) error {
		return other.InTx(t.Context(), func(ctx context.Context) error { return other.LockTx(ctx, key) })
	}
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		storetest.Must(t, db.LockTx(ctx, 1))
		storetest.Wants(t, lock(hurries, 1), fault.Unavailable, "the same key")
		storetest.Must(t, lock(waits, 2))
		return nil
	}))
	storetest.Must(t, lock(waits, 1))
}

// Processes that prepare one database take turns. Only one that waits is logged, and the lock ends with an error, too.
func TestExclusiveTakesTurns(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": sqliteFile(t), "postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			logged := make(chan string, 10)
			was := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(told(logged), nil)))
			defer slog.SetDefault(was)
			first, second := openWith(t, dsn, Options{Timeout: time.Minute}), open(t, dsn)
			second.timeout = time.Millisecond
			boom := errors.New("boom")
			var inside atomic.Bool
			ended := make(chan error, 1)
			err := first.Exclusive(t.Context(), func(context.Context) error {
				inside.Store(true)
				defer inside.Store(false)
				if len(logged) > 0 {
					t.Error("a process that does not wait is logged")
				}
				go func() {
					ended <- second.Exclusive(t.Context(), func(context.Context) error {
						storetest.Equal(t, inside.Load(), false, "two at once")
						return nil
					})
				}()
				select {
				case <-logged:
				case <-time.After(10 * time.Second):
					t.Error("a process that waits is not logged")
				}
				return boom
			})
			if !errors.Is(err, boom) {
				t.Errorf("%v", err)
			}
			storetest.Must(t, <-ended)
		})
	}
}

// told sends each line of a log about waiting.
type told chan string

func (l told) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "waiting for another process") {
		l <- string(p)
	}
	return len(p), nil
}

// Errors of both drivers have the code of the interface. Those that are not about the connection stay internal.
func TestTranslatedErrors(t *testing.T) {
	known := fault.New(fault.Forbidden, "no")
	for _, c := range []struct {
		err  error
		want fault.Code
	}{
		{nil, ""}, {known, fault.Forbidden}, {fmt.Errorf("x: %w", sql.ErrNoRows), fault.RecordNotFound},
		{&pgconn.PgError{Code: "23505"}, fault.RecordAlreadyExist}, {&pgconn.PgError{Code: "23503"}, fault.Internal},
		{&pgconn.PgError{Code: "25P03"}, fault.Unavailable}, {&pgconn.PgError{Code: "25P02"}, fault.Internal},
		{&pgconn.PgError{Code: "40P01"}, fault.Overloaded}, {&pgconn.PgError{Code: "55P03"}, fault.Overloaded},
		{&pgconn.PgError{Code: "57P01"}, fault.Unavailable}, {&pgconn.PgError{Code: "57014"}, fault.Internal},
		{&pgconn.PgError{Code: "53300"}, fault.Unavailable}, {&pgconn.PgError{Code: "08006"}, fault.Unavailable},
		{context.DeadlineExceeded, fault.Unavailable}, {context.Canceled, fault.Unavailable},
		{driver.ErrBadConn, fault.Unavailable}, {io.EOF, fault.Unavailable}, {io.ErrUnexpectedEOF, fault.Unavailable},
		{net.ErrClosed, fault.Unavailable}, {sql.ErrConnDone, fault.Unavailable}, {sql.ErrTxDone, fault.Unavailable},
		{&net.DNSError{}, fault.Unavailable}, {&pgconn.ConnectError{}, fault.Unavailable}, {errRefused, fault.Internal},
	} {
		got := Translate(c.err)
		storetest.Wants(t, got, c.want, c.err)
		var f *fault.Error
		if errors.As(got, &f); f != nil && c.want == fault.Unavailable && (f.RetryAfter != time.Second ||
			!errors.Is(got, c.err)) {
			t.Errorf("%v is %+v", c.err, got)
		}
	}
	if down(errors.New("x")) || down(nil) || !down(unavailable(io.EOF)) || !down(commit.ErrUnknown) {
		t.Error("the errors of a connection are not told apart")
	}
}

// A seed runs once. One that fails runs again, and leaves nothing.
func TestSeedsRunOnce(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": sqliteFile(t), "postgres": pgtest.Empty(t)} {
		t.Run(name, func(t *testing.T) {
			at := time.UnixMilli(1_700_000_000_123)
			db, ctx := openWith(t, dsn, Options{Now: func() time.Time { return at }}), t.Context()
			_, err := db.write.ExecContext(ctx, "CREATE TABLE seed (name TEXT PRIMARY KEY, at BIGINT NOT NULL)")
			storetest.Must(t, err)
			boom := errors.New("boom")
			for i, c := range []struct {
				fails error
				ran   bool
			}{{boom, true}, {nil, true}, {boom, false}} {
				runs := 0
				ran, err := db.Once(ctx, "a1", func(ctx context.Context) error {
					runs++
					storetest.Must(t, db.Commit(ctx, addNote{ID: fmt.Sprint("n", i)}))
					return c.fails
				})
				if c.ran && !errors.Is(err, c.fails) || !c.ran && err != nil || ran != c.ran || (runs == 1) != c.ran {
					t.Errorf("call %d: %t, %v, %d runs", i, ran, err, runs)
				}
				done, err := db.Seeded(ctx, "a1")
				if done != (i > 0) || err != nil || isThere(t, db, fmt.Sprint("n", i)) != (i == 1) {
					t.Errorf("after call %d: %t, %v", i, done, err)
				}
			}
			for _, name := range []string{"b1", "a2"} {
				_, err := db.Once(ctx, name, func(context.Context) error { return nil })
				storetest.Must(t, err)
			}
			for prefix, want := range map[string][]string{"a": {"a1", "a2"}, "b1": {"b1"}, "b12": nil, "": {"a1", "a2", "b1"}} {
				storetest.Same(t, storetest.Value(db.SeedsOf(ctx, prefix))(t), want, prefix)
			}
			var times []int64
			storetest.Must(t, db.read.NewSelect().Table("seed").Column("at").Where("name = 'a1'").Scan(ctx, &times))
			if !slices.Equal(times, []int64{1_700_000_000_123}) || !db.Now().Equal(at) {
				t.Errorf("made at %v", times)
			}
			_, err = db.write.ExecContext(ctx, "DROP TABLE seed")
			storetest.Must(t, err)
			ran, err := db.Once(ctx, "c", func(context.Context) error { t.Error("ran"); return nil })
			if _, err2 := db.SeedsOf(ctx, ""); err == nil || ran || err2 == nil {
				t.Errorf("without the table: %t, %v, %v", ran, err, err2)
			}
		})
	}
}

// A purge removes batches of 250 rows until it has taken five seconds; then the rest is left.
func TestPurgeStopsAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, sqliteFile(t))
		for each, want := range map[time.Duration]int64{0: 0, 4900 * time.Millisecond: 100, 5100 * time.Millisecond: 350} {
			_, err := db.write.ExecContext(t.Context(), "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "+
				"WHERE n < 600) INSERT INTO note SELECT 'n' || n, 1, '', NULL FROM c")
			storetest.Must(t, err)
			begins := true
			db.Admit(func(context.Context) error { // twice for a transaction
				if begins {
					time.Sleep(each)
				}
				begins = !begins
				return nil
			})
			storetest.Must(t, db.Purge(t.Context(), "note", "id", "id > ?", ""))
			n, err := db.read.NewSelect().Table("note").Count(t.Context())
			if storetest.Must(t, err); n != want {
				t.Errorf("%v for a batch: %d are left, want %d", each, n, want)
			}
			db.Admit(nil)
			storetest.Must(t, db.Purge(t.Context(), "note", "id", "id > ?", ""))
		}
	})
}

// A table without an index for the condition is looked through in parts of 5000 rows, and then from the beginning.
func TestPurgeInParts(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		insert := func(from, to int) {
			_, err := db.write.ExecContext(t.Context(), fmt.Sprintf("WITH RECURSIVE c(n) AS (SELECT %d UNION ALL "+
				"SELECT n + 1 FROM c WHERE n < %d) INSERT INTO note (id, version, text) SELECT 'n' || n, 1, "+
				"CASE WHEN n IN (10001, 20000) THEN 'old' ELSE '' END FROM c", from, to))
			storetest.Must(t, err)
		}
		insert(10_001, 20_000)
		for i, want := range []int{1, 0, 0} { // n20000 is in the second part
			storetest.Must(t, db.PurgePart(t.Context(), "note", "text = ?", "old"))
			n, err := db.read.NewSelect().Table("note").Where("text = 'old'").Count(t.Context())
			if storetest.Must(t, err); int(n) != want {
				t.Errorf("after %d times: %d", i+1, n)
			}
		}
		storetest.Fails(t, db.PurgePart(t.Context(), "none", "text = ?", "old"), "", "a table that does not exist")
	})
}

// The outcome of a commit without an answer is unknown, and logged. After an answer of the database it is known.
func TestUnknownCommits(t *testing.T) {
	log := logtest.Default(t)
	for _, c := range []struct {
		err     error
		unknown bool
		code    fault.Code
	}{
		{commitError{io.EOF}, true, fault.Unavailable},
		{commitError{&pgconn.PgError{Code: "23505"}}, false, fault.RecordAlreadyExist},
		{io.EOF, false, fault.Unavailable},
	} {
		log.Reset()
		undone := false
		err := (&slot{}).ended(func() { undone = true }, nil, c.err)
		if errors.Is(err, commit.ErrUnknown) != c.unknown || fault.CodeOf(err) != c.code || !undone ||
			strings.Contains(log.String(), "the outcome of a commit is unknown") != c.unknown {
			t.Errorf("%v: %v, undone %t, logged %q", c.err, err, undone, log.String())
		}
	}
}

package engine

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// watched records which transactions had to be on the disk.
type watched struct {
	executor
	flushed []bool
}

func (w *watched) transact(ctx context.Context, steps []step, flush bool) (map[int]bool, error) {
	w.flushed = append(w.flushed, flush)
	return w.executor.transact(ctx, steps, flush)
}

// A unit that need not be on the disk is committed like any other, but one unit of a transaction that has to be there
// is enough to flush it.
func TestUnflushed(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		w := &watched{executor: db.executor}
		db.executor = w
		storetest.Must(t, db.Commit(ctx, addNote{ID: "c1"}, commit.Unflushed{}))
		storetest.Must(t, db.Commit(ctx, addNote{ID: "c2"}))
		storetest.Must(t, db.Commit(ctx, saveNote{ID: "c1", Version: 1}, commit.Unflushed{}))
		if err := db.Commit(ctx, saveNote{ID: "c1", Version: 1}, commit.Unflushed{}); !errors.Is(err,
			commit.ErrFenced) {
			t.Errorf("a stale update: %v", err)
		}
		if want := []bool{false, true, false, false}; !slices.Equal(w.flushed, want) {
			t.Errorf("flushed %v, want %v", w.flushed, want)
		}
		a := &unit{writes: []commit.Write{commit.Unflushed{}, addNote{ID: "c3"}}}
		b := &unit{writes: []commit.Write{addNote{ID: "c4"}}}
		_, _, err := db.writer.once([]*unit{a, b})
		storetest.Must(t, err)
		if !w.flushed[len(w.flushed)-1] {
			t.Error("a unit that has to be on the disk was not, because of another one")
		}
	})
}

// SQLite's connection waits for the disk, except in a transaction that need not be there.
func TestUnflushedOnSQLite(t *testing.T) {
	db := open(t, sqliteFile(t))
	level := parsed(reflect.TypeFor[guardedRow](), "SELECT v.n {FROM v} "+
		"WHERE (SELECT synchronous FROM pragma_synchronous) = v.version")
	for _, c := range []struct {
		flush bool
		level int64 // 1: NORMAL, 2: FULL
	}{{true, 2}, {false, 1}, {true, 2}} {
		row := boundStatement{level, reflect.ValueOf([]guardedRow{{N: "0", Version: c.level}}), []int{0}, []string{"0"}}
		asks := step{kind: &kind{}, writes: []commit.Write{commit.Guard{}}, units: []int{0},
			statements: []boundStatement{row}}
		if failed, err := db.executor.transact(t.Context(), []step{asks}, c.flush); err != nil || len(failed) > 0 {
			t.Errorf("flush %v: the level is not %d: %v", c.flush, c.level, err)
		}
		var now int
		storetest.Must(t, db.write.NewRaw("PRAGMA synchronous").Scan(t.Context(), &now))
		storetest.Equal(t, now, 2, c.flush)
	}
}

// PostgreSQL answers before its log is flushed only for such a transaction. The server belongs to this test, because a
// log is shared by all its databases.
func TestUnflushedOnPostgres(t *testing.T) {
	pgtest.Need(t)
	server := storetest.Value(pgtest.Start())(t)
	t.Cleanup(server.Stop)
	db := open(t, server.DSN())
	ahead := func(writes ...commit.Write) (n int) {
		for range 20 {
			storetest.Must(t, db.Commit(t.Context(), append(writes, addNote{ID: id.New(time.Now())})...))
			var is bool
			storetest.Must(t, db.read.NewRaw("SELECT pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()").
				Scan(t.Context(), &is))
			if is {
				n++
			}
		}
		return n
	}
	if n := ahead(commit.Unflushed{}); n == 0 {
		t.Error("twenty asynchronous commits waited for the log")
	}
	if n := ahead(); n > 10 { // the log also contains records of others
		t.Errorf("%d of twenty commits did not wait for the log", n)
	}
}

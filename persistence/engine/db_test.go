package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// A snapshot reads one state, for one row and for many, whatever others commit.
func TestSnapshotReadsOneState(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a", Text: "old"}))
		boom := errors.New("boom")
		err := db.Snapshot(t.Context(), func(ctx context.Context) error {
			for i := range 2 {
				var rows []noteRow
				storetest.Must(t, db.Find(ctx, &rows, "id <> $1", "id DESC", ""))
				var row noteRow
				storetest.Must(t, db.Find(ctx, &row, "id = $1", "", "a"))
				storetest.Equal(t, len(rows), 1, i, rows, row)
				storetest.Equal(t, row.Text, "old", i, rows, row)
				if i == 0 {
					storetest.Must(t, db.Commit(t.Context(), addNote{ID: "b"}, saveNote{ID: "a", Version: 1, Text: "new"}))
				}
			}
			return boom
		})
		var rows []noteRow
		storetest.Must(t, db.Find(t.Context(), &rows, "id <> $1", "id DESC", ""))
		if !errors.Is(err, boom) || len(rows) != 2 || rows[0].ID != "b" || rows[1].Text != "new" {
			t.Errorf("afterwards: %+v, %v", rows, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		storetest.Fails(t, db.Snapshot(ended, func(context.Context) error { t.Error("ran"); return nil }), "")
	})
}

// A query answers with an error if a row has no field for a column, or a column has an unknown type. Of several rows it
// reads the first into one.
func TestQueriesThatDoNotFit(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a"}, addNote{ID: "b"}))
		var one struct{ ID string }
		for text, q := range map[string]Query{
			"has no field for the column other": {From: "note AS t", Columns: "id, 1 AS other", Order: "id"},
			"contains":                          {From: "note AS t", Columns: "CAST(1.5 AS DOUBLE PRECISION) AS id"},
			"none":                              {From: "none"},
		} {
			for range 2 {
				storetest.Fails(t, db.Ask(t.Context(), &one, q), text)
			}
			if text == "none" {
				err := db.InTx(t.Context(), func(ctx context.Context) error { return db.Ask(ctx, &one, q) })
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("in a transaction: %v", err)
				}
			}
		}
		storetest.Must(t, db.Ask(t.Context(), &one, Query{From: "note AS t", Columns: "id", Order: "id DESC"}))
		storetest.Equal(t, one.ID, "b")
	})
}

// An URL of a database begins with one of three schemes. The text of a wrong one shows no password.
func TestURLsOfDatabases(t *testing.T) {
	for dsn, want := range map[string]string{
		"mysql://u:secret@h/d": "must begin with sqlite: or postgres://", "": "must begin with",
		"postgres://u:secret@127.0.0.1:1/d":   "the database cannot be reached",
		"postgresql://u:secret@127.0.0.1:1/d": "the database cannot be reached",
		"postgres://u:secret@h:none/d":        "the url of PostgreSQL cannot be parsed",
	} {
		db, err := Open(t.Context(), dsn, noteKinds, Options{})
		if db != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// The pools have names and bounds. A database that is closed answers no ping.
func TestPoolsAndPing(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": sqliteFile(t), "postgres": pgtest.DSN(t)} {
		for conns, want := range map[int]int{0: 8, 3: 3, 1: 1} {
			db := storetest.Value(Open(t.Context(), dsn, noteKinds, Options{MaxConns: conns}))(t)
			bounds := map[string]int{}
			for pool, p := range db.Pools() {
				bounds[pool] = p.Stats().MaxOpenConnections
			}
			wants := map[string]int{"readers": want, "writer": 1}
			if name == "postgres" { // one connection is the writer's
				wants = map[string]int{"pool": max(1, want-1)}
			}
			storetest.Same(t, bounds, wants, name, conns)
			storetest.Must(t, db.Ping(t.Context()))
			storetest.Must(t, db.Close())
			storetest.Fails(t, db.Ping(t.Context()), "", name)
		}
	}
}

// The trace has the values of a read in its text.
func TestTraceOfReads(t *testing.T) {
	var traced []string
	trace := func(_ context.Context, text string) bool { traced = append(traced, text); return false }
	db := openWith(t, sqliteFile(t), Options{Trace: trace})
	traced = nil
	var rows []noteRow
	storetest.Must(t, db.Find(t.Context(), &rows, "id = $1 AND version = $2 AND sealed = $3 AND $4 OR text = $5", "",
		"it's", int64(7), []byte{1, 0xab}, true, nil))
	const want = `WHERE (id = 'it''s' AND version = 7 AND sealed = X'01ab' AND TRUE OR text = NULL)`
	if len(traced) != 1 || !strings.HasSuffix(traced[0], want) {
		t.Errorf("%q", traced)
	}
}

// Instants are milliseconds since 1970 in UTC, and 0 is none.
func TestColumnsOfInstantsAndJSON(t *testing.T) {
	at := time.Date(2023, 11, 14, 22, 13, 20, 999_999, time.FixedZone("", 3600))
	if got := Millis(at); got != at.UnixMilli() || Millis(time.Time{}) != 0 {
		t.Errorf("%d, %d for none", got, Millis(time.Time{}))
	}
	if got := Time(1_700_000_000_001); got.UnixMilli() != 1_700_000_000_001 || got.Location() != time.UTC ||
		!Time(0).IsZero() {
		t.Errorf("%v, %v", got, Time(0))
	}
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "encode chan int") {
			t.Errorf("%v", p)
		}
	}()
	WriteJSON(make(chan int))
}

// A command that writes very much gets 256 MiB for pages, and as much for the log.
func TestBulkOfSQLite(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		storetest.Must(t, db.Bulk(t.Context()))
		if db.Postgres() {
			return
		}
		for pragma, want := range map[string]int{"cache_size": -262144, "wal_autocheckpoint": 65536} {
			var got int
			storetest.Must(t, db.write.NewRaw("PRAGMA "+pragma).Scan(t.Context(), &got))
			storetest.Equal(t, got, want, pragma)
		}
	})
	db := storetest.Value(Open(t.Context(), sqliteFile(t), noteKinds, Options{}))(t)
	storetest.Must(t, db.Close())
	storetest.Fails(t, db.Bulk(t.Context()), "", "a closed database was prepared")
}

// A trigger of SQLite that says so refuses a row because it exists. Another refusal of a trigger is internal.
func TestRefusalsOfTriggers(t *testing.T) {
	for text, want := range map[string]fault.Code{"note: exists already": fault.RecordAlreadyExist,
		"note: no": fault.Internal} {
		db := open(t, sqliteFile(t))
		_, err := db.write.ExecContext(t.Context(), "CREATE TRIGGER refused BEFORE INSERT ON note WHEN NEW.id = 'x' "+
			"BEGIN SELECT RAISE(ABORT, '"+text+"'); END")
		storetest.Must(t, err)
		storetest.Wants(t, db.Commit(t.Context(), addNote{ID: "x"}), want)
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: "y"}))
	}
}

// A change that is refused at first, and not when its transaction is repeated, is written.
func TestRefusalThatEnds(t *testing.T) {
	db := open(t, pgtest.DSN(t))
	storetest.Must(t, db.Commit(t.Context(), addNote{ID: "x"}))
	for _, statement := range []string{"CREATE SEQUENCE turns", `CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN IF nextval('turns') = 1 THEN RETURN NULL; END IF; RETURN NEW; END $$`,
		"CREATE TRIGGER skip BEFORE UPDATE ON note FOR EACH ROW EXECUTE FUNCTION skip()"} {
		storetest.Must(t, storetest.Err(db.write.ExecContext(t.Context(), statement)))
	}
	storetest.Must(t, db.Commit(t.Context(), saveNote{ID: "x", Version: 1, Text: "new"}))
	var row noteRow
	if storetest.Must(t, db.Find(t.Context(), &row, "id = $1", "", "x")); row.Text != "new" {
		t.Errorf("an acknowledged change is lost: %+v", row)
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// A database that is opened read-only must exist. It is read, never written, and no file appears beside it.
func TestOpenSQLiteReadOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "folder", "test.db")
	_, err := Open(t.Context(), "sqlite:"+file, noteKinds, Options{ReadOnly: true})
	storetest.Is(t, err, fs.ErrNotExist, "a missing file")
	storetest.Is(t, storetest.Err(os.Stat(filepath.Dir(file))), fs.ErrNotExist, "its folder")
	storetest.Must(t, os.Mkdir(filepath.Dir(file), 0o700))
	written := storetest.Value(Open(t.Context(), "sqlite:"+file, noteKinds, Options{}))(t)
	_, err = written.Migrate(t.Context(), noteSchema)
	storetest.Must(t, err)
	written.Start(func(int) State { return nil })
	storetest.Must(t, written.Commit(t.Context(), addNote{ID: "n1", Text: "text"}))
	check := func(what string) {
		t.Helper()
		db := storetest.Value(Open(t.Context(), "sqlite:"+file, noteKinds, Options{ReadOnly: true}))(t)
		defer db.Close()
		var text string
		err := db.Conn(t.Context()).NewSelect().Table("note").Column("text").Where("id = 'n1'").Scan(t.Context(), &text)
		storetest.Must(t, err)
		storetest.Equal(t, text, "text", what)
		storetest.Fails(t, db.InTx(t.Context(), func(ctx context.Context) error {
			_, err := db.Conn(ctx).ExecContext(ctx, "DELETE FROM note")
			return err
		}), "", what, "a write is possible")
		storetest.Equal(t, len(storetest.Value(db.Pending(t.Context(), noteSchema))(t)), 0, what)
	}
	check("beside a writer")
	storetest.Must(t, written.Close())
	files := func() (names []string) {
		entries := storetest.Value(os.ReadDir(filepath.Dir(file)))(t)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	before := files()
	check("alone")
	storetest.Same(t, files(), before)
}

// A database without tables lacks all migrations. Facts report whether it can be written.
func TestPendingAndFacts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	db := storetest.Value(Open(t.Context(), "sqlite:"+file, noteKinds, Options{}))(t)
	defer db.Close()
	storetest.Same(t, storetest.Value(db.Pending(t.Context(), noteSchema))(t), []string{"0001.sql"})
	if f, err := db.Facts(t.Context()); err != nil || f.ReadOnly || !f.Now.IsZero() || f.Lossy != nil {
		t.Errorf("%+v, %v", f, err)
	}
	db.file = filepath.Dir(file) // a folder cannot be written
	if f, err := db.Facts(t.Context()); err != nil || !f.ReadOnly {
		t.Errorf("%+v, %v", f, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	storetest.Is(t, storetest.Err(db.Pending(ended, noteSchema)), context.Canceled)
}

// PostgreSQL reports its clock, whether it refuses writes, and the settings that can lose committed data. A database
// that was opened read-only refuses its own writes and does not report them.
func TestFactsOfPostgres(t *testing.T) {
	pgtest.Need(t)
	for lossy, lines := range map[string][]string{"[fsync]": {"fsync=off", "full_page_writes=on"},
		"[full_page_writes]": {"fsync=on", "full_page_writes=off"}} {
		server := storetest.Value(pgtest.Start(pgtest.Settings(lines...)))(t)
		t.Cleanup(server.Stop)
		facts := func(readOnly bool) Facts {
			t.Helper()
			db := storetest.Value(Open(t.Context(), server.DSN(), noteKinds, Options{ReadOnly: readOnly}))(t)
			defer db.Close()
			_, err := db.write.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS x (id TEXT)")
			if readOnly == (err == nil) {
				t.Errorf("read-only %t: a write: %v", readOnly, err)
			}
			f := storetest.Value(db.Facts(t.Context()))(t)
			return f
		}
		for _, readOnly := range []bool{false, true} {
			before := time.Now()
			f := facts(readOnly)
			if f.ReadOnly || fmt.Sprint(f.Lossy) != lossy || f.Now.Before(before.Add(-time.Second)) ||
				f.Now.After(time.Now().Add(time.Second)) {
				t.Errorf("%s, read-only %t: %+v", lossy, readOnly, f)
			}
		}
		db := storetest.Value(Open(t.Context(), server.DSN(), noteKinds, Options{}))(t)
		_, err := db.write.ExecContext(t.Context(), "ALTER ROLE CURRENT_USER SET default_transaction_read_only = on")
		storetest.Must(t, err)
		storetest.Must(t, db.Close())
		if f := facts(true); !f.ReadOnly {
			t.Errorf("a server that refuses writes: %+v", f)
		}
	}
}

// Migrations run once, in their order and in one transaction, and note the time of the database. One that fails is
// named, and nothing of its run remains.
func TestMigrationsRunOnce(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": sqliteFile(t), "postgres": pgtest.Empty(t)} {
		t.Run(name, func(t *testing.T) {
			db, err := Open(t.Context(), dsn, noteKinds, Options{Now: func() time.Time { return time.UnixMilli(77) }})
			storetest.Must(t, err)
			defer db.Close()
			files := fstest.MapFS{}
			add := func(number, text string) {
				files["migrations/"+name+"/"+number+".sql"] = &fstest.MapFile{Data: []byte(text)}
			}
			step := func(applied []string, fails string) {
				t.Helper()
				before := storetest.Value(db.Pending(t.Context(), files))(t)
				if fails == "" && !slices.Equal(before, applied) {
					t.Errorf("%q are pending, want %q", before, applied)
				}
				got, err := db.Migrate(t.Context(), files)
				if !slices.Equal(got, applied) || (err == nil) != (fails == "") ||
					err != nil && !strings.Contains(err.Error(), fails) {
					t.Errorf("applied %q, want %q: %v", got, applied, err)
				}
				after, err := db.Pending(t.Context(), files)
				if storetest.Must(t, err); fails == "" && len(after) > 0 || fails != "" && !slices.Equal(after, before) {
					t.Errorf("%q are pending, before %q", after, before)
				}
			}
			add("02", "INSERT INTO one VALUES ('a?')")
			add("01", "CREATE TABLE one (id TEXT)")
			step([]string{"01.sql", "02.sql"}, "")
			step(nil, "")
			add("03", "INSERT INTO one VALUES ('b')")
			add("04", "INSERT INTO none VALUES (1)")
			step(nil, "migrate 04.sql")
			add("04", "INSERT INTO one VALUES ('c')")
			step([]string{"03.sql", "04.sql"}, "")
			var ids []string
			storetest.Must(t, db.read.NewSelect().Table("one").Column("id").Order("id").Scan(t.Context(), &ids))
			var times []int64
			storetest.Must(t, db.read.NewSelect().Table("schema_migrations").Column("applied_at").Scan(t.Context(), &times))
			storetest.Same(t, ids, []string{"a?", "b", "c"}, ids, times)
			storetest.Same(t, times, []int64{77, 77, 77, 77}, ids, times)
		})
	}
}

// A program works with the schema of the next release and refuses that of the release after it, before it changes
// anything.
func TestSchemaTwoReleasesAheadIsRefused(t *testing.T) {
	db := storetest.Value(Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "test.db"), noteKinds, Options{}))(t)
	defer db.Close()
	files := fstest.MapFS{}
	migrate := func(name string) error {
		files["migrations/sqlite/"+name] = &fstest.MapFile{Data: []byte("SELECT 1")}
		_, err := db.Migrate(t.Context(), files)
		return err
	}
	storetest.Must(t, migrate("01_release_0_10.sql"))
	own := maps.Clone(files)
	storetest.Must(t, migrate("02_release_0_11.sql"))
	_, err := db.Migrate(t.Context(), own)
	storetest.Must(t, err)
	storetest.Must(t, migrate("03_release_0_12.sql"))
	own["migrations/sqlite/0101.sql"] = &fstest.MapFile{Data: []byte("CREATE TABLE own (id TEXT)")}
	const want = "the database has the schema of release 0.12, and this program works with that of 0.11 at most"
	storetest.Fails(t, storetest.Err(db.Migrate(t.Context(), own)), want, "two releases ahead")
}

// SQLite builds an index of a table with rows with the migrations: it has one writer.
func TestIndexesOfSQLiteAreBuiltAtOnce(t *testing.T) {
	db := open(t, sqliteFile(t))
	storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a", Text: "a"}))
	files := maps.Clone(noteSchema)
	files["migrations/both/0002.sql"] = &fstest.MapFile{
		Data: []byte("CREATE INDEX CONCURRENTLY IF NOT EXISTS note_text ON note (text)")}
	_, err := db.Migrate(t.Context(), files)
	storetest.Must(t, err)
	if pending, err := db.Pending(t.Context(), files); err != nil || len(pending) > 0 {
		t.Errorf("pending: %v, %v", pending, err)
	}
}

// An index of a table with rows is built while writers work, after the migrations, once, and again if it was
// interrupted. One of an empty table is built with the migrations.
func TestIndexesAreBuiltBesideWriters(t *testing.T) {
	db := storetest.Value(Open(t.Context(), pgtest.Empty(t), noteKinds, Options{}))(t)
	defer db.Close()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const index = "CREATE INDEX CONCURRENTLY IF NOT EXISTS "
	files := fstest.MapFS{
		"migrations/postgres/01.sql": file("CREATE TABLE one (id INT); CREATE TABLE two (id INT); " +
			"INSERT INTO one VALUES (1)"),
		"migrations/postgres/02.sql": file(index + "two_id ON two (id);"),
		"migrations/postgres/03.sql": file(index + "one_id ON one (id);\n" + index + "one_minus\n  ON one ((-id));"),
		"migrations/postgres/04.sql": file("INSERT INTO two VALUES (1)")}
	applied, err := db.Migrate(t.Context(), files)
	if want := []string{"01.sql", "02.sql", "04.sql"}; err != nil || !slices.Equal(applied, want) {
		t.Errorf("applied %q, %v", applied, err)
	}
	writer := storetest.Value(db.write.BeginTx(t.Context(), nil))(t)
	_, err = writer.ExecContext(t.Context(), "INSERT INTO one VALUES (2)")
	storetest.Must(t, err)
	short, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if built, err := db.BuildIndexes(short, files); err == nil || len(built) > 0 {
		t.Errorf("%q, %v beside an open transaction", built, err)
	}
	storetest.Must(t, writer.Commit())
	var all []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			built, err := db.BuildIndexes(t.Context(), files)
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, built...); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var valid int
	storetest.Must(t, db.read.NewRaw("SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid::regclass::text IN "+
		"('one_id', 'one_minus', 'two_id')").Scan(t.Context(), &valid))
	if applied, err = db.Migrate(t.Context(), files); !slices.Equal(all, []string{"03.sql"}) || valid != 3 || err != nil ||
		len(applied) > 0 {
		t.Errorf("built %q, %d valid; then %q, %v", all, valid, applied, err)
	}
}

// A connection of the writer that ended while it was idle is replaced, and no unit fails. If it ends just before a
// unit, the unit fails as UNAVAILABLE and the next one succeeds.
func TestWriterReplacesItsConnection(t *testing.T) {
	db := open(t, pgtest.DSN(t))
	e := db.executor.(*postgresExecutor)
	for i, idle := range []bool{true, false} {
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: fmt.Sprint("a", i)}))
		var ended bool
		storetest.Must(t, db.read.NewRaw("SELECT pg_terminate_backend(?, 5000)", int(e.conn.PgConn().PID())).
			Scan(t.Context(), &ended))
		if idle {
			e.used = e.used.Add(-time.Second)
		} else {
			e.used = time.Now().Add(time.Minute) // also on a machine that stalls
		}
		err := db.Commit(t.Context(), addNote{ID: fmt.Sprint("b", i)})
		if want := map[bool]fault.Code{false: fault.Unavailable}[idle]; fault.CodeOf(err) != want || !ended {
			t.Errorf("idle %t: %v", idle, err)
		}
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: fmt.Sprint("c", i)}))
		if isThere(t, db, fmt.Sprint("b", i)) != (err == nil) {
			t.Errorf("idle %t: the unit fails and is written", idle)
		}
	}
}

// A file that cannot be a database is named in the error.
func TestOpenWithoutADatabase(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	storetest.Must(t, os.WriteFile(file, []byte(strings.Repeat("no database ", 100)), 0o600))
	for what, path := range map[string]string{"a folder": dir, "a folder that is a file": filepath.Join(file, "test.db"),
		"another file": file, "a name too long for a restore": filepath.Join(dir, strings.Repeat("x", 250))} {
		for _, readOnly := range []bool{false, true} {
			db, err := Open(t.Context(), "sqlite:"+path, noteKinds, Options{ReadOnly: readOnly})
			if err == nil && readOnly {
				_, err = db.Pending(t.Context(), noteSchema)
				storetest.Must(t, db.Close())
				db = nil
			}
			if db != nil || err == nil || errors.Is(err, ErrUnfinished) {
				t.Errorf("%s, read-only %t: %v", what, readOnly, err)
			}
		}
	}
}

package engine

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// The tests' own slice: notes with a version, which a guard may name.

type noteRow struct {
	bun.BaseModel `bun:"table:note,alias:t"`

	ID      string `bun:",pk"`
	Version int64
	Text    string
	Sealed  []byte
}

type noteStep struct {
	bun.BaseModel `bun:"table:note"`

	ID      string
	Version int64
	Text    string
}

// addNote inserts a note of version 1.
type addNote struct {
	ID, Text string
	Sealed   []byte
}

func (addNote) Table() string { return "note" }

// saveNote changes a note with a version.
type saveNote struct {
	ID, Text string
	Version  int64
}

func (saveNote) Table() string                  { return "note" }
func (w saveNote) Fence() (string, int64)       { return w.ID, w.Version }
func (w saveNote) step() noteStep               { return noteStep{ID: w.ID, Version: w.Version, Text: w.Text} }
func (w addNote) row() noteRow                  { return noteRow{ID: w.ID, Version: 1, Text: w.Text, Sealed: w.Sealed} }
func guardNote(id string, v int64) commit.Guard { return commit.Guard{Key: id, Version: v} }

var noteKinds = Kinds{
	Guards: map[commit.GuardedTable]Versioned{0: {Table: "note", Column: "version"}},
	Fences: []Kind{FencedByVersion(false, saveNote.step, "text")},
	Writes: slices.Concat([]Kind{Insert(addNote.row)}, functionKinds),
}

// One file for both databases, with each word that differs.
var noteSchema = fstest.MapFS{"migrations/both/0001.sql": {Data: []byte(`CREATE TABLE note (
		id TEXT PRIMARY KEY, version INTEGER NOT NULL, text TEXT NOT NULL, sealed BLOB
	) STRICT;
	CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER);
	CREATE TABLE plain (id TEXT PRIMARY KEY) WITHOUT ROWID;`)}}

// both runs a test on a new, migrated and started database of each kind.
func both(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, open(t, sqliteFile(t))) })
	t.Run("postgres", func(t *testing.T) { test(t, open(t, pgtest.DSN(t))) })
}

func sqliteFile(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") }

func open(t *testing.T, dsn string) *DB {
	t.Helper()
	return openWith(t, dsn, Options{Timeout: time.Minute})
}

func openWith(t *testing.T, dsn string, o Options) *DB {
	t.Helper()
	db := storetest.Value(Open(t.Context(), dsn, noteKinds, o))(t)
	t.Cleanup(func() {
		storetest.Must(t, db.Close())
	})
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
		_, err := db.Migrate(ctx, noteSchema)
		return err
	}))
	db.Start(func(int) State { return nil })
	return db
}

// note reads a note, which must exist.
func note(t *testing.T, db *DB, id string) (row noteRow) {
	t.Helper()
	storetest.Must(t, db.Find(t.Context(), &row, "id = $1", "", id))
	return row
}

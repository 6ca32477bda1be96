package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/uptrace/bun"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// renameNote changes a note with any version.
type renameNote struct{ ID, Text string }

func (renameNote) Table() string { return "note" }
func (w renameNote) Row() string { return w.ID }

// dropNote deletes a note.
type dropNote struct{ ID string }

func (dropNote) Table() string { return "note" }
func (w dropNote) Row() string { return w.ID }

// stampNotes changes all notes by a function.
type stampNotes struct{}

func (stampNotes) Table() string { return "note" }

// breakNotes is a function that fails.
type breakNotes struct{ err error }

func (breakNotes) Table() string { return "note" }

var errBroken = errors.New("broken")

var functionKinds = []Kind{
	Update("UPDATE note SET text = v.text {FROM v} WHERE note.id = v.id",
		func(w renameNote) noteStep { return noteStep{ID: w.ID, Text: w.Text} }),
	Update("DELETE FROM note {USING v} WHERE note.id = v.id", func(w dropNote) noteStep { return noteStep{ID: w.ID} }),
	Each(func(ctx context.Context, tx bun.Tx, _ stampNotes) error {
		_, err := tx.NewUpdate().Table("note").Set("version = 7").Where("id <> ''").Exec(ctx)
		return err
	}),
	Each(func(_ context.Context, _ bun.Tx, w breakNotes) error { return w.err }),
}

// A unit that runs a function gets a separate transaction; the units that were gathered with it stay in the executor.
func TestFunctionsLeaveTheExecutorAlone(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a"}, addNote{ID: "b"}, addNote{ID: "c"}))
		var seen []Committed
		db.OnCommit(func(c Committed) { seen = append(seen, c) })
		units := []*unit{
			{writes: []commit.Write{renameNote{"c", "third"}, renameNote{"a", "first"}}, done: make(chan error, 1)},
			{writes: []commit.Write{stampNotes{}}, done: make(chan error, 1)},
			{writes: []commit.Write{dropNote{"b"}}, done: make(chan error, 1)},
		}
		db.writer.commit(slices.Clone(units))
		for i, u := range units {
			storetest.Is(t, <-u.done, nil, "unit", i)
		}
		if len(seen) != 2 || seen[0].Took <= 0 || seen[0].Units != 2 || seen[0].Functions != nil || seen[0].Statements != 2 ||
			seen[1].Units != 1 || !slices.Equal(seen[1].Functions, []string{"engine.stampNotes"}) {
			t.Errorf("transactions: %+v", seen)
		}
		var rows []noteRow
		storetest.Must(t, db.Find(t.Context(), &rows, "id <> ''", "id"))
		if len(rows) != 2 || rows[0].Text != "first" || rows[1].Text != "third" || rows[0].Version != 7 {
			t.Errorf("notes: %+v", rows)
		}
	})
}

// Rows are changed in the order of their keys, so that two processes cannot deadlock.
func TestUpdateSortsRows(t *testing.T) {
	ws := []commit.Write{renameNote{ID: "c"}, renameNote{ID: "a"}, renameNote{ID: "b"}}
	bound := functionKinds[0].bind(nil, ws)
	rows := bound[0].rows.Interface().([]noteStep)
	if len(bound) != 1 || !slices.EqualFunc(rows, []string{"a", "b", "c"}, func(r noteStep, id string) bool {
		return r.ID == id
	}) {
		t.Errorf("rows: %+v", rows)
	}
	storetest.Equal(t, ws[0].(renameNote).ID, "c", "the writes of the caller were sorted")
}

// A unit with a function that is refused, or whose rows exist, changes nothing, and its neighbours are written, those
// with a function too. A refusal as UNAVAILABLE by the rules of the function is no outage.
func TestFunctionsOfRefusedUnits(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a"}))
		batches, units := db.Batches(), db.Units()
		for name, c := range map[string]struct {
			write commit.Write
			is    func(error) bool
		}{
			"fenced": {saveNote{ID: "a", Version: 9}, func(err error) bool { return errors.Is(err, commit.ErrFenced) }},
			"exists": {addNote{ID: "a"}, func(err error) bool { return fault.CodeOf(err) == fault.RecordAlreadyExist }},
			"broken": {breakNotes{errBroken}, func(err error) bool {
				return errors.Is(err, errBroken) && strings.HasPrefix(err.Error(), "note: ")
			}},
			"busy": {breakNotes{fault.New(fault.Unavailable, "the account is busy")}, func(err error) bool {
				return fault.CodeOf(err) == fault.Unavailable
			}},
		} {
			errs := gathered(db, []commit.Write{stampNotes{}, c.write}, []commit.Write{addNote{ID: name}},
				[]commit.Write{dropNote{name}, breakNotes{}})
			if !c.is(errs[0]) || errs[1] != nil || errs[2] != nil || note(t, db, "a").Version != 1 || isThere(t, db, name) {
				t.Errorf("%s: %v", name, errs)
			}
		}
		storetest.Equal(t, db.Batches()-batches, 8)
		storetest.Equal(t, db.Units()-units, 8)
		for _, err := range gathered(db, []commit.Write{addNote{ID: "x"}}, []commit.Write{addNote{ID: "y"}}) {
			storetest.Must(t, err)
		}
		storetest.Equal(t, db.Batches()-batches, 9)
		storetest.Equal(t, db.Units()-units, 10)
	})
}

// A transaction of several steps checks guards, and holds values of every type.
func TestGuardsOfTransactions(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a"}))
		for i, c := range []struct {
			guard  commit.Guard
			sealed []byte
			want   error
		}{
			{guardNote("a", 1), []byte{0, 255}, nil}, {guardNote("none", 0), nil, nil},
			{guardNote("a", 2), nil, commit.ErrFenced}, {guardNote("none", 1), nil, commit.ErrFenced},
			{guardNote("a", 0), nil, commit.ErrFenced},
		} {
			id := fmt.Sprint("n", i)
			err := db.InTx(t.Context(), func(ctx context.Context) error {
				return db.Commit(ctx, addNote{ID: id, Sealed: c.sealed}, c.guard)
			})
			storetest.Is(t, err, c.want, c.guard)
			storetest.Equal(t, isThere(t, db, id), (c.want == nil), c.guard)
			if err == nil {
				if got := note(t, db, id); !bytes.Equal(got.Sealed, c.sealed) || (got.Sealed == nil) != (c.sealed == nil) {
					t.Errorf("sealed %v", got.Sealed)
				}
			}
		}
	})
}

// A transaction that the database refuses at its end changes nothing: its error is known, and the next one succeeds.
func TestRefusedAtItsEnd(t *testing.T) {
	schema := fstest.MapFS{"migrations/both/0001.sql": {Data: []byte("CREATE TABLE note (id TEXT PRIMARY KEY, version " +
		"INTEGER NOT NULL, text TEXT NOT NULL REFERENCES note (id) DEFERRABLE INITIALLY DEFERRED, sealed BLOB)")}}
	for name, dsn := range map[string]string{"sqlite": sqliteFile(t), "postgres": pgtest.Empty(t)} {
		t.Run(name, func(t *testing.T) {
			db := storetest.Value(Open(t.Context(), dsn, noteKinds, Options{}))(t)
			t.Cleanup(func() { storetest.Must(t, db.Close()) })
			_, err := db.Migrate(t.Context(), schema)
			storetest.Must(t, err)
			db.Start(func(int) State { return nil })
			storetest.Must(t, db.Commit(t.Context(), addNote{ID: "root", Text: "root"}))
			for what, commits := range map[string]func(...commit.Write) error{
				"unit": func(ws ...commit.Write) error { return db.Commit(t.Context(), ws...) },
				"unflushed": func(ws ...commit.Write) error {
					return db.Commit(t.Context(), append(ws, commit.Unflushed{})...)
				},
				"function": func(ws ...commit.Write) error { return db.Commit(t.Context(), append(ws, stampNotes{})...) },
				"transaction": func(ws ...commit.Write) error {
					return db.InTx(t.Context(), func(ctx context.Context) error { return db.Commit(ctx, ws...) })
				},
			} {
				err := commits(addNote{ID: what, Text: "none"})
				if err == nil || fault.CodeOf(err) != fault.Internal || errors.Is(err, commit.ErrUnknown) || isThere(t, db, what) {
					t.Errorf("%s: %v, written: %t", what, err, isThere(t, db, what))
				}
				storetest.Must(t, commits(addNote{ID: what, Text: "root"}))
				storetest.Equal(t, isThere(t, db, what), true, what, "the next one is lost")
			}
		})
	}
}

// A table that is missing is named, and the writer goes on when it is there again.
func TestWritesWithoutATable(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		for _, unflushed := range []bool{false, true} {
			ws := []commit.Write{addNote{ID: fmt.Sprint("a", unflushed)}}
			if unflushed {
				ws = append(ws, commit.Unflushed{})
			}
			for _, texts := range [][2]string{{"note", "away"}, {"away", "note"}} {
				_, err := db.write.ExecContext(t.Context(), "ALTER TABLE "+texts[0]+" RENAME TO "+texts[1])
				storetest.Must(t, err)
				err = db.Commit(t.Context(), ws...)
				if texts[0] == "away" {
					storetest.Must(t, err)
				} else if err == nil || !strings.Contains(err.Error(), "note") {
					t.Errorf("%v", err)
				}
			}
		}
	})
}

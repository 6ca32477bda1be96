package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// The writes of these tests, one for each way to make a kind. All change notes.

// countNote adds to the version of a note; a sum above 100 is out of range.
type countNote struct {
	ID string
	N  int64
}

func (countNote) Table() string   { return "note" }
func (w countNote) Delta() string { return w.ID }
func (w countNote) Plus(other countNote) (countNote, bool) {
	return countNote{w.ID, w.N + other.N}, w.N+other.N <= 100
}

// addNotes inserts notes, and labelNotes changes their texts.
type (
	addNotes   struct{ IDs []string }
	labelNotes struct {
		IDs  []string
		Text string
	}
)

func (addNotes) Table() string   { return "note" }
func (labelNotes) Table() string { return "note" }

// copyNote inserts a note and changes the text of its original.
type copyNote struct{ ID, Of string }

func (copyNote) Table() string { return "note" }

// closeNote changes an open note, claimNote inserts one unless it exists.
type (
	closeNote struct{ ID string }
	claimNote struct{ ID, Text string }
)

func (closeNote) Table() string            { return "note" }
func (w closeNote) Fence() (string, int64) { return w.ID, 0 }
func (claimNote) Table() string            { return "note" }
func (w claimNote) Fence() (string, int64) { return w.ID, 0 }

// putNote inserts or changes a note with a version.
type putNote struct {
	ID, Text string
	Version  int64
}

func (putNote) Table() string            { return "note" }
func (w putNote) Fence() (string, int64) { return w.ID, w.Version }

// numberNote inserts a note whose version is its number in the transaction slot.
type numberNote struct{ ID string }

func (numberNote) Table() string { return "note" }

func notesOf(ids []string, text string) (rows []noteStep) {
	for _, id := range ids {
		rows = append(rows, noteStep{ID: id, Version: 1, Text: text})
	}
	return rows
}

var manyKinds = Kinds{
	Guards: noteKinds.Guards,
	Fences: []Kind{
		Fenced("UPDATE note SET text = 'closed' {FROM v} WHERE note.id = v.id AND note.text = 'open' {RETURNING note.id}",
			func(w closeNote) noteStep { return noteStep{ID: w.ID} }),
		FencedInsert("ON CONFLICT (id) DO NOTHING {RETURNING id}",
			func(w claimNote) noteStep { return noteStep{ID: w.ID, Version: 1, Text: w.Text} }),
		FencedByVersion(true, func(w putNote) noteStep {
			return noteStep{ID: w.ID, Version: max(w.Version, 1), Text: w.Text}
		}, "text"),
	},
	Writes: []Kind{
		Insert(addNote.row),
		InsertMany(func(w addNotes) []noteStep { return notesOf(w.IDs, "") }),
		UpdateMany("UPDATE note SET text = v.text {FROM v} WHERE note.id = v.id",
			func(w labelNotes) []noteStep { return notesOf(w.IDs, w.Text) }),
		Several(Insert(func(w copyNote) noteStep { return noteStep{ID: w.ID, Version: 1, Text: "copy"} }),
			Update("UPDATE note SET text = 'copied' {FROM v} WHERE note.id = v.id",
				func(w copyNote) noteStep { return noteStep{ID: w.Of} })),
		InsertInOrder(func(s State, w numberNote) noteStep {
			s.(*keptState).seq++
			return noteStep{ID: w.ID, Version: int64(s.(*keptState).seq)}
		}),
	},
	Deltas: []Kind{Summed("UPDATE note SET version = note.version + v.version {FROM v} WHERE note.id = v.id",
		func(w countNote) noteStep { return noteStep{ID: w.ID, Version: w.N} })},
}

// bothMany is both with these kinds.
func bothMany(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	for name, dsn := range map[string]func(*testing.T) string{"sqlite": sqliteFile,
		"postgres": func(t *testing.T) string { return pgtest.DSN(t) }} {
		t.Run(name, func(t *testing.T) {
			db := storetest.Value(Open(t.Context(), dsn(t), manyKinds, Options{}))(t)
			t.Cleanup(func() { storetest.Must(t, db.Close()) })
			storetest.Must(t, storetest.Err(db.Migrate(t.Context(), noteSchema)))
			db.Start(func(int) State { return &keptState{} })
			test(t, db)
		})
	}
}

// notes are all notes as id, version and text.
func notes(t *testing.T, db *DB) string {
	t.Helper()
	var rows []noteRow
	storetest.Must(t, db.Find(t.Context(), &rows, "id <> ''", "id"))
	texts := make([]string, len(rows))
	for i, r := range rows {
		texts[i] = fmt.Sprintf("%s:%d:%s", r.ID, r.Version, r.Text)
	}
	return strings.Join(texts, " ")
}

// gathered commits units in one batch and returns their errors.
func gathered(db *DB, unitsOf ...[]commit.Write) (errs []error) {
	var units []*unit
	for _, ws := range unitsOf {
		units = append(units, &unit{writes: ws, done: make(chan error, 1)})
	}
	db.writer.commit(slices.Clone(units))
	for _, u := range units {
		errs = append(errs, <-u.done)
	}
	return errs
}

// Additions to one row are summed, however many units of a transaction have one. A sum that is out of range is written
// in parts.
func TestAdditionsAreSummed(t *testing.T) {
	bothMany(t, func(t *testing.T, db *DB) {
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a"}, addNote{ID: "b"}, addNote{ID: "c"}))
		var seen Committed
		db.OnCommit(func(c Committed) { seen = c })
		for _, err := range gathered(db, []commit.Write{countNote{"b", 5}, countNote{"a", 1}},
			[]commit.Write{countNote{"a", 2}}, []commit.Write{countNote{"a", 4}, countNote{"b", 10}}) {
			storetest.Must(t, err)
		}
		if got := notes(t, db); got != "a:8: b:16: c:1:" || seen.Statements != 1 {
			t.Errorf("%s in %d statements", got, seen.Statements)
		}
		storetest.Must(t, db.Commit(t.Context(), countNote{"a", 60}, countNote{"c", 100}, countNote{"a", 60},
			countNote{"b", 50}, countNote{"a", 40}, countNote{"b", 51}, countNote{"c", -1}))
		if got := notes(t, db); got != "a:168: b:117: c:100:" || seen.Statements != 2 {
			t.Errorf("%s in %d statements", got, seen.Statements)
		}
	})
}

// A write may insert or change any number of rows, also none. All rows of a transaction are one statement.
func TestWritesOfManyRows(t *testing.T) {
	bothMany(t, func(t *testing.T, db *DB) {
		var seen Committed
		db.OnCommit(func(c Committed) { seen = c })
		storetest.Must(t, db.Commit(t.Context(), addNotes{[]string{"c", "a"}}, addNotes{}, addNotes{[]string{"b"}}))
		storetest.Equal(t, seen.Statements, 1)
		storetest.Must(t, db.Commit(t.Context(), labelNotes{[]string{"a", "c", "none"}, "x"}, labelNotes{nil, "y"}))
		storetest.Must(t, db.Commit(t.Context(), addNotes{}, labelNotes{}))
		storetest.Equal(t, notes(t, db), "a:1:x b:1: c:1:x")
		storetest.Wants(t, db.Commit(t.Context(), addNotes{[]string{"d", "b"}}), fault.RecordAlreadyExist)
		storetest.Must(t, db.Commit(t.Context(), copyNote{"d", "a"}, copyNote{"e", "none"}))
		if got := notes(t, db); got != "a:1:copied b:1: c:1:x d:1:copy e:1:copy" || seen.Statements != 2 {
			t.Errorf("%s in %d statements", got, seen.Statements)
		}
	})
}

// A refused row refuses its unit and no other one of the transaction, whatever refuses it. The loser of a race is
// fenced although its inserts would be duplicates of the winner's rows.
func TestRefusedRows(t *testing.T) {
	bothMany(t, func(t *testing.T, db *DB) {
		storetest.Must(t, db.Commit(t.Context(), putNote{ID: "a", Text: "open"}, putNote{ID: "b", Text: "open"},
			claimNote{"c", "done"}))
		for name, units := range map[string][][]commit.Write{
			"condition": {{closeNote{"a"}, addNote{ID: "d"}}, {closeNote{"c"}, addNote{ID: "a"}}, {closeNote{"b"}}},
			"existing":  {{claimNote{"f", "1"}}, {claimNote{"c", "2"}, addNote{ID: "g"}}, {claimNote{"h", "3"}}},
			"version":   {{putNote{"i", "1", 0}}, {putNote{"c", "2", 2}, addNote{ID: "j"}}, {putNote{"k", "3", 0}}},
			"first":     {{putNote{"l", "1", 0}}, {putNote{"c", "2", 0}, addNote{ID: "m"}}, {putNote{"n", "3", 0}}},
		} {
			for i, err := range gathered(db, units...) {
				if (i == 1) != errors.Is(err, commit.ErrFenced) || i != 1 && err != nil {
					t.Errorf("%s: unit %d: %v", name, i, err)
				}
			}
		}
		const want = "a:1:closed b:1:closed c:1:done d:1: f:1:1 h:1:3 i:1:1 k:1:3 l:1:1 n:1:3"
		storetest.Equal(t, notes(t, db), want)
		two := gathered(db, []commit.Write{addNote{ID: "p"}}, []commit.Write{addNote{ID: "a"}})
		if two[0] != nil || fault.CodeOf(two[1]) != fault.RecordAlreadyExist || !isThere(t, db, "p") {
			t.Errorf("one of two: %v", two)
		}
		storetest.Must(t, db.Commit(t.Context(), putNote{"c", "new", 1}))
		refused := db.InTx(t.Context(), func(ctx context.Context) error {
			return db.Commit(ctx, addNote{ID: "o"}, addNote{ID: "a"}, putNote{"c", "old", 1})
		})
		if got := note(t, db, "c"); !errors.Is(refused, commit.ErrFenced) || got.Version != 2 || got.Text != "new" ||
			isThere(t, db, "o") {
			t.Errorf("%v, %+v", refused, got)
		}
	})
}

// The state of a slot numbers rows in their order. A transaction that fails uses no number.
func TestRowsThatDependOnTheSlot(t *testing.T) {
	bothMany(t, func(t *testing.T, db *DB) {
		storetest.Must(t, db.Commit(t.Context(), numberNote{"b"}, numberNote{"a"}))
		storetest.Wants(t, db.Commit(t.Context(), numberNote{"c"}, addNote{ID: "a"}), fault.RecordAlreadyExist)
		storetest.Must(t, db.Commit(t.Context(), numberNote{"d"}))
		storetest.Equal(t, notes(t, db), "a:2: b:1: d:3:")
		boom := errors.New("boom")
		storetest.Is(t, db.InTx(t.Context(), func(ctx context.Context) error {
			storetest.Must(t, db.Commit(ctx, numberNote{"e"}))
			return boom
		}), boom)
		func() {
			defer func() {
				storetest.Equal(t, recover(), "panic of the test", "the panic of a function is lost")
			}()
			db.InTx(t.Context(), func(ctx context.Context) error {
				storetest.Must(t, db.Commit(ctx, numberNote{"f"}))
				panic("panic of the test")
			})
		}()
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
			return db.Commit(ctx, numberNote{"g"})
		}))
		want := "a:2: b:1: d:3: g:4:"
		if db.Postgres() { // a transaction of several steps has a slot of its own
			want = "a:2: b:1: d:3: g:1:"
		}
		storetest.Equal(t, notes(t, db), want)
	})
}

// The kinds of writes that run a function are named by their type, and those of statements are not.
func TestFunctionsOfKinds(t *testing.T) {
	got := map[string]bool{}
	for _, k := range slices.Concat(noteKinds.Fences, noteKinds.Writes) {
		got[k.Function()] = true
	}
	storetest.Same(t, got, map[string]bool{"": true, "engine.stampNotes": true, "engine.breakNotes": true})
}

// Two units never share a transaction if they touch one row; the later one follows in the next.
func TestUnitsOfOneRowTakeTurns(t *testing.T) {
	db := open(t, sqliteFile(t))
	storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a"}, addNote{ID: "b"}))
	b := batch{rows: map[rowKey]struct{}{}}
	for _, ws := range [][]commit.Write{
		{saveNote{ID: "a", Version: 1}, addNote{ID: "c"}}, {addNote{ID: "d"}}, {renameNote{ID: "b"}},
		{addNote{ID: "e"}, saveNote{ID: "a", Version: 2}}, {saveNote{ID: "c", Version: 1}, renameNote{ID: "b"}},
		{saveNote{ID: "c", Version: 1}},
	} {
		b.take(&unit{writes: ws, done: make(chan error, 1)})
	}
	left := &unit{writes: []commit.Write{addNote{ID: "z"}}}
	left.state.Store(abandoned)
	b.take(left)
	storetest.Equal(t, len(b.units), 4)
	storetest.Equal(t, len(b.later), 2)
	for len(b.units) < 256 {
		b.take(&unit{writes: []commit.Write{addNote{ID: "f"}}})
	}
	b.take(&unit{writes: []commit.Write{addNote{ID: "g"}}})
	storetest.Equal(t, len(b.units), 256)
	storetest.Equal(t, len(b.later), 3)
}

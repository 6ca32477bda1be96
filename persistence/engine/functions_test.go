package engine

import (
	"context"
	"slices"
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

// renameNote changes a note, whatever its version.
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

var functionKinds = []Kind{
	Update("UPDATE note SET text = v.text {FROM v} WHERE note.id = v.id",
		func(w renameNote) noteStep { return noteStep{ID: w.ID, Text: w.Text} }),
	Update("DELETE FROM note {USING v} WHERE note.id = v.id", func(w dropNote) noteStep { return noteStep{ID: w.ID} }),
	Each(func(ctx context.Context, tx bun.Tx, _ stampNotes) error {
		_, err := tx.NewUpdate().Table("note").Set("version = 7").Where("id <> ''").Exec(ctx)
		return err
	}),
}

// A unit that runs a function gets a transaction of its own; the units that were gathered with it stay in the
// executor.
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
			if err := <-u.done; err != nil {
				t.Errorf("unit %d: %v", i, err)
			}
		}
		if len(seen) != 2 || seen[0].Units != 2 || seen[0].Functions != nil || seen[0].Statements != 2 ||
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
	if ws[0].(renameNote).ID != "c" {
		t.Error("the writes of the caller were sorted")
	}
}

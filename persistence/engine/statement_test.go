package engine

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"

	"github.com/uptrace/bun"
)

func TestStatementText(t *testing.T) {
	const from = "FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::bytea[], $5::boolean[]) " +
		"AS v (id, version, state, sealed, keep)"
	type row struct {
		bun.BaseModel `bun:"table:t"`

		ID      string
		Version int64
		State   int16
		Sealed  []byte
		Keep    bool
	}
	of := reflect.TypeFor[row]()
	for name, c := range map[string]struct {
		made             *statement
		sqlite, postgres string
		params           []int
	}{
		"update": {
			parsed(of, "UPDATE t SET state = v.state, version = v.version + 1 {FROM v} "+
				"WHERE t.id = v.id AND v.keep {RETURNING t.id}"),
			"UPDATE t SET state = ?, version = ? + 1 WHERE t.id = ? AND ?",
			"UPDATE t SET state = v.state, version = v.version + 1 " + from +
				" WHERE t.id = v.id AND v.keep RETURNING t.id",
			[]int{2, 1, 0, 4},
		},
		"a value twice": {
			parsed(of, "UPDATE t SET state = v.state {FROM v} WHERE t.id = v.id AND t.state <> v.state"),
			"UPDATE t SET state = ? WHERE t.id = ? AND t.state <> ?",
			"UPDATE t SET state = v.state " + from + " WHERE t.id = v.id AND t.state <> v.state",
			[]int{2, 0, 2},
		},
		"delete": {
			parsed(of, "DELETE FROM t {USING v} WHERE t.id = v.id"),
			"DELETE FROM t WHERE t.id = ?",
			"DELETE FROM t " + strings.Replace(from, "FROM", "USING", 1) + " WHERE t.id = v.id",
			[]int{0},
		},
		"insert": {
			insertInto(of, "ON CONFLICT (id) DO NOTHING {RETURNING id}"),
			"INSERT INTO t (id, version, state, sealed, keep) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
			"INSERT INTO t (id, version, state, sealed, keep) SELECT v.id, v.version, v.state, v.sealed, v.keep " +
				from +
				" ON CONFLICT (id) DO NOTHING RETURNING id",
			[]int{0, 1, 2, 3, 4},
		},
	} {
		if c.made.sqlite != c.sqlite || !slices.Equal(c.made.params, c.params) {
			t.Errorf("%s for SQLite, of %v:\n%s\nwant, of %v,\n%s", name, c.made.params, c.made.sqlite, c.params,
				c.sqlite)
		}
		storetest.Equal(t, c.made.postgres, c.postgres, name)
	}
	s := parsed(of, "UPDATE t SET state = v.state {FROM v} WHERE t.id = v.id {RETURNING t.id}")
	want := "WITH stand AS (" + s.postgres + ") SELECT 1 / (count(*) = cardinality($1::text[]))::int FROM stand"
	storetest.Equal(t, s.failFast, want)
	storetest.Equal(t, insertInto(of, "").failFast, "", "what nothing refuses fails fast")
	defer func() {
		if recover() == nil {
			t.Error("a column that the rows do not have was accepted")
		}
	}()
	parsed(of, "UPDATE t SET state = v.status")
}

// In a batch of many units, the refused ones are those whose guard or fence failed. Each row holds its values: values
// of every type, an absent one, and texts that look like syntax.
func TestStatementsOfManyUnits(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		const text = `'",{}\$1 NULL ü`
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: "u1"}))
		var units []*unit
		for i, id := range []string{"a", "b", "c", "d"} {
			w := addNote{ID: id, Text: text}
			if i%2 == 0 {
				w.Sealed = []byte{0, 1, 0xff, '\\'}
			}
			guard := guardNote("u1", 1)
			if id == "c" {
				guard.Version = 2
			}
			units = append(units, &unit{writes: []commit.Write{guard, guardNote("nobody", 0), w},
				done: make(chan error, 1)})
		}
		db.writer.commit(slices.Clone(units))
		for i, id := range []string{"a", "b", "c", "d"} {
			err := <-units[i].done
			if id == "c" {
				storetest.Is(t, err, commit.ErrFenced, id)
				err = db.Find(t.Context(), &noteRow{}, "id = $1", "", id)
				storetest.Wants(t, err, fault.RecordNotFound, id, "was refused and is there")
				continue
			}
			storetest.Must(t, err)
			n, want := note(t, db, id), map[bool][]byte{true: {0, 1, 0xff, '\\'}}[i%2 == 0]
			if n.Text != text || !bytes.Equal(n.Sealed, want) || i%2 == 1 && n.Sealed != nil {
				t.Errorf("%s: %q sealed %v", id, n.Text, n.Sealed)
			}
		}
	})
}

// keptState is the state of a test's transaction slot.
type keptState struct{ seq, forgotten int }

func (s *keptState) Remember() (undo func()) { was := s.seq; return func() { s.seq = was } }
func (s *keptState) Forget()                 { s.forgotten++ }

// The state of a slot is rolled back with its transaction, and Forget is called when the result of a commit is unknown.
func TestSlotState(t *testing.T) {
	kept := &keptState{seq: 9}
	s := &slot{state: kept}
	undo := s.remember()
	kept.seq = 12
	if err := s.ended(undo, nil, nil); err != nil || kept.seq != 12 {
		t.Errorf("after a commit: %d, %v", kept.seq, err)
	}
	undo = s.remember()
	kept.seq = 15
	if err := s.ended(undo, map[int]bool{0: true}, nil); err != nil || kept.seq != 12 || kept.forgotten != 0 {
		t.Errorf("a batch that was rolled back left %+v (%v)", kept, err)
	}
	err := s.ended(s.remember(), nil, commitError{context.DeadlineExceeded})
	storetest.Is(t, err, commit.ErrUnknown, kept)
	storetest.Equal(t, kept.forgotten, 1, kept)
}

// One existing row refuses only its own unit, at any position among the rows of one statement.
func TestExistingRowRefusesOnlyItsUnit(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		for _, there := range []int{0, 7, 15, 18, 20} {
			name := func(i int) string { return fmt.Sprintf("%d of %d", i, there) }
			storetest.Must(t, db.Commit(t.Context(), addNote{ID: name(there)}))
			units := make([]*unit, 21)
			for i := range units {
				units[i] = &unit{writes: []commit.Write{addNote{ID: name(i)}}, done: make(chan error, 1)}
			}
			db.writer.commit(slices.Clone(units))
			for i := range units {
				err, want := <-units[i].done, fault.Code("")
				if i == there {
					want = fault.RecordAlreadyExist
				}
				storetest.Wants(t, err, want, i, there)
				note(t, db, name(i))
			}
		}
	})
}

// A write without a kind, and a guard of an unnamed table, are refused: neither may pass as done.
func TestUnknownWritesAreRefused(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		for _, w := range []commit.Write{unknownWrite{}, commit.Guard{On: 99, Key: "a"}} {
			storetest.Fails(t, db.Commit(t.Context(), addNote{ID: "a"}, w), "no kind", w)
			in := db.InTx(t.Context(), func(ctx context.Context) error { return db.Commit(ctx, w) })
			if in == nil || !strings.Contains(in.Error(), "no kind") {
				t.Errorf("%T in a transaction: %v", w, in)
			}
		}
	})
}

type unknownWrite struct{}

func (unknownWrite) Table() string { return "unknown" }

func TestKindsAreDistinct(t *testing.T) {
	twice := Kinds{Writes: []Kind{Insert(addNote.row), Insert(addNote.row)}}
	storetest.Fails(t, storetest.Err(Open(t.Context(), sqliteFile(t), twice, Options{})), "")
}

// guardingWrite is a write whose fence includes a guard.
type guardingWrite struct{ guard commit.Guard }

func (guardingWrite) Table() string           { return "session" }
func (w guardingWrite) Guarded() commit.Guard { return w.guard }

// A guard costs no statement if the fence of another write of its unit is the same condition, and only then.
func TestGuardThatFenceIncludes(t *testing.T) {
	guard := commit.Guard{On: commit.UserCredentials, Key: "a", Version: 3}
	for name, c := range map[string]struct {
		fence commit.Guard
		want  bool
	}{
		"same":          {guard, true},
		"other version": {commit.Guard{On: commit.UserCredentials, Key: "a", Version: 4}, false},
		"other row":     {commit.Guard{On: commit.UserCredentials, Key: "b", Version: 3}, false},
		"other table":   {commit.Guard{On: commit.AttemptBudget, Key: "a", Version: 3}, false},
	} {
		unit := []commit.Write{guard, guardingWrite{c.fence}}
		storetest.Equal(t, guarded(unit, guard), c.want, name)
		storetest.Equal(t, guarded(unit, unit[1]), false, name, "the fence itself is left out")
	}
	storetest.Equal(t, guarded([]commit.Write{guard, guard}, guard), false, "a guard without a fence is left out")
}

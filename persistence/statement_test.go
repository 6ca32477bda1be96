package persistence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"castellan/domain/audit"
	"castellan/domain/challenge"
	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/user"
)

func TestStatementText(t *testing.T) {
	type row struct {
		ID      string
		Version int64
		State   int16
		Sealed  []byte
		Keep    bool
	}
	s := statementOf[row]("UPDATE t SET state = v.state, version = v.version + 1 {FROM v} WHERE t.id = v.id AND v.keep {RETURNING t.id}")
	if want := "UPDATE t SET state = $3, version = $2 + 1 WHERE t.id = $1 AND $5"; s.one != want {
		t.Errorf("for one row:\n%s\nwant\n%s", s.one, want)
	}
	if want := "UPDATE t SET state = v.state, version = v.version + 1 " +
		"FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::bytea[], $5::boolean[]) AS v (id, version, state, sealed, keep) " +
		"WHERE t.id = v.id AND v.keep RETURNING t.id"; s.all != want {
		t.Errorf("for all rows:\n%s\nwant\n%s", s.all, want)
	}
	if want := "UPDATE t SET state = $3::smallint, version = $2::bigint + 1 WHERE t.id = $1::text AND $5::boolean RETURNING t.id"; s.sole != want ||
		s.soleSure != "WITH stand AS ("+want+") SELECT 1 / (count(*) = 1)::int FROM stand" {
		t.Errorf("for PostgreSQL's one row:\n%s\n%s\nwant\n%s", s.sole, s.soleSure, want)
	}
	if want := "WITH stand AS (" + s.all + ") SELECT 1 / (count(*) = cardinality($1::text[]))::int FROM stand"; s.sure != want {
		t.Errorf("to be sure:\n%s\nwant\n%s", s.sure, want)
	}
	s = insertOf[row]("t", "ON CONFLICT (id) DO NOTHING {RETURNING id}")
	if want := "INSERT INTO t (id, version, state, sealed, keep) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING"; s.one != want {
		t.Errorf("for one row:\n%s\nwant\n%s", s.one, want)
	}
	for i, want := range []string{16: "INSERT OR FAIL INTO t (id, version, state, sealed, keep) VALUES (?, ?, ?, ?, ?)" + strings.Repeat(", (?, ?, ?, ?, ?)", 15) + " ON CONFLICT (id) DO NOTHING",
		1: "INSERT INTO t (id, version, state, sealed, keep) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"} {
		if n := slices.IndexFunc(s.lite, func(l lite) bool { return l.rows == i }); want != "" && (n < 0 || s.lite[n].text != want) {
			t.Errorf("SQLite's for %d rows: %+v", i, s.lite)
		}
	}
	if !slices.Equal(s.places, []int{0, 1, 2, 3, 4}) || s.lite[len(s.lite)-1].rows != 1 {
		t.Errorf("places %v, %+v", s.places, s.lite)
	}
	s = statementOf[row]("UPDATE t SET state = v.state, sealed = v.sealed WHERE t.id = v.id AND t.state <> v.state")
	if want := []lite{{1, "UPDATE t SET state = ?, sealed = ? WHERE t.id = ? AND t.state <> ?"}}; !slices.Equal(s.lite, want) || !slices.Equal(s.places, []int{2, 3, 0, 2}) {
		t.Errorf("SQLite's update: %+v of %v", s.lite, s.places)
	}
	defer func() {
		if recover() == nil {
			t.Error("a column that the rows do not have was accepted")
		}
	}()
	statementOf[row]("UPDATE t SET state = v.status")
}

// Of many units in one batch the refused ones are those whose guard or fence
// failed, and each row holds what was given for it: values of every type, an
// absent one, and texts that look like syntax.
func TestStatementsOfManyUnits(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store := t.Context(), NewChallenges(db)
		must(t, db.Commit(ctx, user.Add{User: user.User{ID: "u1", Phone: "+905320000001", CV: 3}}))
		var units []*unit
		for i, id := range []string{"a", "b", "c", "d"} {
			c := sample(id)
			c.Action = `'",{}\$1 NULL ü`
			w := challenge.Insert{Challenge: c}
			if i%2 == 0 {
				w.Command = []byte{0, 1, 0xff, '\\'}
			}
			guard := commit.Guard{On: commit.UserCredentials, Key: "u1", Version: 3}
			if id == "c" {
				guard.Version = 2
			}
			units = append(units, &unit{writes: []commit.Write{guard, commit.Guard{On: commit.AttemptBudget, Key: "nobody", Version: 0}, w}, done: make(chan error, 1)})
		}
		db.writer.commit(slices.Clone(units))
		for i, id := range []string{"a", "b", "c", "d"} {
			err := <-units[i].done
			if id == "c" {
				if !errors.Is(err, commit.ErrFenced) {
					t.Errorf("%s: got %v, want ErrFenced", id, err)
				}
				if _, err := store.Load(ctx, id); fault.CodeOf(err) != fault.ChallengeNotFound {
					t.Errorf("%s was refused and is there: %v", id, err)
				}
				continue
			}
			must(t, err)
			c, err := store.Load(ctx, id)
			must(t, err)
			command, err := store.Command(ctx, id)
			must(t, err)
			if c.Action != `'",{}\$1 NULL ü` || !bytes.Equal(command, map[bool][]byte{true: {0, 1, 0xff, '\\'}}[i%2 == 0]) || i%2 == 1 && command != nil {
				t.Errorf("%s: %q with command %v", id, c.Action, command)
			}
		}
	})
}

// After a commit whose fate is unknown the rows that were in it may be there:
// the chain goes on under another name, so that it meets none of them.
func TestChainAfterUnknownFate(t *testing.T) {
	l := &lane{chain: chain{name: "s", mac: macOf(nil), seq: 9, head: []byte{1}}}
	head := l.chain
	l.chain.seq = 12
	err := l.ended(head, nil, undecided{context.DeadlineExceeded})
	if !errors.Is(err, commit.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if r := l.chain.next(audit.Record{Action: "X"}); r.Chain == "s" || r.Seq != 1 {
		t.Errorf("the next row is %s/%d", r.Chain, r.Seq)
	}
	head = l.chain
	l.chain.next(audit.Record{Action: "X"})
	if err := l.ended(head, map[int]bool{0: true}, nil); err != nil || l.chain.seq != head.seq || !slices.Equal(l.chain.head, head.head) {
		t.Errorf("a batch that was rolled back left the chain at %d, want %d (%v)", l.chain.seq, head.seq, err)
	}
}

// One row that is there already refuses its own unit alone, wherever it stands
// among the rows of one statement.
func TestOneOfManyRowsIsThere(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store := t.Context(), NewChallenges(db)
		for _, there := range []int{0, 7, 15, 18, 20} {
			name := func(i int) string { return fmt.Sprintf("%d of %d", i, there) }
			must(t, db.Commit(ctx, challenge.Insert{Challenge: sample(name(there))}))
			units := make([]*unit, 21)
			for i := range units {
				units[i] = &unit{writes: []commit.Write{challenge.Insert{Challenge: sample(name(i))}}, done: make(chan error, 1)}
			}
			db.writer.commit(slices.Clone(units))
			for i := range units {
				err, want := <-units[i].done, fault.Code("")
				if i == there {
					want = fault.RecordAlreadyExist
				}
				if fault.CodeOf(err) != want {
					t.Errorf("row %d of which %d is there: %v", i, there, err)
				}
				_, err = store.Load(ctx, name(i))
				must(t, err)
			}
		}
	})
}

package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/storetest"
)

// A statement of a request may take 1.5 seconds, and a statement of a start or a command 30 seconds. SQLite waits as
// long for another process.
func TestTimeOfStatements(t *testing.T) {
	for _, limit := range []time.Duration{0, 700 * time.Millisecond} {
		db := storetest.Value(Open(t.Context(), sqliteFile(t), noteKinds, Options{Patient: true, Timeout: limit}))(t)
		defer db.Close()
		waits := func(want int) {
			t.Helper()
			var got int
			storetest.Must(t, db.write.NewRaw("PRAGMA busy_timeout").Scan(t.Context(), &got))
			storetest.Equal(t, got, want)
		}
		waits(30_000)
		db.EndPatience()
		waits(map[time.Duration]int{0: 1500}[limit] + int(limit.Milliseconds()))
	}
	synctest.Test(t, func(t *testing.T) {
		db := &DB{timeout: 1500 * time.Millisecond, breaker: newCircuitBreaker()} // of PostgreSQL
		for patient, want := range map[bool]time.Duration{true: 30 * time.Second, false: 1500 * time.Millisecond} {
			db.patient.Store(patient)
			ctx, ended := db.Bound(t.Context())
			end, limited := ctx.Deadline()
			if ended(); !limited || time.Until(end) != want || db.limit() != want {
				t.Errorf("patient %t: %v, %v, want %v", patient, time.Until(end), db.limit(), want)
			}
		}
		db.file = "file" // of SQLite
		for _, patient := range []bool{true, false} {
			db.patient.Store(patient)
			ctx, ended := db.Bound(t.Context())
			if _, limited := ctx.Deadline(); limited {
				t.Errorf("SQLite, patient %t: a statement is limited", patient)
			}
			ended()
		}
	})
}

// A purge copies what it removes. It removes nothing if the copy, or the removal itself, fails.
func TestPurgeAfterCopy(t *testing.T) {
	db := open(t, sqliteFile(t))
	count := func(where string) (n int64) {
		t.Helper()
		return storetest.Value(db.Conn(t.Context()).NewSelect().Table("note").Where(where).Count(t.Context()))(t)
	}
	for i := range 5 {
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: fmt.Sprint("a", i), Text: "old"}))
	}
	const copies = "INSERT INTO note (id, version, text, sealed) SELECT 'copy ' || id, 1, text, sealed FROM note " +
		"WHERE id IN (?)"
	purge := func(copying, where string) error {
		return db.PurgeAfter(t.Context(), copying, "note", "id", "text = 'old' AND "+where)
	}
	if err := purge("INSERT INTO none SELECT id FROM note WHERE id IN (?)", "id < 'a2'"); err == nil ||
		count("TRUE") != 5 {
		t.Errorf("a copy that fails: %v, %d notes", err, count("TRUE"))
	}
	storetest.Fails(t, purge("", "none = 1"), "", "a condition that fails")
	storetest.Must(t, purge(copies, "id < 'a2' AND id NOT LIKE 'copy%'"))
	storetest.Equal(t, count("id LIKE 'copy%'"), 2)
	storetest.Equal(t, count("id LIKE 'a%'"), 3)
	storetest.Must(t, purge(copies, "id = 'none'")) // nothing to copy
	storetest.Must(t, purge("", "id < 'a4'"))
	storetest.Equal(t, count("id LIKE 'copy%'"), 2)
	storetest.Equal(t, count("id LIKE 'a%'"), 1)
}

package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/storetest"
)

// At most 8192 units wait, at most 256 share a batch, and a patient statement may take 30 seconds.
func TestLimitsOfDatabases(t *testing.T) {
	db := open(t, sqliteFile(t))
	if n := cap(db.writer.queue); n != 8192 || maxBatch != 256 || Patience != 30*time.Second {
		t.Errorf("%d units wait, %d in a batch, patience of %v", n, maxBatch, Patience)
	}
}

// A database that is silent for 750 ms is not waited for.
func TestSilenceOfDatabases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCircuitBreaker()
		waits, cancel := p.until(t.Context())
		defer cancel()
		done := p.watch()
		time.Sleep(725 * time.Millisecond)
		synctest.Wait()
		if waits.Err() != nil {
			t.Error("broken off after 725 ms")
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if waits.Err() == nil {
			t.Error("it still waits after 775 ms")
		}
		done(true)
	})
}

// A purge copies what it removes. It removes nothing if the copy, or the removal itself, fails.
func TestPurgeAfterCopy(t *testing.T) {
	db := open(t, sqliteFile(t))
	count := func(where string) (n int64) {
		t.Helper()
		n, err := db.Conn(t.Context()).NewSelect().Table("note").Where(where).Count(t.Context())
		storetest.Must(t, err)
		return n
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
	if err := purge("", "none = 1"); err == nil {
		t.Error("a condition that fails")
	}
	storetest.Must(t, purge(copies, "id < 'a2' AND id NOT LIKE 'copy%'"))
	if count("id LIKE 'copy%'") != 2 || count("id LIKE 'a%'") != 3 {
		t.Errorf("%d copies, %d left", count("id LIKE 'copy%'"), count("id LIKE 'a%'"))
	}
	storetest.Must(t, purge(copies, "id = 'none'")) // nothing to copy
	storetest.Must(t, purge("", "id < 'a4'"))
	if count("id LIKE 'copy%'") != 2 || count("id LIKE 'a%'") != 1 {
		t.Errorf("%d copies, %d left", count("id LIKE 'copy%'"), count("id LIKE 'a%'"))
	}
}

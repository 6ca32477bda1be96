package engine

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"castellan/domain/kit/storetest"
)

// Many callers may open a new file at once: they take turns.
func TestConcurrentOpensTakeTurns(t *testing.T) {
	for range 20 {
		dsn := "sqlite:" + filepath.Join(t.TempDir(), "castellan.db")
		var ready, all sync.WaitGroup
		gate := make(chan struct{})
		for range 16 {
			ready.Add(1)
			all.Go(func() {
				ready.Done()
				<-gate
				db, err := Open(t.Context(), dsn, noteKinds, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				storetest.Is(t, db.Close(), nil)
			})
		}
		ready.Wait()
		close(gate)
		all.Wait()
	}
}

// The database files are accessible only to their owner, also in a folder that others may enter.
func TestOnlyOwnerReadsDatabaseFiles(t *testing.T) {
	dir := t.TempDir()
	storetest.Must(t, os.Chmod(dir, 0o755))
	db := storetest.Value(Open(t.Context(), "sqlite:"+filepath.Join(dir, "castellan.db"), noteKinds, Options{}))(t)
	defer db.Close()
	for _, name := range []string{"castellan.db", "castellan.db-wal", "castellan.db-shm"} {
		storetest.Equal(t, storetest.Value(os.Stat(filepath.Join(dir, name)))(t).Mode().Perm(), 0o600, name)
	}
}

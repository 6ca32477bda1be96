package engine

import (
	"path/filepath"
	"sync"
	"testing"
)

// Many callers may open a new file at once: they take turns.
func TestOpenSideBySide(t *testing.T) {
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
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		ready.Wait()
		close(gate)
		all.Wait()
	}
}

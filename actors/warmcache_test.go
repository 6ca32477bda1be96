package actors

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
)

func kept(w *WarmCache) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.young.owners) + len(w.old.owners)
}

// An entry is taken once. Entries are bounded, and they expire even if no other entry follows.
func TestWarmCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(WarmCache)
		put := func(id string) {
			w.put(challenge.Insert{Challenge: challenge.Challenge{ID: id, UserID: "of " + id},
				Command: []byte(id)})
		}
		owned := func(id string, known, untaken bool) {
			t.Helper()
			h, untouched, ok := w.holder(id)
			if ok != known || untouched != untaken || ok && h != (challenge.Holder{UserID: "of " + id, KeepsFilter: untaken}) {
				t.Errorf("%s is of %+v, untouched %v, known %v", id, h, untouched, ok)
			}
		}
		takes := func(id string, want bool) {
			t.Helper()
			got, ok := w.take(id)
			if ok != want || ok && (got.state.ID != id || string(got.command) != id) {
				t.Errorf("%s: %+v, %v", id, got, ok)
			}
		}
		takes("a", false)
		put("a")
		put("b")
		owned("a", true, true)
		takes("a", true)
		takes("a", false)
		owned("a", true, false)
		time.Sleep(warmLife + time.Second)
		put("c")
		takes("b", true) // from the older half
		owned("b", true, false)
		owned("c", true, true)
		time.Sleep(2 * warmLife)
		takes("c", false)
		owned("c", false, false)
		storetest.Equal(t, kept(w), 0, "kept")
		synctest.Wait()

		for i := range 3 * maxWarm {
			put(fmt.Sprint(i))
		}
		if n := kept(w); n > 2*maxWarm {
			t.Errorf("%d are kept", n)
		}
		takes("0", false)
		takes(fmt.Sprint(3*maxWarm-1), true)
		w.Clear()
		owned(fmt.Sprint(3*maxWarm-1), false, false)
		takes(fmt.Sprint(3*maxWarm-2), false)
		time.Sleep(3 * warmLife)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.turn != nil {
			t.Error("a timer runs for nothing")
		}
	})
}

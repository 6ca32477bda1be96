package actors

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/challenge"
)

func kept(p *Primes) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.young.owners) + len(p.old.owners)
}

// What is kept is taken once, is bounded, and is forgotten with time even where
// nothing comes after it.
func TestPrimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Primes)
		put := func(id string) { p.put(challenge.Challenge{ID: id, UserID: "of " + id}, []byte(id)) }
		owned := func(id string, known, untaken bool) {
			t.Helper()
			user, untouched, ok := p.owner(id)
			if ok != known || untouched != untaken || ok && user != "of "+id {
				t.Errorf("%s is %q's, untouched %v, known %v", id, user, untouched, ok)
			}
		}
		takes := func(id string, want bool) {
			t.Helper()
			got, ok := p.take(id)
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
		time.Sleep(primeLife + time.Second)
		put("c")
		takes("b", true) // of the older half
		owned("b", true, false)
		owned("c", true, true)
		time.Sleep(2 * primeLife)
		takes("c", false)
		owned("c", false, false)
		if n := kept(p); n != 0 {
			t.Errorf("%d are kept", n)
		}
		synctest.Wait()

		for i := range 3 * maxPrimes {
			put(fmt.Sprint(i))
		}
		if n := kept(p); n > 2*maxPrimes {
			t.Errorf("%d are kept", n)
		}
		takes("0", false)
		takes(fmt.Sprint(3*maxPrimes-1), true)
		p.Clear()
		owned(fmt.Sprint(3*maxPrimes-1), false, false)
		takes(fmt.Sprint(3*maxPrimes-2), false)
		time.Sleep(3 * primeLife)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.turn != nil {
			t.Error("a timer runs for nothing")
		}
	})
}

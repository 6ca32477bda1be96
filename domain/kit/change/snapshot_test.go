package change_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/storetest"
)

// table holds the rows of a snapshot and counts the reads. A read takes as long as the test sets.
type table struct {
	mu      sync.Mutex
	rows    map[string]int
	takes   time.Duration
	fails   error
	loads   int
	applied []string // keys of each call, joined
}

func (t *table) set(key string, value int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[key] = value
}

func (t *table) load(context.Context) (*map[string]int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loads++
	all := maps.Clone(t.rows)
	t.mu.Unlock()
	time.Sleep(t.takes)
	t.mu.Lock()
	return &all, t.fails
}

func (t *table) apply(_ context.Context, present *map[string]int, keys []string) (*map[string]int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applied = append(t.applied, strings.Join(keys, ","))
	next := maps.Clone(*present)
	for _, k := range keys {
		next[k] = t.rows[k]
	}
	t.mu.Unlock()
	time.Sleep(t.takes)
	t.mu.Lock()
	return &next, t.fails
}

func TestSnapshot(t *testing.T) {
	rows := &table{rows: map[string]int{"a": 1}}
	first := map[string]int{}
	s := change.NewSnapshot(&first, rows.load, rows.apply)
	rows.fails = errors.New("the rows cannot be read")
	for _, err := range []error{s.Reload(t.Context()), s.Follow(t.Context(), "a")} {
		storetest.Is(t, err, rows.fails, *s.Current())
		storetest.Equal(t, s.Current(), &first, *s.Current())
	}
	rows.fails = nil
	ok(t, s.Reload(t.Context()))
	rows.set("a", 2)
	rows.set("b", 3)
	ok(t, s.Follow(t.Context(), "a"))
	if got := *s.Current(); !maps.Equal(got, map[string]int{"a": 2}) || len(first) != 0 {
		t.Errorf("after a change of a: %v", got)
	}
	ok(t, s.Follow(t.Context(), "a", "")) // a note without a key
	storetest.Same(t, *s.Current(), rows.rows, "after a note without a key")
	whole := change.NewSnapshot(&first, rows.load, nil)
	ok(t, whole.Follow(t.Context(), "a"))
	storetest.Same(t, *whole.Current(), rows.rows, "what reads no single rows")
}

// A snapshot holds everything committed before a call when the call returns, however many calls run at a time. Waiting
// callers share a read.
func TestWritersShareReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := &table{rows: map[string]int{}, takes: 10 * time.Millisecond}
		s := change.NewSnapshot(&map[string]int{}, rows.load, rows.apply)
		const writers, writes = 8, 50
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range writes {
					key := fmt.Sprintf("%d-%d", w, i)
					rows.set(key, i+1)
					ok(t, s.Follow(t.Context(), key))
					storetest.Equal(t, (*s.Current())[key], i+1, key)
				}
			})
		}
		all.Wait()
		// A writer that arrives during a read waits for the next one: at most two reads.
		if n := len(rows.applied); n > 2*writes+1 {
			t.Errorf("%d readings for %d changes of %d writers", n, writers*writes, writers)
		}
		storetest.Equal(t, rows.loads, 0)
	})
}

// A read that began before a call does not serve it. A read whose caller has disconnected still serves the waiting
// callers.
func TestReadingBeganBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := &table{rows: map[string]int{"a": 1}, takes: time.Second}
		s := change.NewSnapshot(&map[string]int{}, rows.load, rows.apply)
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		go func() {
			time.Sleep(50 * time.Millisecond)
			rows.set("a", 2)
			ok(t, s.Follow(t.Context(), "a"))
			storetest.Equal(t, (*s.Current())["a"], 2)
		}()
		storetest.Is(t, s.Reload(impatient), context.DeadlineExceeded, "a caller without patience")
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		storetest.Equal(t, (*s.Current())["a"], 1)
		time.Sleep(2 * time.Second)
		if want := []string{"a"}; !slices.Equal(rows.applied, want) {
			t.Errorf("read %v, want %v", rows.applied, want)
		}
	})
}

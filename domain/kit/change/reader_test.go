package change_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/storetest"
)

// feed is a Store in memory. A read takes as long as the test sets, even if its caller has stopped waiting.
type feed struct {
	mu      sync.Mutex
	entries []change.Entry
	broken  bool
	takes   time.Duration
	reads   int
}

func (f *feed) note(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, change.Entry{ID: int64(len(f.entries) + 1), Note: change.Note{Topic: change.Sessions,
		Key: key}, At: time.Now()})
}

func (f *feed) set(broken bool, takes time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken, f.takes = broken, takes
}

func (f *feed) Since(ctx context.Context, from time.Time) ([]change.Entry, error) {
	f.mu.Lock()
	f.reads++
	broken, takes := f.broken, f.takes
	all := slices.Clone(f.entries)
	f.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if broken {
		return nil, errors.New("no connection")
	}
	return slices.DeleteFunc(all, func(e change.Entry) bool { return e.At.Before(from) }), nil
}

func (f *feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

func (f *feed) Purge(context.Context, time.Time) error { return nil }

// follower is a reader that counts its notifications.
func follower(f *feed) (*change.Reader, map[string]int) {
	told := map[string]int{}
	r := change.NewReader(f, time.Now)
	r.On(change.Sessions, func(_ context.Context, keys ...string) error {
		for _, key := range keys {
			told[key]++
		}
		return nil
	})
	return r, told
}

// A node whose last read is older than the bound is not fresh. It is fresh again
// once it has caught up.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r, told := follower(f)
		if r.Fresh() || r.Holds(r.Mark()) {
			t.Error("before the first read")
		}
		ok(t, r.Poll(t.Context()))
		time.Sleep(change.Bound - time.Millisecond)
		storetest.Equal(t, r.Fresh(), true, "within the bound")
		ok(t, r.CatchUp(t.Context()))
		storetest.Equal(t, f.reads, 1)
		f.note("a")
		time.Sleep(time.Millisecond)
		storetest.Equal(t, r.Fresh(), false, "a second after the last read")
		ok(t, r.CatchUp(t.Context()))
		if !r.Fresh() || told["a"] != 1 {
			t.Errorf("told of %v", told)
		}
	})
}

// A read counts from its beginning: it may miss a note that is written while it runs.
func TestSlowRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{takes: change.Bound}
		r, _ := follower(f)
		ok(t, r.Poll(t.Context()))
		storetest.Equal(t, r.Fresh(), false, "a read that took as long as the bound")
	})
}

// A decision made before a pause of the process does not hold because of a read
// that came after the pause.
func TestMarkExpiresDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r, _ := follower(f)
		ok(t, r.Poll(t.Context()))
		mark := r.Mark()
		time.Sleep(6 * time.Second) // paused in the middle of a request
		ok(t, r.Poll(t.Context()))  // the poller was faster
		if r.Holds(mark) || !r.Fresh() {
			t.Error("what was decided before the stop holds")
		}
	})
}

// No note is missed however long the feed was unreadable or the process was stopped. After a very long time everything
// is read again, because notes are purged.
func TestNothingIsMissed(t *testing.T) {
	for _, gap := range []time.Duration{3 * time.Second, 11 * time.Second, 25 * time.Second, 20 * time.Minute,
		2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{}
			r, told := follower(f)
			anew := 0
			r.OnGap(func(context.Context) error { anew++; return nil })
			ok(t, r.Poll(t.Context()))
			f.note("first")
			time.Sleep(gap / 2)
			f.set(true, 0)
			if r.Poll(t.Context()) == nil || r.CatchUp(t.Context()) == nil || r.Fresh() {
				t.Error("a feed that cannot be read")
			}
			time.Sleep(gap / 2)
			f.note("last")
			f.set(false, 0)
			ok(t, r.Poll(t.Context()))
			if told["first"] != 1 || told["last"] != 1 || anew > 0 != (gap > change.Kept) {
				t.Errorf("after %v told of %v, read anew %d times", gap, told, anew)
			}
			for range 100 {
				time.Sleep(change.Every)
				ok(t, r.Poll(t.Context()))
			}
			storetest.Equal(t, told["last"], 1)
		})
	}
}

// Callers that arrive while the database does not respond share one read, and none waits longer than its limit. When
// the database responds again, the next caller is served.
func TestCatchUpIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{takes: time.Hour}
		r, _ := follower(f)
		began := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if r.CatchUp(t.Context()) == nil {
					t.Error("caught up with a silent database")
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > change.Patience || f.reads > 1 {
			t.Errorf("%v and %d reads", took, f.reads)
		}
		f.set(false, 0)
		if r.CatchUp(t.Context()) == nil || time.Since(began) > change.Patience {
			t.Error("waited although it just failed")
		}
		time.Sleep(2 * change.Patience)
		ok(t, r.CatchUp(t.Context()))
	})
}

// Notes that a handler failed to apply are applied later, and the node is not fresh until then.
func TestHandlerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r := change.NewReader(f, time.Now)
		fails, applied := true, 0
		r.On(change.Sessions, func(context.Context, ...string) error {
			if fails {
				return errors.New("not now")
			}
			applied++
			return nil
		})
		f.note("a")
		if r.Poll(t.Context()) == nil || r.Fresh() {
			t.Error("a note that was not applied")
		}
		fails = false
		ok(t, r.Poll(t.Context()))
		ok(t, r.Poll(t.Context()))
		if applied != 1 || !r.Fresh() {
			t.Errorf("applied %d times", applied)
		}
	})
}

// A cache that waits for an unresponsive database does not block reads of the feed, which detect the outage.
func TestStalledHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r := change.NewReader(f, time.Now)
		r.On(change.Sessions, func(ctx context.Context, _ ...string) error { <-ctx.Done(); return ctx.Err() })
		f.note("a")
		go r.Poll(t.Context())
		time.Sleep(change.Every - time.Millisecond)
		synctest.Wait()
		storetest.Equal(t, f.count(), 1)
		time.Sleep(2 * time.Millisecond)
		storetest.Equal(t, f.count(), 2)
		time.Sleep(2 * change.ReadTime) // the cache gives up
	})
}

// Run keeps a node within the bound, and reports once if it cannot.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r, told := follower(f)
		ctx, stop := context.WithCancel(t.Context())
		complaints := 0
		go r.Run(ctx, func(error) { complaints++ })
		for i := range 40 {
			time.Sleep(change.Every / 2)
			synctest.Wait()
			if i > 4 && !r.Fresh() {
				t.Errorf("not known after %d reads", f.reads)
			}
		}
		f.set(true, 0)
		time.Sleep(5 * time.Second)
		f.note("a")
		f.set(false, 0)
		time.Sleep(change.Every)
		synctest.Wait()
		storetest.Equal(t, complaints, 1, told)
		storetest.Equal(t, told["a"], 1, told)
		stop()
		synctest.Wait()
	})
}

// Notes of one topic found in one read are delivered in one call.
func TestNotesOfATopicAreOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r := change.NewReader(f, time.Now)
		var calls [][]string
		r.On(change.Sessions, func(_ context.Context, keys ...string) error { calls = append(calls, keys); return nil })
		for _, key := range []string{"a", "b", "a"} {
			f.note(key)
		}
		ok(t, r.Poll(t.Context()))
		f.note("c")
		ok(t, r.Poll(t.Context()))
		if len(calls) != 2 || !slices.Equal(calls[0], []string{"a", "b", "a"}) || !slices.Equal(calls[1], []string{"c"}) {
			t.Errorf("%d calls: %v", len(calls), calls)
		}
	})
}

// One slow read, of the feed or by a cache, rejects no caller. Known data is served while it is younger than the bound;
// then the callers wait.
func TestSlowReadRefusesNobody(t *testing.T) {
	for _, takes := range []time.Duration{change.Bound - time.Millisecond, change.Patience - time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{}
			r, _ := follower(f)
			ctx, stop := context.WithCancel(t.Context())
			go r.Run(ctx, func(err error) { t.Error(err) })
			time.Sleep(2*change.Every + time.Millisecond)
			f.set(false, takes)
			time.AfterFunc(change.Every, func() { f.set(false, 0) }) // the next read has begun
			for range 40 {
				time.Sleep(change.Every / 4)
				ok(t, r.CatchUp(t.Context()))
				storetest.Equal(t, r.Fresh(), true, "served by what is older than the bound")
			}
			stop()
			synctest.Wait()
		})
	}
}

// After a failed read, such as during a brief outage of the database, the next request after a tenth of a second is
// served.
func TestBackAfterAFailedRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r, _ := follower(f)
		ctx, stop := context.WithCancel(t.Context())
		go r.Run(ctx, func(error) {})
		time.Sleep(3 * change.Every)
		f.set(false, time.Hour)
		time.Sleep(change.Every + change.Patience + time.Millisecond)
		if r.CatchUp(t.Context()) == nil {
			t.Error("caught up with a silent database")
		}
		f.set(true, 0)
		time.Sleep(change.Patience) // for the running read
		began := time.Now()
		if r.CatchUp(t.Context()) == nil || time.Since(began) > 0 {
			t.Errorf("told after %v that the feed cannot be read", time.Since(began))
		}
		f.set(false, 0)
		time.Sleep(100 * time.Millisecond)
		ok(t, r.CatchUp(t.Context()))
		stop()
		synctest.Wait()
	})
}

// A failed read is forgotten once a read succeeds: a caller waits for the next read then.
func TestFailureIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		r, _ := follower(f)
		f.set(true, 0)
		if r.Poll(t.Context()) == nil || !errors.Is(r.CatchUp(t.Context()), change.ErrFailed) {
			t.Error("a broken feed is read")
		}
		f.set(false, 0)
		ok(t, r.Poll(t.Context()))
		time.Sleep(change.Bound)
		ok(t, r.CatchUp(t.Context()))
	})
}

// The first read may take as long as a slow database needs.
func TestFirstReadIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{takes: 20 * time.Second}
		r, told := follower(f)
		f.note("a")
		ok(t, r.First(t.Context()))
		if told["a"] != 1 || r.Fresh() {
			t.Errorf("told of %v, fresh %v", told, r.Fresh())
		}
		storetest.Is(t, r.Poll(t.Context()), context.DeadlineExceeded, "the second read")
	})
}

// A caller that disconnects does not cancel the read.
func TestCallerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{takes: time.Second / 2}
		r, _ := follower(f)
		gone, leave := context.WithTimeout(t.Context(), time.Second/4)
		defer leave()
		storetest.Is(t, r.CatchUp(gone), context.DeadlineExceeded, "a caller who is gone")
		ok(t, r.CatchUp(t.Context()))
		storetest.Equal(t, f.count(), 1)
	})
}

func ok(t *testing.T, err error) {
	t.Helper()
	storetest.Must(t, err)
}

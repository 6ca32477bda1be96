package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

type units struct {
	mu   sync.Mutex
	all  [][]commit.Write
	fail error
}

func (u *units) Commit(_ context.Context, ws ...commit.Write) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fail != nil {
		return u.fail
	}
	u.all = append(u.all, ws)
	return nil
}

func (u *units) InTx(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

func (u *units) seen() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := map[string]int{}
	for _, ws := range u.all {
		for _, w := range ws {
			out[w.(Seen).SessionID]++
		}
	}
	return out
}

func TestActivityOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &units{}
		a := NewActivity(u, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { a.Run(ctx, func(err error) { t.Error(err) }) })
		for range 180 { // three minutes of requests, ten a second from each of two sessions
			for range 10 {
				a.Touch("s1")
				a.Touch("s2")
				time.Sleep(100 * time.Millisecond)
			}
		}
		a.Touch("s3")
		stop()
		wg.Wait() // the last uses are written before Run returns
		storetest.Equal(t, fmt.Sprint(u.seen()), "map[s1:3 s2:3 s3:1]", "writes")
		storetest.Equal(t, len(u.all), 4, "units, want one a minute and the last")
	})
}

func TestActivityIsBoundedAndForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &units{}
		a := NewActivity(u, time.Now)
		var wg sync.WaitGroup
		for range 4 { // concurrent requests of one session
			wg.Go(func() {
				for i := range 2*maxSeen + 1 {
					a.Touch(fmt.Sprint("s", i))
				}
			})
		}
		wg.Wait()
		storetest.Must(t, a.Flush(t.Context()))
		if len(u.all) != 3 || len(u.seen()) != 2*maxSeen+1 {
			t.Errorf("%d units of %d sessions", len(u.all), len(u.seen()))
		}
		time.Sleep(seenEvery)
		a.Touch("s0")
		u.fail = errors.New("down")
		storetest.Fails(t, a.Flush(t.Context()), "", "a failed write")
		if len(a.noted) != 1 || len(a.due) != 0 {
			t.Errorf("%d sessions are remembered, %d are due", len(a.noted), len(a.due))
		}
	})
}

// While Run works, every failed flush is reported, the last one too.
func TestActivityReportsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &units{fail: errors.New("down")}
		a := NewActivity(u, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		reports := 0
		var done sync.WaitGroup
		done.Go(func() {
			a.Run(ctx, func(err error) {
				if reports++; !errors.Is(err, u.fail) {
					t.Error(err)
				}
			})
		})
		a.Touch("s1")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		storetest.Equal(t, reports, 1, "reports after ten seconds")
		time.Sleep(time.Minute) // nothing is due
		synctest.Wait()
		a.Touch("s1")
		cancel()
		done.Wait()
		storetest.Equal(t, reports, 2, "reports")
	})
}

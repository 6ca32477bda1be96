package dispatch

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/storetest"
)

var wakeups = Rule{Slots: 64, Host: hostOf, Most: 32, Slow: 1, Slows: 32, RestAfter: 3, Rest: 5 * time.Minute,
	HalfLife: true}

// lanes runs a test in virtual time with a dispatcher of push and SMS.
func lanes(t *testing.T, r Rule, took func(host string) time.Duration,
	test func(t *testing.T, d *Dispatcher, o *outside)) {
	synctest.Test(t, func(t *testing.T) {
		o := &outside{took: took, at: map[string]time.Time{}, underWay: map[string]int{}, peak: map[string]int{}}
		d := New(Options{Store: o, Commit: o, Senders: map[message.Channel]message.Sender{message.Push: o},
			Rules: map[message.Channel]Rule{message.Push: r}, Workers: 4, Lease: 30 * time.Second, RetryMin: time.Second,
			RetryMax: time.Minute, MaxAttempts: 8, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		d.Start()
		test(t, d, o)
		d.Stop()
	})
}

// wake returns a message to user@host.
func wake(d *Dispatcher, id, user, host string) outbox.Message {
	now := time.Now()
	m := outbox.Message{ID: id, UserID: user, Channel: message.Push, CreatedAt: now, ExpiresAt: now.Add(2 * time.Minute),
		LeaseUntil: now.Add(30 * time.Second)}
	d.Deliver(m, message.Rendered{Channel: message.Push, To: user + "@" + host})
	return m
}

func hangs(hosts ...string) func(string) time.Duration {
	return func(host string) time.Duration {
		if slices.Contains(hosts, host) {
			return -3 * time.Second
		}
		return 10 * time.Millisecond
	}
}

// D-EXT-06: forty wake-ups of one user to a host that never answers delay no other user, and after three timeouts the
// host is paused for five minutes.
func TestHangingHostDelaysNoOtherUser(t *testing.T) {
	lanes(t, wakeups, hangs("a"), func(t *testing.T, d *Dispatcher, o *outside) {
		for i := range 40 {
			wake(d, fmt.Sprint("a", i), "A", "a")
		}
		synctest.Wait()
		wake(d, "b", "B", "b")
		synctest.Wait()
		storetest.Equal(t, o.begun("b").Equal(time.Now()), true, "the wake-up of B waits")
		pass(10 * time.Millisecond)
		if waiting, underWay, resting := d.State(); waiting != 39 || underWay != 1 || resting != 0 {
			t.Errorf("%d wait, %d are under way, %d rest", waiting, underWay, resting)
		}
		pass(10 * time.Second)
		if peak, _ := o.seen("a"); peak != 1 || len(o.begunAll()) != 1+3 {
			t.Errorf("%d attempts at once, %v", peak, o.begunAll())
		}
		if waiting, _, resting := d.State(); waiting != 0 || resting != 2 || d.Rested.Load() != 37 {
			t.Errorf("%d wait, %d rest, %d were given up", waiting, resting, d.Rested.Load())
		}
		for id, want := range map[string]outbox.State{"a0": outbox.Queued, "a2": outbox.Queued, "a3": outbox.Failed,
			"a39": outbox.Failed} {
			storetest.Equal(t, o.state(id), want, id, "is in state")
		}
		// Neither another user's wake-up to the host nor the user's wake-up to another host is tried.
		wake(d, "c", "C", "a")
		wake(d, "e", "A", "e")
		pass(time.Second)
		if len(o.begunAll()) != 4 || o.state("c") != outbox.Failed || o.state("e") != outbox.Failed {
			t.Errorf("%v, %d, %d", o.begunAll(), o.state("c"), o.state("e"))
		}
	})
}

// The pause ends exactly after its time. One more timeout continues the sequence, and an answer ends it.
func TestSuspensionEndsOnTime(t *testing.T) {
	var up atomic.Bool
	lanes(t, wakeups, func(string) time.Duration {
		if !up.Load() {
			return -3 * time.Second
		}
		return time.Millisecond
	}, func(t *testing.T, d *Dispatcher, o *outside) {
		tries := 0
		tried := func(want bool) {
			t.Helper()
			before := len(o.begunAll())
			tries++
			wake(d, fmt.Sprint("m", tries), "A", "a")
			if want { // until it has timed out
				pass(3 * time.Second)
			}
			synctest.Wait()
			storetest.Equal(t, len(o.begunAll()) > before, want, "message", tries, "tried")
		}
		for range 3 {
			tried(true)
		}
		pass(5*time.Minute - time.Millisecond)
		tried(false)
		pass(time.Millisecond)
		tried(true)
		tried(false)
		pass(5 * time.Minute)
		up.Store(true)
		tried(true)
		up.Store(false)
		tried(true)
		tried(true)
		tried(true)
		tried(false)
	})
}

// A host that answers promptly soon gets many concurrent attempts; a slow host gets one at a time. A user never has
// two.
func TestPromptHostsGetMore(t *testing.T) {
	var slowed atomic.Bool
	lanes(t, wakeups, func(host string) time.Duration {
		if host == "slow" || slowed.Load() {
			return 2 * time.Second
		}
		return 100 * time.Millisecond
	}, func(t *testing.T, d *Dispatcher, o *outside) {
		for i := range 200 {
			wake(d, fmt.Sprint("p", i), fmt.Sprint("u", i), "prompt")
			wake(d, fmt.Sprint("s", i), fmt.Sprint("v", i), "slow")
		}
		pass(1500 * time.Millisecond)
		if peak, _ := o.seen("prompt"); peak != 32 || o.state("p199") != outbox.Sent {
			t.Errorf("%d at once, the last is in state %d", peak, o.state("p199"))
		}
		pass(10 * time.Second)
		if peak, _ := o.seen("slow"); peak != 1 {
			t.Errorf("%d at once to the slow host", peak)
		}
		slowed.Store(true) // it becomes slow again
		for i := range 100 {
			wake(d, fmt.Sprint("q", i), fmt.Sprint("u", i), "prompt")
		}
		pass(13 * time.Second)
		if _, n := o.seen("prompt"); n != 1 {
			t.Errorf("%d under way to the host that became slow", n)
		}
	})
	lanes(t, wakeups, hangs(), func(t *testing.T, d *Dispatcher, o *outside) {
		for i := range 20 {
			wake(d, fmt.Sprint("m", i), "A", fmt.Sprint("host", i))
		}
		pass(time.Second)
		if _, peak := o.all(); peak != 1 || len(o.begunAll()) != 20 {
			t.Errorf("%d of one user at once, %d sent", peak, len(o.begunAll()))
		}
	})
}

// New hosts share half of the slots, however many users name however many of them.
func TestManyHangingHosts(t *testing.T) {
	lanes(t, wakeups, func(host string) time.Duration {
		if host == "known" {
			return 10 * time.Millisecond
		}
		return -3 * time.Second
	}, func(t *testing.T, d *Dispatcher, o *outside) {
		wake(d, "first", "A", "known")
		pass(time.Second)
		for i := range 500 {
			wake(d, fmt.Sprint("x", i), fmt.Sprint("x", i), fmt.Sprint("x", i))
		}
		synctest.Wait()
		if n, _ := o.all(); n != 32 {
			t.Errorf("%d attempts at hosts that hang", n)
		}
		wake(d, "second", "B", "known")
		synctest.Wait()
		storetest.Equal(t, o.begun("second").Equal(time.Now()), true, "the wake-up to a host that is known waits")
	})
}

// If all messages go to one host, users take turns: a backlog of one user does not delay the first message of another.
func TestUsersTakeTurns(t *testing.T) {
	lanes(t, Rule{Slots: 1}, func(string) time.Duration { return time.Second },
		func(t *testing.T, d *Dispatcher, o *outside) {
			for i := range 5 {
				wake(d, fmt.Sprint("a", i), "A", "x")
			}
			wake(d, "b0", "B", "x")
			wake(d, "b1", "B", "x")
			wake(d, "c0", "C", "y")
			pass(8 * time.Second)
			storetest.Equal(t, strings.Join(o.begunAll(), " "), "a0 a1 b0 c0 a2 b1 a3 a4", "sent as")
		})
}

// Mail: a domain whose server keeps the relay waiting gets half of the workers; a prompt one is not limited to one
// attempt.
func TestSlowDomain(t *testing.T) {
	lanes(t, Rule{Slots: 4, Host: hostOf, Most: 4, Slow: 2}, func(host string) time.Duration {
		if host == "slow" {
			return 10 * time.Second
		}
		return 100 * time.Millisecond
	}, func(t *testing.T, d *Dispatcher, o *outside) {
		for i := range 20 {
			wake(d, fmt.Sprint("s", i), fmt.Sprint("s", i), "slow")
		}
		for i := range 40 {
			wake(d, fmt.Sprint("p", i), fmt.Sprint("p", i), "provider")
		}
		pass(2 * time.Second)
		slow, _ := o.seen("slow")
		if provider, _ := o.seen("provider"); slow != 2 || provider != 2 || o.begun("p39").IsZero() {
			t.Errorf("%d and %d at once, the last has begun %v", slow, provider, o.begun("p39"))
		}
		pass(60 * time.Second) // a message that waited too long for its lease is claimed by some node
		for i := range 40 {
			wake(d, fmt.Sprint("q", i), fmt.Sprint("p", i), "provider")
		}
		pass(time.Second)
		if provider, _ := o.seen("provider"); provider != 4 || o.begun("q39").IsZero() {
			t.Errorf("%d at once, the last has begun %v", provider, o.begun("q39"))
		}
	})
}

// A message that waited for half of its lease is left to the next claim, so no two nodes send it; it takes no slot in
// the meantime.
func TestLongWaitingMessagesAreReleased(t *testing.T) {
	lanes(t, Rule{Slots: 1}, func(string) time.Duration { return 4 * time.Second },
		func(t *testing.T, d *Dispatcher, o *outside) {
			for i := range 10 {
				wake(d, fmt.Sprint("m", i), fmt.Sprint("u", i), "x")
			}
			pass(time.Minute)
			if waiting, _, _ := d.State(); len(o.begunAll()) != 4 || waiting != 0 {
				t.Errorf("%v were sent, %d wait", o.begunAll(), waiting)
			}
			storetest.Equal(t, time.Since(o.begun("m3")), 48*time.Second, "the last one began", "ago")
		})
}

// No message is retried after half of its lifetime.
func TestNoRetryAfterHalfOfTheLife(t *testing.T) {
	never := func(string) time.Duration { return -3 * time.Second }
	lanes(t, wakeups, never, func(t *testing.T, d *Dispatcher, o *outside) {
		for ago, want := range map[time.Duration]outbox.State{
			59 * time.Second:                  outbox.Queued, // the retry would be after 60 s
			59*time.Second + time.Millisecond: outbox.Failed,
			100 * time.Second:                 outbox.Failed,
			119*time.Second + 999_000_000:     outbox.Failed,
			2 * time.Minute:                   outbox.Expired,
			time.Duration(0):                  outbox.Queued,
		} {
			id, now := fmt.Sprint("m", ago), time.Now()
			d.Deliver(outbox.Message{ID: id, UserID: id, Channel: message.Push, CreatedAt: now.Add(-ago),
				ExpiresAt: now.Add(2*time.Minute - ago)}, message.Rendered{To: id + "@" + id})
			defer func() {
				storetest.Equal(t, o.state(id), want, "after", ago, "state")
			}()
		}
		pass(10 * time.Second)
	})
}

// Hosts and users that are not needed are forgotten; paused ones are not.
func TestIdleLanesAreRemoved(t *testing.T) {
	lanes(t, wakeups, hangs("a"), func(t *testing.T, d *Dispatcher, o *outside) {
		wake(d, "a", "A", "a")
		for i := range 100 {
			wake(d, fmt.Sprint("m", i), fmt.Sprint("u", i), fmt.Sprint("h", i))
		}
		pass(14 * time.Minute)
		if hosts, users := known(d); hosts != 101 || users != 1 {
			t.Errorf("%d hosts and %d users are known", hosts, users)
		}
		pass(2 * time.Minute)
		if hosts, users := known(d); hosts+users != 0 {
			t.Errorf("%d hosts and %d users are known", hosts, users)
		}
	})
}

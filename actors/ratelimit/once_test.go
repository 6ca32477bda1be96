package ratelimit

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/storetest"
)

// keyOf returns a key with these members as owner and replica.
func keyOf(owner, replica string) string {
	for i := 0; ; i++ {
		k := ratelimit.Key{Rule: "r", Name: fmt.Sprint(i)}
		if p := place(three, fmt.Sprint(k.Partition())); p[0] == owner && p[1] == replica {
			return k.Name
		}
	}
}

func used(t *testing.T, n *node, d ratelimit.Demand) int64 {
	t.Helper()
	stands := make([]ratelimit.Standing, 1)
	if err := n.Look(t.Context(), []ratelimit.Demand{d}, stands); err != nil {
		t.Fatal(err)
	}
	return stands[0].Used
}

// An owner that reads the state of its partition does not say what it has counted.
func TestLookDuringTakeoverIsUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		d, stands := demand("r", keyOf("b", "c"), 10), make([]ratelimit.Standing, 1)
		if ok, err := w.ask(w.nodes["a"], d); !ok || err != nil {
			t.Fatal(ok, err)
		}
		w.delay.Store(int64(10 * time.Millisecond))
		w.lapse("b")
		for _, id := range []string{"b", "a"} {
			if err := w.nodes[id].Look(t.Context(), []ratelimit.Demand{d}, stands); err == nil {
				t.Errorf("%s: %+v", id, stands)
			}
		}
		time.Sleep(time.Second)
		for _, id := range three {
			storetest.Equal(t, used(t, w.nodes[id], d), 1, "count at", id)
		}
	})
}

// A request counts once if its requester gave up on the owner and asked another member.
func TestRetryAtAnotherNodeCountsOnce(t *testing.T) {
	for asker, when := range map[string]time.Duration{"c": 25 * time.Millisecond, "b": 15 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			w := together(t)
			defer w.close()
			d := demand("r", keyOf("a", "b"), 10)
			for range 3 {
				w.delay.Store(int64(10 * time.Millisecond))
				go func() { // the owner has counted, its replica b has the admission, and the answer was not sent
					time.Sleep(when)
					w.freeze("a")
					time.Sleep(300 * time.Millisecond)
					w.thaw("a", false)
				}()
				if ok, err := w.ask(w.nodes[asker], d); !ok || err != nil {
					t.Errorf("%v, %v", ok, err)
				}
				time.Sleep(time.Second)
			}
			for _, id := range three {
				if n := used(t, w.nodes[id], d); n != 3 {
					t.Errorf("asked by %s: 3 requests count as %d at %s", asker, n, id)
				}
			}
		})
	}
}

// An owner that waits for its replica, and is asked again in the meantime, counts once.
func TestRetryAtLateOwnerCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		time.Sleep(2 * 5 * time.Second) // every name is looked up until the initial merges have expired
		d := demand("r", keyOf("a", "b"), 10)
		w.nodes["a"].member("b").copying.wait.Store(int64(300 * time.Millisecond))
		w.freeze("b")
		go func() {
			time.Sleep(150 * time.Millisecond)
			w.thaw("b", false)
		}()
		began := time.Now()
		if ok, err := w.ask(w.nodes["c"], d); !ok || err != nil || time.Since(began) < 2*leastPatience {
			t.Errorf("after %v: %v, %v", time.Since(began), ok, err)
		}
		time.Sleep(time.Second)
		for _, id := range three {
			storetest.Equal(t, used(t, w.nodes[id], d), 1, "a request counts as", "at", id)
		}
		own := make([]ratelimit.Standing, 1)
		if err := w.nodes["b"].table.Look(t.Context(), []ratelimit.Demand{d}, own); err != nil || own[0].Used != 1 {
			t.Errorf("the replica has %d, %v", own[0].Used, err)
		}
	})
}

// A client whose request cannot be decided is not counted, even if the owner counted the request before it stalled.
func TestUndecidedRequestIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		d := demand("r", keyOf("a", "b"), 10)
		w.delay.Store(int64(10 * time.Millisecond))
		go func() {
			time.Sleep(15 * time.Millisecond) // the owner has counted, and no other node has the admission
			w.freeze("a")
			w.freeze("b")
			time.Sleep(time.Second)
			w.thaw("a", false)
			w.thaw("b", false)
		}()
		began := time.Now()
		ok, err := w.nodes["c"].Allow(t.Context(), []ratelimit.Demand{d}, make([]ratelimit.Standing, 1))
		if took := time.Since(began); ok || err == nil || took > time.Second {
			t.Errorf("%v, %v after %v", ok, err, took)
		}
		time.Sleep(3 * time.Second)
		for _, id := range three {
			storetest.Equal(t, used(t, w.nodes[id], d), 0, "count at", id)
		}
	})
}

// An admission of a client that has gone is taken back, wherever it was counted.
func TestAbandonedRequestIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		d := demand("r", keyOf("a", "b"), 10)
		w.freeze("b") // so that the owner counts and waits for its replica
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if ok, err := w.nodes["c"].Allow(ctx, []ratelimit.Demand{d}, make([]ratelimit.Standing, 1)); ok || err == nil {
			t.Errorf("%v, %v of a client that has gone", ok, err)
		}
		time.Sleep(300 * time.Millisecond)
		w.thaw("b", false)
		time.Sleep(time.Second)
		for _, id := range three {
			storetest.Equal(t, used(t, w.nodes[id], d), 0, "count at", id)
		}
	})
}

// Patience follows the measurements. A member that stalls for a part of each second is waited for that long, however
// quick it is otherwise, and soon after the stalls end no longer.
func TestPatienceFollowsMeasuredTimes(t *testing.T) {
	var l latency
	now := int64(0)
	run := func(seconds int, still time.Duration) {
		for range seconds {
			for range 3000 {
				l.observe(200*time.Microsecond, now)
			}
			if still > 0 {
				l.observe(still, now)
			}
			now += int64(time.Second)
		}
	}
	for _, step := range []struct {
		seconds            int
		still, least, most time.Duration
	}{
		{5, 0, 75 * time.Millisecond, 75 * time.Millisecond},
		{1, 120 * time.Millisecond, 120 * time.Millisecond, 200 * time.Millisecond},
		{3, 280 * time.Millisecond, 280 * time.Millisecond, 500 * time.Millisecond},
		{3, 2 * time.Second, 500 * time.Millisecond, 500 * time.Millisecond},
		{180, 0, 75 * time.Millisecond, 75 * time.Millisecond},
	} {
		if run(step.seconds, step.still); l.patience() < step.least || l.patience() > step.most {
			t.Errorf("%v after standstills of %v", l.patience(), step.still)
		}
	}
}

// A node that stalled judges no member. It does not decide as a replica before it has the updates that it missed.
func TestFrozenNodeCatchesUpFirst(t *testing.T) {
	var s standstill
	for at := int64(0); at < int64(time.Second); at += int64(beatInterval) {
		if s.beat(at) {
			t.Error("it ran")
		}
	}
	now := int64(time.Second)
	if s.since(0, now) {
		t.Error("it ran")
	}
	now += int64(100 * time.Millisecond)
	if !s.since(now-1, now) || !s.beat(now) || !s.since(now-1, now) || s.since(now, now) {
		t.Error("it stood still until now")
	}
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		w.freeze("a")
		w.freeze("b")
		time.Sleep(200 * time.Millisecond)
		w.thaw("b", false) // the owner a has had time to go on without it
		d := demand("r", keyOf("a", "b"), 10)
		if ok, err := w.ask(w.nodes["b"], d); ok || err == nil {
			t.Errorf("%v, %v by a replica that may have missed something", ok, err)
		}
		w.thaw("a", false)
		time.Sleep(100 * time.Millisecond)
		if ok, err := w.ask(w.nodes["b"], d); !ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
	})
}

// A reservation whose answer was lost is taken back completely, because it cannot be used.
func TestLostReservationIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		d := demand("r", keyOf("a", "b"), 10_000)
		w.nodes["c"].reserve(d, 100)
		if n := used(t, w.nodes["a"], d); n != 100 {
			t.Fatalf("%d were reserved", n)
		}
		w.delay.Store(int64(10 * time.Millisecond))
		go func() {
			time.Sleep(15 * time.Millisecond) // the owner has counted
			w.freeze("a")
			time.Sleep(300 * time.Millisecond)
			w.thaw("a", false)
		}()
		w.nodes["c"].reserve(d, 100)
		time.Sleep(2 * time.Second)
		for _, id := range three {
			if n := used(t, w.nodes[id], d); n != 100 { // the first one stays
				t.Errorf("%d count at %s", n, id)
			}
		}
	})
}

// An owner adopts the state of its replica, which has decided in its place, while the update of an admission waits
// behind others. The admission is then lost. So its client is not admitted by the replica's later confirmation.
func TestConfirmationAfterTakeoverIsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		d, b, c := demand("r", keyOf("b", "c"), 10), w.nodes["b"], w.nodes["c"]
		p, admitted := d.Key.Partition(), int64(0)
		ask := func() {
			if ok, err := w.ask(w.nodes["a"], d); !ok || err != nil {
				t.Error(ok, err)
			}
			admitted++
		}
		ask()
		held, copied := make(chan struct{}), c.receiver(updateName)
		c.Serve(updateName, func(from string, question proto.Message, answer func(proto.Message)) {
			if q := question.(*pb.RateCopy); len(q.Parts)+len(q.States) == 0 {
				copied(from, question, answer)
				return
			}
			go func() {
				<-held
				copied(from, question, answer)
			}()
		})
		replace := func() {
			admitted++
			if v := c.decide([]ratelimit.Demand{d}, nil, []uint64{uint64(admitted)}, make([]ratelimit.Standing, 1), true,
				false); v != shard.Admitted {
				t.Error(v)
			}
			b.replaced(p, "c")
			time.Sleep(5 * time.Millisecond)
		}
		replace()
		done := make(chan struct{})
		go func() {
			ask()
			close(done)
		}()
		time.Sleep(5 * time.Millisecond)
		replace()
		close(held)
		<-done
		storetest.Equal(t, used(t, b, d), admitted, "were admitted", "count")
	})
}

// A node whose membership is confirmed after a change of the ring takes its partitions over then, without a request.
func TestLateMemberTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		w.start("a", "b")
		w.see([]string{"a", "b"}, "a", "b")
		time.Sleep(time.Second)
		w.start("c")
		c := w.nodes["c"]
		lapse := func(to bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lapsed = to
		}
		lapse(true)
		w.see([]string{"a", "b", "c"}, "a", "b", "c")
		time.Sleep(time.Second)
		if c.settled() {
			t.Error("it decides without a confirmed membership")
		}
		lapse(false)
		time.Sleep(time.Second)
		if !c.settled() {
			t.Error("it has not taken its partitions over")
		}
	})
}

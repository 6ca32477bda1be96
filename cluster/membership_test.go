package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestMembersShareTheWork(t *testing.T) {
	c, keys := newCast(), testKeys(t)
	a := member(t, c, keys)
	b := member(t, c, keys, a)
	d := member(t, c, keys, a)
	together(t, a, b, d)
	at := map[string]int{}
	for i := range 300 {
		id, first := fmt.Sprint("id-", i), ""
		for _, n := range []*Node{a, b, d} {
			got, err := tell(t.Context(), n, id, "")
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = got
			}
			if got != first {
				t.Fatalf("%s answers at %s and at %s", id, first, got)
			}
		}
		at[first]++
		if c.births[id] != 1 {
			t.Errorf("%s was activated %d times", id, c.births[id])
		}
	}
	if len(at) != 3 || c.broken.Load() > 0 {
		t.Errorf("activations %v, %d answers of a second one", at, c.broken.Load())
	}
	// An identity with a node's address belongs to that node.
	for _, n := range []*Node{a, b, d} {
		if got, err := tell(t.Context(), b, n.Address(), ""); err != nil || got != n.Address() {
			t.Errorf("the identity of %s answers at %s, %v", n.Address(), got, err)
		}
	}
	if _, err := a.Call(t.Context(), "nobody", "x", wrapperspb.String("")); !errors.Is(err, ErrKind) {
		t.Errorf("an unknown kind: %v", err)
	}

	s, err := AskStatus(t.Context(), b.membership.o.ActorAddr, keys)
	if err != nil || s.Self != b.Address() || !s.Belongs || len(s.Members) != 3 ||
		s.Activations["player"] != at[b.Address()]+1 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, m := range s.Members {
		if m.Share < 0.28 || m.Share > 0.39 || m.Version != "test" || m.Leaving {
			t.Errorf("%+v", m)
		}
	}

	heard := make(chan proto.Message, 1)
	d.Listen("ear", func(m proto.Message) { heard <- m })
	a.Post(d.Address(), "ear", wrapperspb.String("hello"))
	if m := <-heard; m.(*wrapperspb.StringValue).Value != "hello" {
		t.Errorf("%v", m)
	}
	a.Post("127.0.0.1:1~0", "ear", wrapperspb.String("no such node"))
}

// Members come and go under load: every call is answered, and never by an activation that has been replaced.
func TestJoinAndLeaveUnderLoad(t *testing.T) {
	c, keys := newCast(), testKeys(t)
	a := member(t, c, keys)
	b := member(t, c, keys, a)
	together(t, a, b)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var calls atomic.Int64
	for g := range 8 {
		all.Go(func() {
			for i := g; ctx.Err() == nil; i++ {
				if _, err := tell(t.Context(), []*Node{a, b}[i%2], fmt.Sprint("id-", i%200), ""); err != nil {
					t.Errorf("a call while members come and go: %v", err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for range 2 {
		d := member(t, c, keys, a)
		together(t, a, b, d)
		before := calls.Load()
		until(t, "some calls", func() bool { return calls.Load() > before+500 })
		lives := d.Live()
		d.Leave(t.Context())
		if lives == 0 || d.Live() != 0 {
			t.Errorf("a member that left had %d activations and has %d", lives, d.Live())
		}
		d.Stop(t.Context())
		together(t, a, b)
	}
	stop()
	all.Wait()
	if c.broken.Load() > 0 {
		t.Errorf("%d messages were handled by an activation that had been replaced", c.broken.Load())
	}
}

// A caller that waits for an activation that moves is redirected to its next owner, and the started work is finished.
func TestWaitersFollowTheirActivation(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	together(t, a, b)
	ids := idsOf(b, 5)
	answers := make(chan error, 2*len(ids))
	for _, id := range ids {
		for _, n := range []*Node{a, a} {
			go func() {
				got, err := tell(t.Context(), n, id, "wait")
				if err == nil && got != "gone" {
					err = errors.New(got)
				}
				answers <- err
			}()
		}
	}
	until(t, "all calls wait", func() bool { return b.Live() == int64(len(ids)) })
	slow := make(chan error, 1)
	go func() { _, err := tell(t.Context(), a, ids[0], "slow"); slow <- err }()
	time.Sleep(10 * time.Millisecond)
	b.Leave(t.Context())
	if err := <-slow; err != nil {
		t.Errorf("what was being handled: %v", err)
	}
	until(t, "all calls wait at the next owner", func() bool { return a.Live() == int64(len(ids)) })
	for range 2 { // twice: one call may still be under way
		time.Sleep(20 * time.Millisecond)
		for _, id := range ids {
			if _, err := tell(t.Context(), a, id, "go"); err != nil {
				t.Error(err)
			}
		}
	}
	for range 2 * len(ids) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// A crashed member is given up as soon as its address refuses connections; its identities are activated elsewhere.
func TestDeadMemberIsRemoved(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	d := member(t, c, nil, a)
	together(t, a, b, d)
	for i := range 100 {
		if _, err := tell(t.Context(), a, fmt.Sprint("id-", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	d.membership.end()
	began := time.Now()
	for i := range 100 {
		got, err := tell(t.Context(), a, fmt.Sprint("id-", i), "")
		for errors.Is(err, ErrLost) {
			got, err = tell(t.Context(), a, fmt.Sprint("id-", i), "")
		}
		if err != nil || got == d.Address() {
			t.Fatalf("answered by %s, %v", got, err)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A process that starts at the address of a crashed one replaces it. Messages to the crashed process do not reach it.
func TestRestartOnTheSameAddress(t *testing.T) {
	c, keys := newCast(), testKeys(t)
	a := member(t, c, keys)
	b := member(t, c, keys, a)
	together(t, a, b)
	for i := range 50 {
		if _, err := tell(t.Context(), a, fmt.Sprint("id-", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	heard := make(chan proto.Message, 1)
	b.membership.end()
	again := memberAt(t, c, b.membership.o, a)
	again.Listen("ear", func(m proto.Message) { heard <- m })
	a.Post(b.Address(), "ear", wrapperspb.String("for the dead"))
	together(t, a, again)
	for i := range 50 {
		got, err := tell(t.Context(), a, fmt.Sprint("id-", i), "")
		for errors.Is(err, ErrLost) {
			got, err = tell(t.Context(), a, fmt.Sprint("id-", i), "")
		}
		if err != nil || got == b.Address() {
			t.Fatalf("answered by %s, %v", got, err)
		}
	}
	a.Post(again.Address(), "ear", wrapperspb.String("hello"))
	if m := <-heard; m.(*wrapperspb.StringValue).Value != "hello" {
		t.Errorf("%v", m)
	}
}

// A node without a confirmed membership serves nothing. When it is confirmed again, it starts over with the identities
// that it owns.
func TestMembershipLease(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	together(t, a, b)
	id := idsOf(b, 1)[0]
	for range 2 {
		if got, err := tell(t.Context(), a, id, ""); err != nil || got != b.Address() || c.births[id] != 1 {
			t.Fatalf("%s, %v, %d activations", got, err, c.births[id])
		}
	}
	// The other member does not have b for a while, as after a freeze.
	known := *a.membership.known.Load()
	a.membership.known.Store(&map[string]Member{a.Address(): known[a.Address()]})
	b.membership.confirm(0, false)
	if b.membership.holdsLease() {
		t.Fatal("b believes that it belongs")
	}
	another := identity{"player", "another"}
	if _, err := b.membership.slot(another); b.membership.owns(another) && !errors.Is(err, errElsewhere) {
		t.Errorf("a first activation without a lease: %v", err)
	}
	if got, err := tell(t.Context(), b, id, ""); err != nil || got != b.Address() {
		t.Fatalf("%s, %v", got, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.births[id] != 2 || b.lapses.Load() == 0 {
		t.Errorf("%d activations, %d lapses", c.births[id], b.lapses.Load())
	}
}

// A dropped activation does not handle its queued messages.
func TestDroppedActivationsHandleNothing(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	together(t, a, b)
	id := idsOf(b, 1)[0]
	done := make(chan error, 8)
	for range cap(done) {
		go func() { _, err := tell(t.Context(), a, id, "slow"); done <- err }()
	}
	until(t, "a queue", func() bool {
		x := b.membership.n.find(identity{"player", id})
		return x != nil && x.state.Load() > 3
	})
	b.membership.leaseMu.Lock()
	b.membership.drop()
	b.membership.leaseMu.Unlock()
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if c.broken.Load() > 0 || c.births[id] != 2 {
		t.Errorf("%d by the old one, %d activations", c.broken.Load(), c.births[id])
	}
}

package cluster

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"castellan/domain/kit/storetest"
	"castellan/internal/porttest"
)

// unreachableMember accepts connections and says hello, and then answers nothing, like a process that freezes.
func unreachableMember(t *testing.T) Member {
	t.Helper()
	l := listen(t)
	m := Member{ID: l.Addr().String() + "~1", Address: l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close() // with the listener
			conn.Write((&frame{op: opHello, id: m.ID}).append(nil))
		}
	}()
	return m
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

// gossip makes a node hear of members, or no longer hear of them.
func gossip(n *Node, hears bool, ms ...Member) {
	n.membership.mu.Lock()
	for _, m := range ms {
		if hears {
			n.membership.peers[m.ID] = m
		} else {
			delete(n.membership.peers, m.ID)
		}
	}
	n.membership.mu.Unlock()
	n.membership.wake()
}

// If half of the members became unreachable, a node serves nothing while a component outranks it, or while the witness
// cannot decide. It serves once there is no such component.
func TestNetworkSplitDetector(t *testing.T) {
	c := newCast()
	o := Options{GossipAddr: porttest.Free(t), ActorAddr: porttest.Free(t), Version: "test", Log: quietly()}
	a := storetest.Value(New(o))(t)
	a.Register(Kind{Name: "player", New: func() actor.Actor { return &player{c: c} }})
	const unknown, there, nobody = 0, 1, 2
	var truth, asked atomic.Int32
	a.OnNetworkSplit(func(_ context.Context, side Component) (bool, error) {
		asked.Add(1)
		storetest.Equal(t, side, (Component{1, a.Address()}), "asked for")
		if truth.Load() == unknown {
			return false, errors.New("the database does not answer")
		}
		return truth.Load() == there, nil
	})
	storetest.Must(t, a.Start())
	t.Cleanup(func() { a.Stop(t.Context()) })
	serves := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := tell(ctx, a, "x", "")
		return err == nil
	}
	if !serves() {
		t.Fatal("alone from the start it does not serve")
	}
	other := unreachableMember(t)
	gossip(a, true, other)
	until(t, "it is a member", func() bool { return len(a.membership.ring.Load().seats) == 2 })
	gossip(a, false, other)
	until(t, "it asks", func() bool { return asked.Load() > 0 })
	if serves() || a.Belongs() {
		t.Error("it serves without knowing the members")
	}
	truth.Store(there)
	seen := asked.Load()
	until(t, "it asks again", func() bool { return asked.Load() > seen+1 })
	if serves() || a.Belongs() {
		t.Error("it serves although others do")
	}
	truth.Store(nobody)
	until(t, "it serves alone", serves)
	storetest.Equal(t, c.births["x"], 2, "activations, one before and one after")
	// When the other member is heard again, it must confirm the membership first.
	truth.Store(there)
	gossip(a, true, other)
	until(t, "it is a member again", func() bool { return len(a.membership.ring.Load().seats) == 2 })
	gossip(a, false, other)
	until(t, "it is apart", func() bool { return a.membership.split.Load() })
	gossip(a, true, other)
	until(t, "it is not apart", func() bool { return !a.membership.split.Load() })
	if a.Belongs() {
		t.Error("it is a member without a confirmation")
	}
	// A member that is refused at its address is dead: the witness is not called.
	a.membership.linkTo(other.ID).dead.Store(true)
	gossip(a, false, other)
	until(t, "it serves alone again", serves)
	if a.membership.split.Load() {
		t.Error("apart from the dead")
	}
}

// Of any two components exactly one serves.
func TestComponentsOutrank(t *testing.T) {
	sides := []Component{{1, "a"}, {1, "b"}, {2, "a"}, {2, "c"}, {3, "b"}, {0, "a"}, {0, "b"}}
	for _, s := range sides {
		for _, o := range sides {
			if s != o && s.Outranks(o) == o.Outranks(s) || s == o && s.Outranks(o) {
				t.Errorf("%+v and %+v", s, o)
			}
		}
	}
	if !sides[2].Outranks(sides[1]) || !sides[0].Outranks(sides[1]) || !sides[4].Outranks(sides[2]) {
		t.Error("the larger one, then the one with the least id")
	}
}

// When a member comes back, persisted actors are activated again, since the member may have acted. Other actors keep
// their state, which no row has.
func TestReturnedMemberReactivatesActors(t *testing.T) {
	rows, memory := newCast(), newCast()
	a, err := New(Options{GossipAddr: porttest.Free(t), ActorAddr: porttest.Free(t), Version: "test", Log: quietly()})
	storetest.Must(t, err)
	a.Register(Kind{Name: "player", Rows: true, New: func() actor.Actor { return &player{c: rows} }},
		Kind{Name: "counter", New: func() actor.Actor { return &player{c: memory} }})
	storetest.Must(t, a.Start())
	t.Cleanup(func() { a.Stop(t.Context()) })
	other := unreachableMember(t)
	gossip(a, true, other)
	until(t, "it is a member", func() bool { return len(a.membership.ring.Load().seats) == 2 })
	gossip(a, false, other)
	until(t, "it is gone", func() bool { return len(a.membership.ring.Load().seats) == 1 })
	a.membership.mu.Lock()
	a.membership.pastRings = nil // long ago
	a.membership.mu.Unlock()
	for _, kind := range []string{"player", "counter"} {
		for i := range 50 {
			c, err := a.membership.slot(identity{kind, string(rune('a' + i))})
			if err != nil || c == nil {
				t.Fatal(err)
			}
		}
	}
	epoch := a.membership.epoch.Load()
	gossip(a, true, other)
	until(t, "it is back", func() bool {
		return len(a.membership.ring.Load().seats) == 2 && a.membership.epoch.Load() > epoch
	})
	left := map[string]int{}
	until(t, "moved actors, and actors in rows, are gone", func() bool {
		clear(left)
		moved := 0
		a.membership.each(func(c *activationSlot) {
			left[c.key.kind]++
			if !a.membership.owns(c.key) {
				moved++
			}
		})
		return moved == 0 && left["player"] == 0
	})
	if left["counter"] == 0 {
		t.Errorf("left are %v", left)
	}
}

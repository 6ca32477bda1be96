package cluster

import (
	"bufio"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"castellan/internal/porttest"
)

// If one node cannot reach a member and another node has met it, it is a member for both. Their rings are the same, as
// when the connection between two of three nodes is broken.
func TestMemberOfOneIsMemberOfAll(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	together(t, a, b)
	l := listen(t)
	shy := Member{ID: l.Addr().String() + "~1", Address: l.Addr().String()}
	go func() { // it greets only a
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			hello, _, err := readFrame(bufio.NewReader(conn), nil)
			if err != nil || hello.id != a.Address() {
				conn.Close()
				continue
			}
			conn.Write((&frame{op: opHello, id: shy.ID}).append(nil))
		}
	}()
	gossip(b, true, shy)
	until(t, "b has heard of it", func() bool { return b.Unmet() == 1 })
	gossip(a, true, shy)
	until(t, "it is a member for both", func() bool {
		return a.membership.ring.Load().has(shy.ID) && b.membership.ring.Load().has(shy.ID)
	})
	if b.membership.linkTo(shy.ID).met.Load() {
		t.Error("b has met it")
	}
}

// vouchedFor adds a member that accepts connections and never speaks: n cannot reach it, and another member has met it.
func vouchedFor(t *testing.T, n *Node) Member {
	t.Helper()
	l := listen(t)
	m := Member{ID: l.Addr().String() + "~1", Address: l.Addr().String()}
	gossip(n, true, m)
	until(t, "it is heard of", func() bool { return n.Unmet() > 0 })
	n.membership.mu.Lock()
	n.membership.links[m.ID].taken = true
	n.membership.mu.Unlock()
	until(t, "it is a member", func() bool { return n.membership.ring.Load().has(m.ID) })
	return m
}

// A starting node that meets no node of the gossip cannot be sure that it is alone. It calls the witness, without
// weight, and serves if there is no other component.
func TestNewcomerWithoutContactWaits(t *testing.T) {
	c, keys := newCast(), testKeys(t)
	silent := listen(t)
	seed := forge(t, keys, Member{ID: silent.Addr().String() + "~1~keys", Address: silent.Addr().String()})
	n, err := New(Options{GossipAddr: porttest.Free(t), ActorAddr: porttest.Free(t), Keys: keys, Log: quietly(),
		Join: []string{seed}})
	if err != nil {
		t.Fatal(err)
	}
	n.Register(Kind{Name: "player", New: func() actor.Actor { return &player{c: c} }})
	var nobody atomic.Bool
	var asked atomic.Int32
	n.OnNetworkSplit(func(_ context.Context, side Component) (bool, error) {
		asked.Add(1)
		if side != (Component{0, n.Address()}) {
			t.Errorf("asked for %+v", side)
		}
		return !nobody.Load(), nil
	})
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Stop(context.Background()) })
	until(t, "it asks", func() bool { return asked.Load() > 1 })
	if _, err := n.membership.slot(identity{"player", "x"}); n.Belongs() || !errors.Is(err, errElsewhere) {
		t.Errorf("it serves without knowing the members: %v", err)
	}
	nobody.Store(true)
	until(t, "it serves alone", n.Belongs)
	if side, _ := n.Component(); side.Members != 1 {
		t.Errorf("then it is %+v", side)
	}
}

// When a node has started, every member has it, including the members that it did not join through, which normally
// learn of it later.
func TestStartedNodesAreKnown(t *testing.T) {
	c, keys := newCast(), testKeys(t)
	a := member(t, c, keys)
	all := []*Node{a}
	for range 3 {
		began := time.Now()
		n := member(t, c, keys, a)
		took := time.Since(began)
		for _, o := range all {
			if _, known := (*o.membership.known.Load())[n.Address()]; !known && took < time.Second {
				t.Errorf("%s does not know %s, which has started in %v", o.Address(), n.Address(), took)
			}
		}
		t.Logf("%d members, started in %v", len(all)+1, took)
		all = append(all, n)
	}
	together(t, all...)
}

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// idsOf returns some identities that a node owns. They must not confuse the names of activations.
func idsOf(n *Node, count int) (ids []string) {
	for i := 0; len(ids) < count; i++ {
		if id := fmt.Sprint("id/$-", i); n.membership.owns(identity{"player", id}) {
			ids = append(ids, id)
		}
	}
	return ids
}

// A member that the gossip gives up and hears again at once, as on a starved machine, keeps its actors while it
// answers. A member that does not come back is given up.
func TestEvictedAndBackMovesNothing(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	together(t, a, b)
	ids := idsOf(b, 20)
	for _, id := range ids {
		if _, err := tell(t.Context(), a, id, ""); err != nil {
			t.Fatal(err)
		}
	}
	var moves atomic.Int64
	a.OnMove(func(func(kind, id string) bool) { moves.Add(1) })
	until(t, "b answers", func() bool {
		a.membership.mu.Lock()
		defer a.membership.mu.Unlock()
		return a.membership.links[b.Address()].answersNow()
	})
	text, err := json.Marshal(meta{Actor: b.membership.self.Address})
	if err != nil {
		t.Fatal(err)
	}
	said := &memberlist.Node{Name: b.Address(), Meta: text}
	for range 5 {
		(*events)(a.membership).NotifyLeave(said)
		seen := a.membership.rebuilds.Load()
		until(t, "the ring is rebuilt", func() bool { return a.membership.rebuilds.Load() > seen+1 })
		(*events)(a.membership).NotifyJoin(said)
		for _, id := range ids {
			if got, err := tell(t.Context(), a, id, ""); err != nil || got != b.Address() {
				t.Fatalf("%s answers at %s, %v", id, got, err)
			}
		}
	}
	if n := moves.Load(); n != 0 {
		t.Errorf("the ring changed %d times", n)
	}
	c.mu.Lock()
	for _, id := range ids {
		if c.births[id] != 1 {
			t.Errorf("%s was activated %d times", id, c.births[id])
		}
	}
	c.mu.Unlock()
	began := time.Now()
	(*events)(a.membership).NotifyLeave(said)
	until(t, "it is given up", func() bool { return !a.membership.ring.Load().has(b.Address()) })
	if took := time.Since(began); took < doubtTime {
		t.Errorf("given up after %v", took)
	}
	// A member that announces its leave, and one that does not answer, is removed at once.
	(*events)(a.membership).NotifyJoin(said)
	silent := vouchedFor(t, a)
	(*events)(a.membership).NotifyLeave(&memberlist.Node{Name: silent.ID})
	a.membership.mu.Lock()
	_, known := a.membership.peers[silent.ID]
	a.membership.mu.Unlock()
	if known {
		t.Error("who does not answer stays")
	}
}

// A member that refuses, because its mailboxes are full or it has no lease, stays a member: its pings are answered
// outside the queues.
func TestRefusalsEvictNoMember(t *testing.T) {
	c := newCast()
	a := member(t, c, nil)
	b := member(t, c, nil, a)
	together(t, a, b)
	id := idsOf(b, 1)[0]
	if _, err := tell(t.Context(), a, id, ""); err != nil {
		t.Fatal(err)
	}
	slot := b.membership.n.find(identity{"player", id})
	slot.state.Add(maxWaiting) // the maximum of waiting calls
	var moves, busy atomic.Int64
	a.OnMove(func(func(kind, id string) bool) { moves.Add(1) })
	lapses := b.drops.Load()
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for end := time.Now().Add(4 * unreachableAfter); time.Now().Before(end); {
				if _, err := tell(t.Context(), a, id, ""); errors.Is(err, ErrBusy) {
					busy.Add(1)
				} else {
					t.Errorf("%v", err)
					return
				}
			}
		})
	}
	work.Wait()
	slot.state.Add(-maxWaiting)
	a.membership.mu.Lock()
	answers := a.membership.links[b.Address()].answersNow()
	a.membership.mu.Unlock()
	if busy.Load() < 100 || !answers || moves.Load() > 0 || b.drops.Load() != lapses {
		t.Errorf("%d refusals; it answers: %v, %d changes of the ring, %d lapses", busy.Load(), answers, moves.Load(),
			b.drops.Load()-lapses)
	}
	if got, err := tell(t.Context(), a, id, ""); err != nil || got != b.Address() || c.births[id] != 1 {
		t.Errorf("then %s answers, %v; %d activations", got, err, c.births[id])
	}
}

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"
)

// Status is a node's view of its cluster.
type Status struct {
	Self string
	// Belongs is false while the node's membership is not confirmed; it serves no actors then.
	Belongs     bool
	Members     []MemberStatus
	Activations map[string]int              // of this node, by kind
	Figures     map[string]map[string]int64 // of this node's hosts, by kind
	HandedOver  int64                       // activations that went to other members
	Moved       int64                       // activations created here after others released them
	Lapses      int64                       // times at which everything was dropped
	Pauses      []Pause                     // the last pauses of this node and of the members, newest first
}

// MemberStatus is a member with its share of the identities.
type MemberStatus struct {
	Member
	Share  float64
	Silent time.Duration // since its last sign of life; 0 if it answers
}

// Members returns the members of the cluster, this node included.
func (n *Node) Members() []Member {
	if n.membership == nil {
		return []Member{{ID: n.Address(), Address: n.Address()}}
	}
	return slices.Collect(maps.Values(*n.membership.known.Load()))
}

// Belongs reports whether this node's membership is confirmed; otherwise it serves no actors.
func (n *Node) Belongs() bool { return n.membership == nil || n.membership.holdsLease() }

// HandedOver counts the activations that other members took over.
func (n *Node) HandedOver() int64 { return n.handedOver.Load() }

// Moved counts the activations that this node created after asking former owners to release them.
func (n *Node) Moved() int64 { return n.takenOver.Load() }

// Load describes the activations of one kind on this node.
type Load struct {
	Active    int   // now
	Activated int64 // since the start
	Failed    int64 // panics since the start
	Waiting   int64 // messages in their mailboxes, including the one being handled
	Deepest   int64 // of one mailbox
}

// Loads returns the load of every kind. It visits all activations, so that counting costs nothing when a message is
// sent.
func (n *Node) Loads() map[string]Load {
	loads := make(map[string]Load, len(n.kinds))
	for name, k := range n.kinds {
		l := Load{Activated: k.activated.Load(), Failed: k.failed.Load()}
		if k.host != nil {
			l.Active = k.host.Active()
		}
		loads[name] = l
	}
	for i := range n.shards {
		n.shards[i].mu.RLock()
		for key, slot := range n.shards[i].m {
			l := loads[key.kind]
			l.Active++
			if waits := slot.waiting(); waits > 0 {
				l.Waiting += waits
				l.Deepest = max(l.Deepest, waits)
			}
			loads[key.kind] = l
		}
		n.shards[i].mu.RUnlock()
	}
	return loads
}

// Lapses counts how often all activations were dropped because the node's membership was not confirmed.
func (n *Node) Lapses() int64 { return n.lapses.Load() }

// sample is the number of artificial identities for counting shares.
const sample = 1 << 12

// Status returns the node's view of the cluster. A node without a cluster is its only member.
func (n *Node) Status() Status {
	s := Status{Self: n.Address(), Belongs: n.Belongs(), Activations: map[string]int{},
		Figures:    map[string]map[string]int64{},
		HandedOver: n.HandedOver(), Moved: n.Moved(), Lapses: n.Lapses(), Pauses: n.Pauses()}
	for kind, l := range n.Loads() {
		if l.Active > 0 {
			s.Activations[kind] = l.Active
		}
	}
	for kind, k := range n.kinds {
		if k.host != nil {
			s.Figures[kind] = k.host.Figures()
		}
	}
	ms := n.membership
	if ms == nil {
		s.Members = []MemberStatus{{Member: Member{ID: s.Self, Address: s.Self}, Share: 1}}
		return s
	}
	count, r := map[string]int{}, ms.ring.Load()
	for i := range sample {
		if o := r.owner(identity{"sample", fmt.Sprint(i)}); o != nil {
			count[o.ID]++
		}
	}
	for _, m := range n.Members() {
		s.Members = append(s.Members, MemberStatus{m, float64(count[m.ID]) / sample, ms.silentFor(m.ID)})
	}
	sort.Slice(s.Members, func(i, j int) bool { return s.Members[i].ID < s.Members[j].ID })
	return s
}

// askTimeout bounds AskStatus: a frozen node accepts a connection and answers nothing.
const askTimeout = 2 * time.Second

// AskMembers requests the status of the other members, each for at most a time. Members that do not answer are missing.
func (n *Node) AskMembers(ctx context.Context, within time.Duration) map[string]Status {
	if n.membership == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var mu sync.Mutex
	var asked sync.WaitGroup
	all := map[string]Status{}
	for _, m := range n.Members() {
		if m.ID == n.Address() {
			continue
		}
		asked.Go(func() {
			if s, err := AskStatus(ctx, m.Address, n.membership.o.Keys); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all[m.ID] = s
			}
		})
	}
	asked.Wait()
	return all
}

// AskStatus requests the status of a running node at its actor address, with a node's keys. It takes at most 2 s.
func AskStatus(ctx context.Context, address string, keys *Keys) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ask := func(hello frame, more ...frame) (got frame, err error) {
		conn, err := dial(ctx, keys, address)
		if err != nil {
			return got, err
		}
		defer conn.Close()
		end, _ := ctx.Deadline()
		conn.SetDeadline(end)
		text := hello.append(nil)
		for _, f := range more {
			text = f.append(text)
		}
		if _, err := conn.Write(text); err != nil {
			return got, err
		}
		for range 1 + len(more) {
			if got, _, err = readFrame(conn, nil); err != nil {
				return got, err
			}
		}
		return got, nil
	}
	who, err := ask(frame{op: opHello, id: "status"}) // the node replies with its id, which the next hello must name
	if err != nil {
		return s, err
	}
	got, err := ask(frame{op: opHello, id: "status", kind: who.id}, frame{op: opStatus, req: 1})
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(got.body, &s)
}

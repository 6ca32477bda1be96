package ratesim

import (
	"fmt"

	"castellan/actors/ratelimit/shard"
)

// mostWatched is how many events of the watched key are kept at least.
const mostWatched = 200

// watch records an event of the watched key.
func (w *world) watch(format string, of ...any) {
	if w.watched < 0 {
		return
	}
	if len(w.Watched) == 2*mostWatched {
		w.Watched = append(w.Watched[:0], w.Watched[mostWatched:]...)
	}
	w.Watched = append(w.Watched, fmt.Sprintf("%.6f "+format, append([]any{float64(w.now) / 1e9}, of...)...))
}

// describe describes a message to a shard; "": it matters only if it changes the shard.
func describe(m shard.Message) string {
	switch m := m.(type) {
	case *shard.Decide:
		return fmt.Sprintf("%x for %s, as replica %t, again %t: %d, used %d", m.IDs[0], m.Requester, m.AsReplica, m.Again,
			m.Verdict, m.Standings[0].Used)
	case *shard.Copy:
		return fmt.Sprintf("%x, number %x, as requester %t: %d", m.ID, m.Number, m.AsRequester, m.Reply)
	case *shard.State:
		return fmt.Sprintf("of %s, number %x: %d", m.From, m.State.Number, m.Reply)
	case *shard.Forget:
		return fmt.Sprintf("%x", m.ID)
	case *shard.Pull:
		return fmt.Sprintf("by %s, back %t", m.To, m.Pull.Back)
	case *shard.TakenOver:
		text := fmt.Sprintf("ready %t, done %t:", m.Ready, m.Done)
		for _, x := range m.Found {
			text += fmt.Sprintf(" %s, number %x, partial %t", x.By, x.States[0].Number, x.States[0].Partial)
		}
		return text
	}
	return ""
}

// judge compares what the clients received with what the nodes have counted.
func (w *world) judge() {
	owner := map[int]*node{}
	for _, p := range w.parts {
		owners := 0
		for _, n := range w.nodes {
			if !n.dead && n.shards[p].Owns() {
				owners++
				owner[p] = n
			}
		}
		if owners != 1 || !w.nodes[max(0, owner[p].replica[p])].shards[p].Follows() {
			w.Unsettled++
			delete(owner, p)
		}
	}
	for i := range w.keys {
		k := &w.keys[i]
		over := max(0, k.admitted-w.Limit)
		under := max(0, min(k.asked, w.Limit)-k.admitted-k.lost)
		var differ int64
		if n := owner[k.part]; n != nil {
			counted := n.counted(k)
			over = max(over, k.admitted-counted)
			under = max(under, counted-k.admitted-k.lost)
			if differ = counted - w.nodes[n.replica[k.part]].counted(k); differ != 0 {
				w.Differ++
			}
		}
		if over = max(over, k.short); w.merged[k.part] {
			under = 0 // old admissions may count twice
		}
		if over+under > 0 || differ != 0 {
			w.Wrong = append(w.Wrong, k.name)
		}
		w.Over += over
		w.Under += under
	}
}

// counted returns how many admissions of a key count at this node.
func (n *node) counted(k *key) int64 {
	d := n.demand(k)
	return n.table.At(k.part).Look(&d, k.hash, n.clock()).Used
}

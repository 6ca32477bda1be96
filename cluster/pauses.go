package cluster

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Pause is a time in which a node did not answer: it was stopped, had no processor, or could not be reached.
type Pause struct {
	Member string        // its id; this node's own if this node was stopped
	Began  time.Time     // the last sign of life before it
	Lasted time.Duration // up to 0.2 s more than the node was silent
	Gone   bool          // the member was given up while it was silent
}

const (
	// pingInterval is the time between two pings to a member, and between two rounds of the loop.
	pingInterval = membershipLease / 5
	// leastPause is how long a sign of life must be overdue to be a pause: a silence of 0.5 s after a ping was due.
	leastPause = 500*time.Millisecond + pingInterval
	// keptPauses is how many pauses a node remembers.
	keptPauses = 20
)

// pauses records the pauses of this node and of the members.
type pauses struct {
	log      *slog.Logger
	silences atomic.Int64
	stalls   atomic.Int64
	lastBeat atomic.Int64 // the last round of the loop, by the clock of the membership; 0: none yet
	resumed  atomic.Int64 // when this node last resumed after a stall

	mu   sync.Mutex
	last []Pause // newest first
}

func (p *pauses) add(x Pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = slices.Insert(p.last, 0, x)
	p.last = p.last[:min(len(p.last), keptPauses)]
}

// beat is called in each round of the loop. It records a stall of this node.
func (p *pauses) beat(self string, now int64) {
	before := p.lastBeat.Swap(now)
	if lasted := time.Duration(now - before); before != 0 && lasted > leastPause {
		p.resumed.Store(now)
		p.stalls.Add(1)
		p.log.Warn("cluster: this node was stopped or had no processor", "duration", lasted)
		p.add(Pause{Member: self, Began: time.Now().Add(-lasted), Lasted: lasted})
	}
}

// note records a sign of life of a member or, gone, that it was given up; before is its last sign of life. Time in
// which this node was stopped is no silence of the member.
func (p *pauses) note(member string, before, now int64, gone bool) {
	if lasted := p.silence(before, now); lasted > 0 {
		p.silences.Add(1)
		p.log.Warn("cluster: a member was silent", "member", member, "duration", lasted, "gone", gone)
		p.add(Pause{Member: member, Began: time.Now().Add(-lasted), Lasted: lasted, Gone: gone})
	}
}

// silence returns how long a member has been silent; 0 if that is no pause, or if this node was stopped meanwhile.
func (p *pauses) silence(before, now int64) time.Duration {
	lasted := time.Duration(now - before)
	stalled := p.resumed.Load() > before || time.Duration(now-p.lastBeat.Load()) > leastPause
	if before == 0 || lasted <= leastPause || stalled {
		return 0
	}
	return lasted
}

// Pauses returns the last pauses of this node and of the members, newest first.
func (n *Node) Pauses() []Pause {
	p := &n.pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.last)
}

// Silences counts the pauses of members.
func (n *Node) Silences() int64 { return n.pauses.silences.Load() }

// Stalls counts the pauses of this node.
func (n *Node) Stalls() int64 { return n.pauses.stalls.Load() }

// silentFor returns how long a member has been silent; 0: it answers, or this node was stopped itself.
func (ms *membership) silentFor(id string) time.Duration {
	if l := ms.linkTo(id); l != nil {
		return ms.n.pauses.silence(l.heardAt.Load(), ms.clock())
	}
	return 0
}

// Package shard is the state machine of one partition of the keys of rate limits, on one node. It knows which node may
// decide, what is copied to the replica, and how the partition moves. It has no clock, lock, goroutine, log or network.
//
// The one idea: a Message changes the state of a Shard in place and yields values, the Effects. The same messages in
// the same order give the same state and the same effects, so a simulation can repeat every fault. Package
// actors/ratelimit drives the shards of a node: it holds the lock of the partition, reads the clock and sends what the
// effects name.
//
// Start reading at Shard.Step, then README.md (the phases) and decide.go. Then come copy.go (replication), takeover.go
// and state.go (how a shard moves).
package shard

import (
	"castellan/actors/pb"
	"castellan/domain/guard/ratelimit"
)

// Message is an event of a shard. Its answer, if any, is stored in the message.
type Message interface {
	step(s *Shard, now int64, out *Effects)
}

// Step changes the shard by a message and appends to out what the node must do. now is in nanoseconds, by the clock of
// the windows. Sends are passed on, in order, before the next message of this shard.
func (s *Shard) Step(m Message, now int64, out *Effects) { m.step(s, now, out) }

// Effects are what a node must do after a message. Their order depends on nothing but the messages.
type Effects struct {
	Sends     []Send    // in this order
	Failed    []*Update // whose decisions fail
	AsReplica int64     // decisions in the place of an owner
	Merged    int64     // takeovers in which two members had counted
}

// Send is an update for a replica.
type Send struct {
	To string
	*Update
}

// Place is what the node knows about the members of a shard when a message arrives.
type Place struct {
	Self, Owner, Replica string // members; "": none
	Confirmed            bool   // the node's membership is confirmed, and this is its latest view
	ReplicaSilent        bool   // the owner goes on without its replica
	CaughtUp             bool   // the node is no owner, and no stall has made it miss an update
	Witness              string // a third member, if no replica confirms admissions; "": none
}

// Update is a message to a replica: an admission, or the state of a shard.
type Update struct {
	Part      int
	Number    uint64
	ID        uint64 // the admission's name; 0: none
	Again     bool   // it may have been sent, or requested, before
	TakenBack bool   // the admission was taken back
	Witness   bool   // the receiver is its witness
	Demand    ratelimit.Demand
	Count     int64
	Ahead     int64         // nanoseconds from now to its instant
	Waits     any           // Decide.Waits: it waits for the replica; nil: its client already has the answer
	State     *pb.RateState // instead of a demand
}

func (x *Update) term() uint64 {
	if x.State != nil {
		return termOf(x.State.Number)
	}
	return termOf(x.Number)
}

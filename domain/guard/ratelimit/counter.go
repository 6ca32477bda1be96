package ratelimit

import (
	"context"
	"time"
)

// Counter is the state of a key, as an operator sees it.
type Counter struct {
	Label, Entity string
	Used, Limit   int64 // admissions
	Period        time.Duration
	Reset         time.Duration // until the oldest admission leaves
	Retry         time.Duration // until the next one; 0: now
	Node, Replica string        // members; Replica is "" if there is none
	Phase         string        // of the key's partition at Node
}

// CountersQuery selects counters.
type CountersQuery struct {
	Rules  []CountersRule
	Entity string  // "": all
	Least  float64 // the smallest used share of the limit, from 0 to 1
	Most   int     // at most this many
}

// CountersRule is the quota of a label.
type CountersRule struct {
	Label  string
	Limit  int64
	Period time.Duration
}

// Counters reads and resets the counters of all nodes. It is safe for concurrent use.
type Counters interface {
	// Fullest returns counters with an admission, fullest first, and the members that did not answer within 500 ms.
	Fullest(ctx context.Context, q CountersQuery) (all []Counter, silent []string)
	// Used returns how many admissions of a key count. UNAVAILABLE if its owner does not answer.
	Used(ctx context.Context, k Key) (int64, error)
	// Reset removes the admissions of a key and returns how many counted. Those that a node has reserved for the next
	// tenth of a second stay. The replica has the reset before the call returns. UNAVAILABLE if the owner or its
	// replica does not answer; the key may have been reset.
	Reset(ctx context.Context, k Key) (usedBefore int64, err error)
}

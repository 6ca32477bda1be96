package ratelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/guard/ratelimit"
)

// A turn does not wait, also for a replica or an owner that does not answer: it ends in the instant in which it began.
func TestTurnsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		own, foreign := keyOf("a", "b"), keyOf("b", "c")
		w.freeze("b")
		w.freeze("c")
		host := w.nodes["a"].Hosted().Host
		for _, name := range []string{own, foreign} {
			id := ratelimit.Key{Rule: "r", Name: name}.ID()
			for range 3 {
				for _, m := range []proto.Message{&pb.RateDecide{Limit: 9, PeriodMs: 1000, Cost: 2}, &pb.RatePeek{},
					&pb.RateDecide{Limit: 9, PeriodMs: 1000, Name: 7}, &pb.RatePeek{Limit: 9, PeriodMs: 1000},
					&pb.RateReset{}, &pb.RateTop{}} {
					began := time.Now()
					host.Turn(&cluster.Turn{ID: id, Message: m, From: "c"})
					if waited := time.Since(began); waited > 0 {
						t.Errorf("%T of %s waits for %v", m, id, waited)
					}
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		w.thaw("b", false)
		w.thaw("c", false)
	})
}

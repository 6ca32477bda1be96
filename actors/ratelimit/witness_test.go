package ratelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/kit/storetest"
)

// An admission that only one of owner and replica has survives the loss of that member, whichever node was asked. The
// replica b decides in the place of the stalled owner a, or the owner goes on without its stalled replica.
func TestAdmissionSurvivesWithoutReplica(t *testing.T) {
	for _, stalls := range []string{"a", "b"} {
		lost := map[string]string{"a": "b", "b": "a"}[stalls]
		for _, asked := range []string{lost, "c"} {
			t.Run(stalls+" stalls, asked "+asked, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := together(t)
					defer w.close()
					d := demand("r", keyOf("a", "b"), 10)
					w.freeze(stalls)
					for range 3 {
						if ok, err := w.ask(w.nodes[asked], d); !ok || err != nil {
							t.Error(ok, err)
						}
					}
					w.kill(lost)
					w.thaw(stalls, false)
					if stalls == "a" { // it decides before it has learned of the loss
						if ok, err := w.ask(w.nodes["a"], d); !ok || err != nil {
							t.Error(ok, err)
						}
						storetest.Equal(t, used(t, w.nodes["a"], d), 4, "count at the owner")
					}
					rest := without(three, lost)
					w.see(rest, rest...)
					time.Sleep(time.Second)
					n := used(t, w.nodes["c"], d)
					if ok, err := w.ask(w.nodes["c"], d); !ok || err != nil {
						t.Error(ok, err)
					}
					want := int64(4)
					if stalls == "a" {
						want++
					}
					if n != want-1 || used(t, w.nodes["c"], d) != want {
						t.Errorf("%d count, and after one more %d", n, used(t, w.nodes["c"], d))
					}
				})
			})
		}
	}
}

// A node of an older version keeps nothing as a witness, and requests are decided beside it as before.
func TestOlderNodeIsNoWitness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		c := w.nodes["c"]
		now := c.receiver(updateName)
		c.Serve(updateName, func(from string, question proto.Message, answer func(proto.Message)) {
			q := question.(*pb.RateCopy)
			q.Witness, q.Of = nil, nil
			now(from, q, answer)
		})
		d := demand("r", keyOf("a", "b"), 10)
		w.freeze("a")
		if ok, err := w.ask(w.nodes["b"], d); !ok || err != nil {
			t.Error(ok, err)
		}
		w.kill("b")
		w.thaw("a", false)
		w.see([]string{"a", "c"}, "a", "c")
		time.Sleep(time.Second)
		if ok, err := w.ask(w.nodes["a"], d); !ok || err != nil {
			t.Error(ok, err)
		}
	})
}

package access

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// The bound holds while nodes join and leave and requests go to every node.
func TestPushLimitHoldsInCluster(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, blackbox.Unlimited...)
	demo := c.AddUser("user")
	x, _ := c.Nodes[0].Session(t, demo)
	blackbox.Enroll(t, c.Nodes[0], demo, x, device.ES256, "")
	var sent, begun atomic.Int64
	var wg sync.WaitGroup
	nodes := slices.Clone(c.Nodes)
	for i := range 24 {
		wg.Go(func() {
			if i == 12 {
				nodes[2].Kill()
			}
			f, err := nodes[i%3].TryLogin(demo)
			if err != nil { // from a node that has left, or that waits for the owner's successor
				return
			}
			begun.Add(1)
			if blackbox.Offered(f) {
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	c.Forget(nodes[2])
	c.Join()
	blackbox.Whole(t, c)
	for i := range 6 {
		if blackbox.Offered(c.Nodes[i%3].Login(t, demo)) {
			sent.Add(1)
		}
	}
	if rows := c.Count("push WHERE state = 0"); rows < 1 || rows > 3 || sent.Load() > 3 || begun.Load() < 3 {
		t.Errorf("%d starts, %d with a push, %d in the rows", begun.Load(), sent.Load(), rows)
	}
}

//go:build faults

package main

import (
	"fmt"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// everyFault has other tests meet all faults that they know, too.
const everyFault = true

// slack is 1: the service is held to the times that it promises.
const slack = 1

// The faults of TestClusterFaults on a cluster of five.
func TestFaultsProcesses(t *testing.T) { everything(t, 5, 8) }

// A node is cut off from the others while clients still reach it. It serves nothing
// that the others may own by then, and belongs to the cluster again when it is healed.
// No error tells of the cut: connections stay open, and packets are lost.
func TestFaultsPartition(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			net := blackbox.NewNet(t)
			site := blackbox.NewSite(t, "postgres")
			site.BehindOn(net)
			c := site.Cluster()
			places := map[*blackbox.Node]*blackbox.Place{}
			s := newStorm(t, c, nodes, 8, func() {
				p := net.Place()
				places[c.JoinAt(p)] = p
			})
			for i := range 2 {
				s.phase(t, fmt.Sprint("cut ", i), func() {
					p := places[c.Nodes[i]]
					p.Cut()
					time.Sleep(8 * time.Second)
					p.Heal()
					s.progress(t, 60)
				})
				whole(t, c)
			}
			s.phase(t, "afterwards", func() {})
			s.finish(t)
		})
	}
}

// A mailing to ten thousand, whose owner is killed 25 times.
func TestFaultsMailing(t *testing.T) { aMailingIsKilled(t, 10_000, 25) }

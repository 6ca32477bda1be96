//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// everyFault makes other tests run all their faults, too.
const everyFault = true

const kills, firstStarts = 15, 6

// The faults of TestClusterKeepsAcknowledgedSteps on a cluster of five.
func TestFaultsProcessesOnFiveNodes(t *testing.T) { everything(t, 5, 8) }

// A node is cut off from the others while clients still reach it. It serves no request for keys that the
// others may own by then, and rejoins the cluster after the network recovers. The cut causes no errors:
// connections stay open, and packets are lost.
func TestFaultsNetworkSplit(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			net := blackbox.NewNet(t)
			site := blackbox.NewSite(t, "postgres")
			site.BehindOn(net)
			c := site.Cluster()
			places := map[*blackbox.Node]*blackbox.Namespace{}
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
				blackbox.Whole(t, c)
			}
			s.phase(t, "afterwards", func() {})
			s.finish(t)
		})
	}
}

// The owner of a mailing to ten thousand users is killed 25 times, and other nodes are drained, while new
// nodes join.
func TestFaultsMailingSurvivesKills(t *testing.T) {
	const recipients, kills = 10_000, 25
	t.Parallel()
	c, m := blackbox.ClusterMails(t, recipients, 5*time.Millisecond)
	for i := range kills {
		m.Moves(blackbox.Within(15), fmt.Sprint("mail before kill ", i))
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		victim := m.Owner(c.Nodes)
		if victim == nil {
			victim = c.Nodes[rand.IntN(len(c.Nodes))]
		}
		victim.Kill()
		c.Forget(victim)
		m.Moves(blackbox.Within(15), fmt.Sprint("mail after kill ", i))
		c.Join()
		if i%5 == 4 {
			// A member takes its actors back after two seconds.
			time.Sleep(3 * time.Second)
			leaving := m.Found(c.Nodes)
			leaving.Terminate()
			time.Sleep(100 * time.Millisecond)
			m.Moves(blackbox.Within(1.9), "mail after the drain, and a second of pace")
			c.Forget(leaving)
			c.Join()
		}
	}
	m.Box.Slow(0)
	m.Ends(c.Nodes[0], blackbox.Within(120), kills)
}

package harness

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

func ThreeNodes(t *testing.T, settings ...string) *blackbox.Cluster {
	t.Helper()
	c := blackbox.NewSite(t, "postgres").Set(settings...).Cluster()
	for range 3 {
		c.Join()
	}
	Whole(t, c)
	return c
}

// Whole waits until every node sees every other one.
func Whole(t *testing.T, c *blackbox.Cluster) {
	t.Helper()
	blackbox.Until(t, Within(20), "every node sees the others", func() bool {
		for _, n := range c.Nodes {
			got := c.CommandWith([]string{"CLUSTER_ACTOR_ADDR=" + n.Actors}, "", "cluster", "status")
			if got.Code != 0 || strings.Count(got.Out, " serving ") != len(c.Nodes) {
				return false
			}
		}
		return true
	})
}

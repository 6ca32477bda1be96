package faults

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// A stopped node is seen while it is silent, and leaves a trace on the others and on itself. The command that shows the
// cluster does not wait for it.
func TestPausesAreShown(t *testing.T) {
	t.Parallel()
	c := blackbox.NewSite(t, "postgres").Set("LIMITS_ENABLED=false", "LOG_LEVEL=info").Cluster()
	asked, frozen, third := c.Join(), c.Join(), c.Join()
	blackbox.Whole(t, c)
	boss := blackbox.Admin(t, c.Site, asked)
	type status struct {
		Data struct {
			Node    string
			Lapses  int
			Members []struct {
				Address  string
				SilentMs int
			}
			Pauses []struct {
				Member   string
				LastedMs int
			}
		}
	}
	look := func(n *blackbox.Node) (s status) {
		n.Ok(t, "GET", "/admin/cluster", nil, boss).Read(t, &s)
		return s
	}
	id := look(frozen).Data.Node
	silent := func(n *blackbox.Node) bool {
		for _, m := range look(n).Data.Members {
			if m.SilentMs > 0 {
				return m.Address == frozen.Actors
			}
		}
		return false
	}
	frozen.Freeze()
	blackbox.Until(t, blackbox.Within(20), "the silence is seen", func() bool { return silent(asked) && silent(third) })
	here := []string{"CLUSTER_ACTOR_ADDR=" + asked.Actors}
	got := c.CommandWith(here, "", "cluster", "status")
	frozen.Thaw()
	silences := strings.Count(got.Out, " no answer ") + strings.Count(got.Out, "then given up") // on a slow machine
	if got.Code != 0 || strings.Count(got.Out, " serving ") != 2 || silences != 1 {
		t.Errorf("cluster status beside a stopped node:\n%s", got.Out)
	}
	for _, n := range c.Nodes {
		blackbox.Until(t, blackbox.Within(20), "the pause is shown", func() bool {
			s := look(n)
			for _, p := range s.Data.Pauses {
				if p.Member == id && p.LastedMs > 500 {
					return n != frozen || s.Data.Lapses > 0
				}
			}
			return false
		})
	}
	for n, line := range map[*blackbox.Node]string{asked: "silent", third: "silent",
		frozen: "this node was stopped or had no processor"} {
		if log := n.Log(); !strings.Contains(log, line) || !strings.Contains(log, "duration=") {
			t.Errorf("no line about %q in the log:\n%s", line, log)
		}
	}
	got = c.CommandWith(here, "", "cluster", "status")
	if _, pauses, _ := strings.Cut(got.Out, "last pauses as "); !strings.Contains(pauses, id+"  silent for ") {
		t.Errorf("cluster status after a pause:\n%s", got.Out)
	}
}

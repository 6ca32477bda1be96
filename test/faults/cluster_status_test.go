package faults

import (
	"regexp"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Operators see the members, the shares that they own, the active actors by kind, and the moves when a node
// joined or left.
func TestClusterStatusShowsMembersAndMoves(t *testing.T) {
	t.Parallel()
	c := blackbox.NewSite(t, "postgres").Set("LIMITS_ENABLED=false").Cluster()
	first := c.Join()
	boss, demo := blackbox.Admin(t, c.Site, first), c.Seeded("user")
	type status struct {
		Data struct {
			Node    string
			Belongs bool
			Members []struct {
				Version, Address string
				Limits           *struct{ Owned, Replica, Unsettled int }
			}
			Activations map[string]int
			Moved       *int
			HandedOver  *int
		}
	}
	look := func(n *blackbox.Node) (s status) {
		n.Ok(t, "GET", "/admin/cluster", nil, boss).Read(t, &s)
		return s
	}
	var open []blackbox.Flow
	for range 5 {
		f := first.Login(t, demo)
		first.Complete(t, f, f.Method(t, "SMS"), blackbox.WrongFor(first.Code(t, demo, "SMS"))) // its owner is active
		open = append(open, f)
	}
	if s := look(first); s.Data.Activations["challenge"] < 5 || s.Data.Activations["user"] < 1 || s.Data.Node == "" ||
		!s.Data.Belongs ||
		len(s.Data.Members) != 1 ||
		s.Data.Members[0].Version == "" {
		t.Errorf("a cluster of one: %+v", s)
	}
	second := c.Join()
	blackbox.Until(t, blackbox.Within(20), "both see each other",
		func() bool { return len(look(first).Data.Members) == 2 && len(look(second).Data.Members) == 2 })
	for _, f := range open { // by now half of them live on the second node
		second.Complete(t, f, f.Method(t, "SMS"), "000000")
	}
	for range 20 {
		f := second.Login(t, demo)
		second.Complete(t, f, f.Method(t, "SMS"), blackbox.WrongFor(second.Code(t, demo, "SMS")))
	}
	a, b := look(first), look(second)
	if a.Data.Moved == nil || b.Data.Moved == nil || *b.Data.Moved == 0 || a.Data.HandedOver == nil {
		t.Errorf("after a join: %+v and %+v", a, b)
	}
	blackbox.Until(t, blackbox.Within(20), "the shards of rate limits are settled", func() bool {
		owned, replicas, unsettled := 0, 0, 0
		for _, m := range look(second).Data.Members {
			if m.Limits == nil {
				return false
			}
			owned, replicas, unsettled = owned+m.Limits.Owned, replicas+m.Limits.Replica, unsettled+m.Limits.Unsettled
		}
		return owned == 1024 && replicas == 1024 && unsettled == 0
	})
	got := c.CommandWith([]string{"CLUSTER_ACTOR_ADDR=" + first.Actors}, "", "cluster", "status")
	shards := regexp.MustCompile(`(?m) (\d+) +(\d+) +0 +0 +\d+ +\d+ +\d+$`).FindAllStringSubmatch(got.Out, -1)
	if lines := strings.Split(strings.TrimSpace(got.Out), "\n"); got.Code != 0 || len(lines) != 3 ||
		!regexp.MustCompile(`^MEMBER +VERSION +STATE +SHARE +CHALLENGE +(\S+ +)*USER +`+
			`SHARDS +COPIES +UNSETTLED +FOR SILENT +MOVED +HANDED OVER +LAPSES$`).MatchString(lines[0]) ||
		len(shards) != 2 || shards[0][1] != shards[1][2] || shards[1][1] != shards[0][2] ||
		strings.Count(got.Out, " serving ") != 2 || strings.Count(got.Out, " %") != 2 {
		t.Errorf("cluster status:\n%s", got.Out)
	}
}

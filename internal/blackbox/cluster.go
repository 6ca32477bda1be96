package blackbox

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"castellan/internal/porttest"
)

// Cluster is a site of several nodes that form a cluster.
type Cluster struct {
	*Site
	Nodes  []*Node
	Ever   []*Node // including the forgotten ones
	gossip []string
	made   int
}

// Cluster gives the site, which uses PostgreSQL, the keys of a cluster; nothing runs yet.
func (s *Site) Cluster() *Cluster {
	s.t.Helper()
	keys := filepath.Join(filepath.Dir(s.Dir), "cluster")
	s.Succeeds("", "cluster", "init", keys)
	s.Set("CLUSTER_TLS_DIR="+keys, "KEYS_MASTER_FILE="+filepath.Join(s.Dir, "master.key"))
	return &Cluster{Site: s}
}

// Join starts one more node and adds it to Nodes.
func (c *Cluster) Join(settings ...string) *Node {
	c.t.Helper()
	return c.join(exec.Command(c.program(), "serve"), porttest.Free(c.Site.t), porttest.Free(c.Site.t), settings)
}

// JoinAt is Join for a node in a separate place. Clients reach it from within.
func (c *Cluster) JoinAt(p *Namespace, settings ...string) *Node {
	c.t.Helper()
	n := c.join(p.command(c.program(), "serve"), p.Addr+":7946", p.Addr+":7947", settings)
	n.http.Transport.(*http.Transport).DialContext = p.dial
	return n
}

func (c *Cluster) join(cmd *exec.Cmd, gossip, actor string, settings []string) *Node {
	c.t.Helper()
	more := append([]string{"CLUSTER_GOSSIP_ADDR=" + gossip, "CLUSTER_ACTOR_ADDR=" + actor,
		"CLUSTER_JOIN=" + strings.Join(c.gossip, ",")}, settings...)
	if c.made > 0 { // the first one has the site's folder, with the seeded logins
		more = append(more, "DATA_DIR="+fmt.Sprint(c.Dir, "-", c.made))
	}
	c.made++
	c.gossip = append(c.gossip, gossip)
	n := c.begin(cmd, more)
	n.Ready()
	n.Actors = actor
	c.Nodes, c.Ever = append(c.Nodes, n), append(c.Ever, n)
	return n
}

// Forget removes a node from Nodes.
func (c *Cluster) Forget(n *Node) {
	for i, o := range c.Nodes {
		if o == n {
			c.Nodes = append(c.Nodes[:i:i], c.Nodes[i+1:]...)
			return
		}
	}
}

func ThreeNodes(t *testing.T, settings ...string) *Cluster {
	t.Helper()
	c := NewSite(t, "postgres").Set(settings...).Cluster()
	for range 3 {
		c.Join()
	}
	Whole(t, c)
	return c
}

// Whole waits until every node sees every other one.
func Whole(t *testing.T, c *Cluster) {
	t.Helper()
	Until(t, Within(20), "every node sees the others", func() bool {
		for _, n := range c.Nodes {
			got := c.CommandWith([]string{"CLUSTER_ACTOR_ADDR=" + n.Actors}, "", "cluster", "status")
			if got.Code != 0 || strings.Count(got.Out, " serving ") != len(c.Nodes) {
				return false
			}
		}
		return true
	})
}

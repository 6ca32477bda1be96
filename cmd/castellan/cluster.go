package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"castellan/cluster"
)

type clusterCmd struct {
	Init   clusterInitCmd   `cmd:"" help:"Make the keys of a new cluster."`
	Cert   clusterCertCmd   `cmd:"" help:"Make the keys of one more node."`
	Status clusterStatusCmd `cmd:"" help:"Ask the running nodes who belongs and what lives where."`
}

type clusterInitCmd struct {
	Dir string `arg:"" help:"Folder to make."`
}

func (clusterInitCmd) Help() string {
	return `The folder gets a certificate authority (ca.crt, ca.key), a node's certificate
(node.crt, node.key) and the key of the gossip (gossip.key). Nodes are told of it
by CASTELLAN_CLUSTER_TLS_DIR and need no ca.key: keep that elsewhere, and give
each node a folder of its own by "castellan cluster cert".`
}

func (c clusterInitCmd) Run(e *env) error {
	if err := cluster.InitKeys(c.Dir); err != nil {
		return err
	}
	_, err := fmt.Fprintf(
		e.out,
		"made the keys of a cluster in %s; keep %s to yourself\n",
		c.Dir,
		filepath.Join(c.Dir, "ca.key"),
	)
	return err
}

type clusterCertCmd struct {
	From string `arg:"" help:"Folder made by \"castellan cluster init\"." type:"existingdir"`
	Dir  string `arg:"" help:"Folder to make, for another node."`
}

func (c clusterCertCmd) Run(e *env) error {
	if err := cluster.NodeKeys(c.From, c.Dir); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.out, "made the keys of a node in", c.Dir)
	return err
}

type clusterStatusCmd struct{}

func (clusterStatusCmd) Help() string {
	return `Run it with a node's settings (CASTELLAN_CLUSTER_ACTOR_ADDR, and
CASTELLAN_CLUSTER_TLS_DIR where there are keys). The node there is asked for the
members, and each of them for what lives on it.`
}

func (clusterStatusCmd) Run(e *env) error {
	c := e.cfg.Cluster
	if c.ActorAddr == "" {
		return errors.New("cluster.actor_addr (CASTELLAN_CLUSTER_ACTOR_ADDR) says which node to ask; it is not set")
	}
	var keys *cluster.Keys
	if c.TLSDir != "" {
		var err error
		if keys, err = cluster.LoadKeys(c.TLSDir); err != nil {
			return err
		}
	}
	asked, err := cluster.AskStatus(e.ctx, c.ActorAddr, keys)
	if err != nil {
		return fmt.Errorf("ask the node at %s: %w", c.ActorAddr, err)
	}
	told := make([]cluster.Status, len(asked.Members)) // by each for itself; Self is "" where none came
	kinds := map[string]bool{}
	for i, m := range asked.Members {
		if told[i], err = cluster.AskStatus(e.ctx, m.Address, keys); err != nil {
			told[i] = cluster.Status{}
		}
		for kind := range told[i].Activations {
			kinds[kind] = true
		}
	}
	columns := slices.Sorted(maps.Keys(kinds))
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "MEMBER\tVERSION\tSTATE\tSHARE\t")
	for _, kind := range columns {
		fmt.Fprintf(w, "%s\t", strings.ToUpper(kind))
	}
	fmt.Fprintln(w, "MOVED\tHANDED OVER\tLAPSES")
	for i, m := range asked.Members {
		s, state := told[i], "serving"
		switch {
		case s.Self == "":
			state = "no answer"
		case !s.Belongs:
			state = "unsure"
		case m.Leaving:
			state = "leaving"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f %%\t", m.Address, m.Version, state, 100*m.Share)
		if s.Self == "" {
			fmt.Fprintln(w, strings.Repeat("\t", len(columns)+2))
			continue
		}
		for _, kind := range columns {
			fmt.Fprintf(w, "%d\t", s.Activations[kind])
		}
		fmt.Fprintf(w, "%d\t%d\t%d\n", s.Moved, s.HandedOver, s.Lapses)
	}
	return w.Flush()
}

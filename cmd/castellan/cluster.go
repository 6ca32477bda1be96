package main

import (
	"errors"
	"fmt"
	"path/filepath"
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
	_, err := fmt.Fprintf(e.out, "made the keys of a cluster in %s; keep %s to yourself\n", c.Dir, filepath.Join(c.Dir, "ca.key"))
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
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MEMBER\tVERSION\tSTATE\tSHARE\tCHALLENGES\tUSERS\tHANDED OVER\tLAPSES")
	for _, m := range asked.Members {
		state := "serving"
		if m.Leaving {
			state = "leaving"
		}
		fmt.Fprintf(w, "%s\t%s\t", m.Address, m.Version)
		s, err := cluster.AskStatus(e.ctx, m.Address, keys)
		if err != nil {
			fmt.Fprintf(w, "no answer\t%.1f %%\t\t\t\t\n", 100*m.Share)
			continue
		}
		if !s.Belongs {
			state = "unsure"
		}
		fmt.Fprintf(w, "%s\t%.1f %%\t%d\t%d\t%d\t%d\n", state, 100*m.Share, s.Activations["challenge"], s.Activations["user"], s.HandedOver, s.Lapses)
	}
	return w.Flush()
}

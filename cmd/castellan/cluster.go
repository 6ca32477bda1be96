package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	clusterlimit "castellan/actors/ratelimit"
	"castellan/cluster"
)

type clusterCmd struct {
	Init   clusterInitCmd   `cmd:"" help:"Create the keys of a new cluster."`
	Cert   clusterCertCmd   `cmd:"" help:"Create the keys of another node."`
	Renew  clusterRenewCmd  `cmd:"" help:"Renew the certificate of a node for one year."`
	Revoke clusterRevokeCmd `cmd:"" help:"Add a node's certificate to lists of revoked certificates."`
	Status clusterStatusCmd `cmd:"" help:"Print the members of the cluster and their actors."`
}

type clusterInitCmd struct {
	Dir  string `arg:"" help:"New folder."`
	Name string `help:"Name of the node in its certificate (default: the name of the folder)."`
}

func (clusterInitCmd) Help() string {
	return `Creates a certificate authority (ca.crt, ca.key), the certificate of a node (node.crt,
node.key) and the gossip key (gossip.key). Set CASTELLAN_CLUSTER_TLS_DIR of the node to
this folder. Nodes do not need ca.key: move it to another place. Create a separate
folder for each other node with "castellan cluster cert".`
}

func (c clusterInitCmd) Run(e *env) error {
	return e.printf(cluster.InitKeys(c.Dir, c.Name), "created the keys of a cluster in %s; keep %s secret\n", c.Dir,
		filepath.Join(c.Dir, "ca.key"))
}

type clusterCertCmd struct {
	From string `arg:"" help:"Folder made by \"castellan cluster init\"." type:"existingdir"`
	Dir  string `arg:"" help:"New folder, for the other node."`
	Name string `help:"Name of the node in its certificate (default: the name of the folder)."`
}

func (clusterCertCmd) Help() string {
	return `Creates a certificate that is valid for one year and contains the name of its node in
the URI castellan://member/NAME. Use a different name for each node, so that a single
node can be revoked.`
}

func (c clusterCertCmd) Run(e *env) error {
	return e.print(cluster.NodeKeys(c.From, c.Dir, c.Name), "created the keys of a node in", c.Dir)
}

type clusterRenewCmd struct {
	From string `arg:"" help:"Folder with ca.crt and ca.key." type:"existingdir"`
	Dir  string `arg:"" help:"Folder of the node." type:"existingdir"`
	Name string `help:"Name of a node without a name (default: the name of the folder)."`
}

func (clusterRenewCmd) Help() string {
	return `Replaces node.crt and node.key; the name stays. A running node reloads the new files. A
certificate of an old version without a name gets one: renew it before the node is
upgraded.`
}

func (c clusterRenewCmd) Run(e *env) error {
	if err := cluster.RenewKeys(c.From, c.Dir, c.Name); err != nil {
		return err
	}
	serial, name, ends, err := cluster.Certificate(c.Dir)
	return e.printf(err, "%s: certificate %s of %s, valid until %s\n", c.Dir, serial, name, ends.Format(time.DateOnly))
}

type clusterRevokeCmd struct {
	Dir   string   `arg:"" help:"Folder of the node to revoke." type:"existingdir"`
	Lists []string `arg:"" help:"Files \"revoked\" in the folders of the other nodes."`
}

func (clusterRevokeCmd) Help() string {
	return `Adds a line to each list: the serial number of node.crt in hex and, after a #, the name
of the node. Running nodes reload the list and close the connections of that node.`
}

func (c clusterRevokeCmd) Run(e *env) error {
	serial, name, ends, err := cluster.Certificate(c.Dir)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s # %s, until %s\n", serial, name, ends.Format(time.DateOnly))
	for _, list := range c.Lists {
		f, err := os.OpenFile(list, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(line)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return e.printf(nil, "revoked %s", line)
}

type clusterStatusCmd struct{}

func (clusterStatusCmd) Help() string {
	return `Run it with the settings of a node (CASTELLAN_CLUSTER_ACTOR_ADDR, and
CASTELLAN_CLUSTER_TLS_DIR if there are keys). It queries that node for the members, and
each member for its actors, for at most 2 s. It also prints the last pauses: times in which
the queried node or a member did not answer.

RATE counts the counters of rate limits. They are in 1024 shards. A member decides about its
SHARDS and keeps COPIES of others. It is about to take over or give away the UNSETTLED ones.
FOR SILENT counts the requests that it decided for a silent member.`
}

func (clusterStatusCmd) Run(e *env) error {
	c := e.cfg.Cluster
	if c.ActorAddr == "" {
		return errors.New("cluster.actor_addr (CASTELLAN_CLUSTER_ACTOR_ADDR) is not set: it selects the node to query")
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
		return fmt.Errorf("query the node at %s: %w", c.ActorAddr, err)
	}
	told := make([]cluster.Status, len(asked.Members)) // by each node for itself; Self is "" if there is none
	kinds := map[string]bool{}
	var answers sync.WaitGroup
	for i, m := range asked.Members {
		answers.Go(func() {
			if s, err := cluster.AskStatus(e.ctx, m.Address, keys); err == nil {
				told[i] = s
			}
		})
	}
	answers.Wait()
	for _, s := range told {
		for kind := range s.Activations {
			kinds[kind] = true
		}
	}
	columns := slices.Sorted(maps.Keys(kinds))
	w := e.table()
	fmt.Fprint(w, "MEMBER\tVERSION\tSTATE\tSHARE\t")
	for _, kind := range columns {
		fmt.Fprintf(w, "%s\t", strings.ToUpper(kind))
	}
	fmt.Fprintln(w, "SHARDS\tCOPIES\tUNSETTLED\tFOR SILENT\tMOVED\tHANDED OVER\tLAPSES")
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
			fmt.Fprintln(w, strings.Repeat("\t", len(columns)+6))
			continue
		}
		for _, kind := range columns {
			fmt.Fprintf(w, "%d\t", s.Activations[kind])
		}
		f := s.Figures[clusterlimit.KeyKind]
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\n", f["owned"], f["replica"], f["unsettled"], f["as_replica"], s.Moved,
			s.HandedOver, s.Lapses)
	}
	if err := w.Flush(); err != nil || len(asked.Pauses) == 0 {
		return err
	}
	fmt.Fprintf(e.out, "\nlast pauses as %s saw them:\n", c.ActorAddr)
	for _, p := range asked.Pauses {
		end := ""
		if p.Gone {
			end = ", then given up"
		}
		fmt.Fprintf(w, "%s\t%s\tsilent for %v%s\n", p.Began.UTC().Format(time.RFC3339), p.Member,
			p.Lasted.Round(time.Millisecond), end)
	}
	return w.Flush()
}

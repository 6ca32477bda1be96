package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"castellan/cluster"
)

type clusterCmd struct {
	Init   clusterInitCmd   `cmd:"" help:"Make the keys of a new cluster."`
	Cert   clusterCertCmd   `cmd:"" help:"Make the keys of one more node."`
	Renew  clusterRenewCmd  `cmd:"" help:"Replace the certificate of a node, which lasts a year."`
	Revoke clusterRevokeCmd `cmd:"" help:"Put a node's certificate on lists of what counts no longer."`
	Status clusterStatusCmd `cmd:"" help:"Ask the running nodes who belongs and what lives where."`
}

type clusterInitCmd struct {
	Dir  string `arg:"" help:"Folder to make."`
	Name string `help:"Name of the node in its certificate; without it, that of the folder."`
}

func (clusterInitCmd) Help() string {
	return `The folder gets a certificate authority (ca.crt, ca.key), a node's certificate
(node.crt, node.key) and the key of the gossip (gossip.key). Nodes are told of it
by CASTELLAN_CLUSTER_TLS_DIR and need no ca.key: keep that elsewhere, and give
each node a folder of its own by "castellan cluster cert".`
}

func (c clusterInitCmd) Run(e *env) error {
	if err := cluster.InitKeys(c.Dir, c.Name); err != nil {
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
	Name string `help:"Name of the node in its certificate; without it, that of the folder."`
}

func (clusterCertCmd) Help() string {
	return `The certificate names its node in the URI castellan://member/NAME, and lasts a
year. Give each node a name of its own: then one can be revoked alone.`
}

func (c clusterCertCmd) Run(e *env) error {
	if err := cluster.NodeKeys(c.From, c.Dir, c.Name); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.out, "made the keys of a node in", c.Dir)
	return err
}

type clusterRenewCmd struct {
	From string `arg:"" help:"Folder with ca.crt and ca.key." type:"existingdir"`
	Dir  string `arg:"" help:"Folder of the node." type:"existingdir"`
	Name string `help:"Name of a node whose certificate has none yet; without it, that of the folder."`
}

func (clusterRenewCmd) Help() string {
	return `node.crt and node.key are replaced; the name stays. A running node that is given
the new files reads them by itself. A certificate that was made before they had
names gets one: do this before such a node is upgraded.`
}

func (c clusterRenewCmd) Run(e *env) error {
	if err := cluster.RenewKeys(c.From, c.Dir, c.Name); err != nil {
		return err
	}
	serial, name, ends, err := cluster.Certificate(c.Dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s: certificate %s of %s, until %s\n", c.Dir, serial, name, ends.Format(time.DateOnly))
	return err
}

type clusterRevokeCmd struct {
	Dir   string   `arg:"" help:"Folder of the node that is to be a member no longer." type:"existingdir"`
	Lists []string `arg:"" help:"Files \"revoked\" in the folders of the other nodes."`
}

func (clusterRevokeCmd) Help() string {
	return `A line is added to each list: the serial number of node.crt in hex, and after a #
whose it is. Running nodes read the list by themselves and close the connections
of that node.`
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
	_, err = fmt.Fprint(e.out, "revoked ", line)
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
	told := make([]cluster.Status, len(asked.Members)) // by each node for itself; Self is "" if there is none
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

package app

import (
	"log/slog"

	"castellan/cluster"
	"castellan/config"
	httpcluster "castellan/http/cluster"
)

// newNode makes the node that the actors run on: alone, or one of a cluster. It
// reaches nobody before it is started.
func newNode(cfg config.Cluster, version string, log *slog.Logger) (*cluster.Node, error) {
	if cfg.GossipAddr == "" {
		return cluster.Solo(log), nil
	}
	o := cluster.Options{GossipAddr: cfg.GossipAddr, ActorAddr: cfg.ActorAddr, Join: cfg.Join, Version: version, Log: log}
	if cfg.TLSDir != "" {
		keys, err := cluster.LoadKeys(cfg.TLSDir)
		if err != nil {
			return nil, err
		}
		o.Keys = keys
	}
	return cluster.New(o)
}

// clusterStatus is what an administrator is shown of the node's cluster.
func clusterStatus(n *cluster.Node) httpcluster.Status {
	s := n.Status()
	out := httpcluster.Status{Node: s.Self, Belongs: s.Belongs, Activations: s.Activations, Moved: s.Moved, HandedOver: s.HandedOver, Lapses: s.Lapses}
	for _, m := range s.Members {
		out.Members = append(out.Members, httpcluster.Member{ID: m.ID, Address: m.Address, Version: m.Version, Leaving: m.Leaving, Share: m.Share})
	}
	return out
}

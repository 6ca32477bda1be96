package app

import (
	"log/slog"

	"castellan/cluster"
	"castellan/config"
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

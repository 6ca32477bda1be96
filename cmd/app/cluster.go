package app

import (
	"log/slog"

	"castellan/actors/ratelimit"
	"castellan/cluster"
	"castellan/config"
	"castellan/domain/firewall"
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

// counts are the windows of rate limits.
type counts interface {
	firewall.Counter
	Sweep()
	Keys() int
}

// count makes the windows: of this node, or of all together.
func (v *service) count() {
	if v.cfg.Cluster.GossipAddr == "" {
		v.counts = firewall.NewLocal(nil)
		return
	}
	v.rates = ratelimit.New(v.node, nil, v.log)
	v.counts = v.rates
}

// rateStats are zero on a node that is alone.
func (v *service) rateStats() ratelimit.Stats {
	if v.rates == nil {
		return ratelimit.Stats{}
	}
	return v.rates.Stats()
}

// clusterStatus is what an administrator is shown of the node's cluster.
func (v *service) clusterStatus() httpcluster.Status {
	s := v.node.Status()
	if n := v.counts.Keys(); n > 0 {
		s.Activations[ratelimit.Kind] = n
	}
	out := httpcluster.Status{Node: s.Self, Belongs: s.Belongs, Activations: s.Activations, Moved: s.Moved, HandedOver: s.HandedOver, Lapses: s.Lapses}
	for _, m := range s.Members {
		out.Members = append(out.Members, httpcluster.Member{ID: m.ID, Address: m.Address, Version: m.Version, Leaving: m.Leaving, Share: m.Share})
	}
	return out
}

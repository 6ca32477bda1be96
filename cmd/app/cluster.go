package app

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"time"

	clusterlimit "castellan/actors/ratelimit"
	"castellan/cluster"
	"castellan/cmd/app/metrics"
	"castellan/cmd/app/pause"
	"castellan/cmd/app/witness"
	"castellan/config"
	"castellan/domain/kit/change"
	httpcluster "castellan/http/cluster"
	"castellan/http/rest"
)

// newNode creates the node that runs the actors: alone, or as a member of a cluster. It opens no connection before it
// is started.
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

// cluster builds the node that runs the actors, alone or in a cluster, and its checks among other nodes.
func (s *service) cluster() (err error) {
	if s.node, err = newNode(s.cfg.Cluster, s.o.Version, s.log); err != nil {
		return err
	}
	if s.tracer != nil {
		s.node.Trace(s.tracer)
	}
	s.join(part{
		groups:  groups(httpcluster.Group{Status: s.clusterStatus}),
		metrics: s.clusterMetrics,
	})
	if s.cfg.Cluster.GossipAddr == "" {
		return nil
	}
	s.pauses = pause.New()
	s.DB.Admit(s.pauses.Check)
	s.node.Admit(s.pauses.Check)
	w := witness.New(s.DB, s.node)
	s.node.OnNetworkSplit(w.Ask)
	s.feed.On(change.Cluster, each(w.Apply))
	return nil
}

// askMembers bounds the wait for the figures of the other members.
const askMembers = 500 * time.Millisecond

// clusterStatus returns the status of the node's cluster for an administrator.
func (s *service) clusterStatus(ctx context.Context) httpcluster.Status {
	at, others := s.node.Status(), s.node.AskMembers(ctx, askMembers)
	out := httpcluster.Status{Node: at.Self, Belongs: at.Belongs, Activations: at.Activations, Moved: at.Moved,
		HandedOver: at.HandedOver, Lapses: at.Lapses, Pauses: []httpcluster.Pause{}}
	for _, m := range at.Members {
		of, its := at, httpcluster.Member{ID: m.ID, Address: m.Address, Version: m.Version,
			Leaving: m.Leaving, Share: m.Share, Silent: m.Silent.Milliseconds()}
		if m.ID != at.Self {
			of = others[m.ID]
		}
		if f := of.Figures[clusterlimit.KeyKind]; f != nil { // earlier versions have none
			its.Limits = &httpcluster.Limits{Keys: of.Activations[clusterlimit.KeyKind], Owned: f["owned"],
				Replica: f["replica"], Unsettled: f["unsettled"], AsReplica: f["as_replica"]}
		}
		out.Members = append(out.Members, its)
	}
	for _, p := range at.Pauses {
		out.Pauses = append(out.Pauses, httpcluster.Pause{Member: p.Member, Began: rest.Time{Time: p.Began},
			Lasted: p.Lasted.Milliseconds(), Gone: p.Gone})
	}
	return out
}

func (s *service) clusterMetrics(m *metrics.Registry) {
	m.Scrape(s.scrapeActors)
	m.Gauge("castellan_actors_calls", "Calls waiting for an actor.",
		func() float64 { return float64(s.node.Calls()) })
	m.Gauge("castellan_cluster_members", "Members of the cluster as this node sees it.",
		func() float64 { return float64(len(s.node.Members())) })
	m.Gauge("castellan_cluster_unmet_members", "Nodes known by gossip that have not presented a certificate.",
		func() float64 { return float64(s.node.Unmet()) })
	m.Counter("castellan_cluster_turned_away_total", "Connections of non-members to the actor port.",
		s.node.TurnedAway)
	m.Gauge("castellan_cluster_certificate_left_seconds", "Time until this node's certificate expires; +Inf without one.",
		func() float64 {
			if ends := s.node.CertificateEnds(); !ends.IsZero() {
				return time.Until(ends).Seconds()
			}
			return math.Inf(1)
		})
	m.Flag("castellan_cluster_belongs", "1 if this node knows that it is a member.", s.node.Belongs)
	m.Counter("castellan_cluster_handed_over_total", "Activations taken over by other members.", s.node.HandedOver)
	m.Counter("castellan_cluster_moved_total", "Activations taken over from their previous owners.",
		s.node.Moved)
	m.Counter("castellan_cluster_lapses_total",
		"Number of times all activations were dropped because the node lost its membership.", s.node.Lapses)
	m.Counter("castellan_cluster_silences_total", "Number of times a member was silent for over 0.5 s.", s.node.Silences)
	m.Counter("castellan_cluster_stalls_total", "Number of times this node was stopped for over 0.5 s.", s.node.Stalls)
}

// scrapeActors reads the load of every kind of actor, all at one time.
func (s *service) scrapeActors(to metrics.Samples) {
	for kind, l := range s.node.Loads() {
		to.Gauge("castellan_actors_active", "Activations on this node.", float64(l.Active), "kind", kind)
		to.Counter("castellan_actors_activated_total", "Activations created on this node.", float64(l.Activated), "kind",
			kind)
		to.Counter("castellan_actors_failed_total", "Activations ended by a panic.", float64(l.Failed), "kind", kind)
		to.Gauge("castellan_actors_mailbox_messages", "Messages in the mailboxes of actors, including those in progress.",
			float64(l.Waiting), "kind", kind)
		to.Gauge("castellan_actors_mailbox_deepest_messages", "Messages in the fullest mailbox.", float64(l.Deepest),
			"kind", kind)
	}
}

// mixed reports whether a node of another release is in the cluster, as during a rolling upgrade.
func (s *service) mixed() bool {
	return slices.ContainsFunc(s.node.Members(), func(m cluster.Member) bool {
		return m.Version != "" && m.Version != s.o.Version
	})
}

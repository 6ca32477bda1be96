package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	clusterlimit "castellan/actors/ratelimit"
	"castellan/cluster"
	"castellan/cmd/app/control"
	"castellan/cmd/app/metrics"
	"castellan/config"
	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	httpapi "castellan/http"
	httpfirewall "castellan/http/guard/firewall"
	"castellan/outbound/geoip"
	"castellan/persistence/guard"
	"castellan/persistence/kit"
)

// limiter keeps the windows of rate limits.
type limiter interface {
	ratelimit.Limiter
	Sweep()
	Bound(keysPerRule int)
	Keys() int
}

// sweepEvery is how often expired counters are removed.
const sweepEvery = time.Second

// firewall builds the rules of the firewall, the windows of its rate limits and the lookup of countries.
func (s *service) firewall() (err error) {
	cfg, keys, below := s.cfg.Firewall, cluster.Kind{}, ratelimit.Limiter(nil)
	if s.cfg.Cluster.GossipAddr == "" {
		table := ratelimit.NewTable(nil)
		s.limiter, keys, below = table, clusterlimit.HostedBy(table, s.node.Address), table
	} else {
		s.clusterLimiter = clusterlimit.New(s.node, nil, s.log)
		s.limiter, keys = s.clusterLimiter, s.clusterLimiter.Hosted()
		below = clusterlimit.Costed{Limiter: s.clusterLimiter, Node: s.node}
	}
	s.node.Register(keys)
	s.limiter.Bound(cfg.KeysPerRule)
	s.limits = ratelimit.NewBounded(below, func(name string) string { return s.Ring.StableHash("rate limit", name) },
		time.Now, s.log)
	if s.locator, err = Locator(s.cfg); err != nil {
		return err
	}
	store, known := guard.NewFirewall(s.DB), Resources(s.cfg)
	live := firewall.NewCache(store, cfg.AppID, time.Now)
	s.evaluator = &firewall.Evaluator{Rules: live.Current, Limiter: s.limits, Bypass: cfg.BypassCIDRs, Now: time.Now}
	admin := &firewall.Admin{Store: store, Changes: s.changes(change.Firewall, live), App: cfg.AppID,
		Bypass: cfg.BypassCIDRs, Known: known, InForce: rulesInForce(s.feed, live)}
	counting := &firewall.Counting{Rules: live.Current, Changes: s.changes("", nil),
		Counters: &clusterlimit.Counters{Node: s.node, Kind: keys}}
	s.join(part{
		groups: groups(httpfirewall.Group{Admin: admin},
			httpfirewall.Explain{Evaluator: s.evaluator, Known: known, CountryOf: s.locator.Country,
				Audit: kit.NewAudit(s.DB), App: cfg.AppID},
			httpfirewall.Counters{Counting: counting, Country: s.locator.Country}, httpfirewall.Limits{Evaluator: s.evaluator}),
		snapshots: []snapshot{copyOf(live, change.Firewall)},
		tasks: []task{{every: sweepEvery, do: func(context.Context) error {
			s.limiter.Sweep()
			return nil
		}}},
		loops: []loop{{run: func(ctx context.Context, _ func(error)) {
			control.Listen(ctx, s.cfg.DataDir, s.log, func(ctx context.Context, q control.Request) control.Answer {
				return commanded(ctx, counting, q)
			})
		}}},
		metrics: s.firewallMetrics,
	})
	if file, ok := s.locator.(*geoip.File); ok {
		s.join(part{tasks: []task{{5 * time.Second, "the file of countries could not be reloaded", s.refresh(file)}}})
	}
	return nil
}

// commanded answers a command of the operator.
func commanded(ctx context.Context, c *firewall.Counting, q control.Request) (a control.Answer) {
	var err error
	switch {
	case q.Counters != nil:
		a.Counters, a.Silent = c.List(ctx, *q.Counters)
	case q.Reset != nil:
		a.UsedBefore, err = c.Reset(ctx, audit.Operator, q.Reset.Label, q.Reset.Entity, q.Reset.Reason)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		a.Error = f.Message
	} else if err != nil {
		a.Error = "the counter could not be reset"
	}
	return a
}

// rulesInForce returns the rules that this node had received before the call.
func rulesInForce(feed *change.Reader, live *firewall.Cache) func(context.Context) ([]firewall.Rule, error) {
	return func(ctx context.Context) ([]firewall.Rule, error) {
		if err := feed.Poll(ctx); err != nil {
			return nil, fault.New(fault.Unavailable, "the rules cannot be read at the moment").After(time.Second)
		}
		return live.Current().Rules(), nil
	}
}

// Resources are the endpoints of this program, as rules of the firewall name them.
func Resources(cfg config.Config) firewall.Resources {
	var keys []string
	for _, e := range httpapi.Table() {
		keys = append(keys, e.Method+" "+e.Path)
	}
	return firewall.NewResources(cfg.HTTP.BasePath, keys)
}

// Locator finds countries with the operator's file, or else with the program's table.
func Locator(c config.Config) (geo.Locator, error) {
	if c.Geo.MMDBFile == "" {
		return geoip.Embedded{}, nil
	}
	f, err := geoip.Open(c.Geo.MMDBFile)
	if err != nil {
		return nil, fmt.Errorf("geo.mmdb_file: %w", err)
	}
	return f, nil
}

// refresh reads the file of countries again after it was replaced.
func (s *service) refresh(file *geoip.File) func(context.Context) error {
	return func(context.Context) error {
		changed, err := file.Refresh()
		if changed {
			s.log.Info("the file of countries was reloaded", "file", s.cfg.Geo.MMDBFile)
		}
		return err
	}
}

// rateStats are zero on a node without a cluster.
func (s *service) rateStats() clusterlimit.Stats {
	if s.clusterLimiter == nil {
		return clusterlimit.Stats{}
	}
	return s.clusterLimiter.Stats()
}

func (s *service) firewallMetrics(m *metrics.Registry) {
	m.Counters("castellan_firewall_decisions_total",
		"Requests by decision of the firewall; unsure means that a counter was not available.", "outcome",
		map[string]func() int64{"allow": s.evaluator.Allowed.Load, "deny": s.evaluator.Denied.Load,
			"rate_limited": s.evaluator.Limited.Load, "unsure": s.evaluator.Unsure.Load})
	m.Counter("castellan_firewall_dry_run_total",
		"Requests that only a rule on trial (dryRun) would have refused; also counted as decisions.",
		s.evaluator.Tried.Load)
	m.Gauge("castellan_firewall_keys", "Counters of rate limits in memory.",
		func() float64 { return float64(s.limiter.Keys()) })
	m.PerRule("castellan_firewall_shared_keys_total",
		"Requests counted under a shared key because a rule has reached firewall.keys_per_rule.",
		s.limits.SharedByRule())
	m.Scrape(s.scrapeLimits)
}

// scrapeLimits reads the counters of rate limits, all at one time.
func (s *service) scrapeLimits(to metrics.Samples) {
	count := func(name, help string, n int64) { to.Counter("castellan_ratelimit_"+name, help, float64(n)) }
	r := s.rateStats()
	count("here_total", "Decisions about this node's requests by its own windows.", r.Here)
	count("elsewhere_total", "Decisions about this node's requests that involved other members.", r.Elsewhere)
	count("cached_total", "Requests refused by a cached refusal.", r.Cached)
	count("reserved_total", "Requests allowed by a quota that their owners had granted in advance.", r.Reserved)
	count("as_replica_total", "Admissions counted by a replica because the owner was unreachable.", r.AsReplica)
	count("shared_total", "Requests decided by this node's share of a limit because no other node answered.", r.Shared)
	count("ask_batches_total", "Batches sent to the owners of windows.", r.Batches)
	count("asked_total", "Requests in those batches.", r.Asked)
	count("copy_batches_total", "Batches sent to the replicas of owners.", r.Copies)
	count("copied_total", "Admissions in those batches.", r.Copied)
	count("taken_over_total", "Partitions of windows taken over from other members.", r.Pulled)
	count("merged_total", "Partitions of windows that two members had counted; some requests may count twice.", r.Merged)
}

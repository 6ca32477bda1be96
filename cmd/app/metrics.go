package app

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"castellan/actors/ratelimit"
	"castellan/http/rest"
)

// metrics is what the node tells Prometheus, on a listener of its own. Labels
// are route templates and codes, never paths, names or addresses.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
}

func newMetrics(s *service) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "castellan_http_requests_total", Help: "Finished requests by route template, status and error code."},
			[]string{"route", "status", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "castellan_http_request_seconds", Help: "Time to answer, by route template.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30}}, []string{"route"}),
	}
	m.registry.MustRegister(m.requests, m.latency, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, read func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
	}
	counter := func(name, help string, read func() int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
	}
	db := s.vault.DB
	counter("castellan_commit_batches_total", "Transactions of gathered units.", db.Batches)
	counter("castellan_commit_units_total", "Units of work made durable.", db.Units)
	gauge("castellan_commit_waiting", "Units that wait for the writer.", func() float64 { return float64(db.Waiting()) })
	counter("castellan_outbox_sent_total", "Messages delivered.", s.dispatch.Sent.Load)
	counter("castellan_outbox_failed_total", "Messages given up.", s.dispatch.Failed.Load)
	counter("castellan_outbox_gone_total", "Messages given up because their destination is no more.", s.dispatch.Gone.Load)
	counter("castellan_outbox_retried_total", "Deliveries that will be tried again.", s.dispatch.Retried.Load)
	gauge("castellan_outbox_waiting", "Messages that wait for a worker.", func() float64 { return float64(s.dispatch.Waiting()) })
	gauge("castellan_actors_active", "Activations on this node.", func() float64 { return float64(s.node.Live()) })
	gauge("castellan_actors_calls", "Calls that wait for an actor.", func() float64 { return float64(s.node.Calls()) })
	gauge("castellan_cluster_members", "Members of the cluster in the eyes of this node.", func() float64 { return float64(len(s.node.Members())) })
	gauge("castellan_cluster_belongs", "1 while this node knows that it is a member.", func() float64 {
		if s.node.Belongs() {
			return 1
		}
		return 0
	})
	counter("castellan_cluster_handed_over_total", "Activations that other members took over.", s.node.HandedOver)
	counter("castellan_cluster_lapses_total", "Times at which all activations were dropped because the node did not know that it belongs.", s.node.Lapses)
	gauge("castellan_sockets_open", "Open sockets.", func() float64 { return float64(s.hub.Live()) })
	gauge("castellan_password_waiting", "Logins that wait for a hash slot.", func() float64 { return float64(s.hasher.Waiting()) })
	counter("castellan_firewall_denied_total", "Requests refused by a blacklist or a whitelist_force.", s.wall.Denied.Load)
	counter("castellan_firewall_limited_total", "Requests refused by a rate limit.", s.wall.Limited.Load)
	counter("castellan_firewall_dry_run_total", "Requests that only a rule on trial (dryRun) would have refused.", s.wall.Tried.Load)
	gauge("castellan_firewall_keys", "Counters of rate limits in memory.", func() float64 { return float64(s.counts.Keys()) })
	rate := func(name, help string, read func(ratelimit.Stats) int64) {
		counter("castellan_ratelimit_"+name, help, func() int64 { return read(s.rateStats()) })
	}
	rate("here_total", "Decisions of this node's requests by its own windows.", func(r ratelimit.Stats) int64 { return r.Here })
	rate("elsewhere_total", "Decisions of this node's requests that other members took part in.", func(r ratelimit.Stats) int64 { return r.Elsewhere })
	rate("remembered_total", "Requests refused by a refusal that was still known here.", func(r ratelimit.Stats) int64 { return r.Cached })
	rate("standin_total", "Admissions counted in the place of a silent owner.", func(r ratelimit.Stats) int64 { return r.Stood })
	rate("shared_total", "Requests decided within this node's share of a limit, because nobody answered.", func(r ratelimit.Stats) int64 { return r.Shared })
	rate("ask_batches_total", "Batches sent to the owners of windows.", func(r ratelimit.Stats) int64 { return r.Batches })
	rate("asked_total", "Requests in those batches.", func(r ratelimit.Stats) int64 { return r.Asked })
	rate("copy_batches_total", "Batches sent to the stand-ins of owners.", func(r ratelimit.Stats) int64 { return r.Copies })
	rate("copied_total", "Admissions in those batches.", func(r ratelimit.Stats) int64 { return r.Copied })
	rate("taken_over_total", "Partitions of windows taken over from other members.", func(r ratelimit.Stats) int64 { return r.Pulled })
	gauge("castellan_feed_fresh", "1 while the change feed is read in time.", func() float64 {
		if s.feed.Fresh() {
			return 1
		}
		return 0
	})
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "castellan_build_info", Help: "The running version.",
		ConstLabels: prometheus.Labels{"version": s.o.Version, "commit": s.o.Commit}}, func() float64 { return 1 }))
	return m
}

func (m *metrics) observe(a rest.Answered) {
	m.requests.WithLabelValues(a.Key, strconv.Itoa(a.Status), string(a.Code)).Inc()
	m.latency.WithLabelValues(a.Key).Observe(a.Took.Seconds())
}

// listen serves /metrics; nil when it is off.
func (m *metrics) listen(addr string) (*http.Server, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	go func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the metrics listener failed", "err", err)
		}
	}()
	return s, nil
}

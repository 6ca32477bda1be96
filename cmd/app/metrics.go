package app

import (
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"castellan/actors/ratelimit"
	"castellan/http/edge"
	"castellan/persistence"
)

// metrics is what the node tells Prometheus, on a listener of its own. Labels
// are route templates, codes and other words of the program, never paths,
// names or addresses: what a client sends makes no new series.
//
// A part that counts for itself is read when Prometheus asks: it exports an
// atomic number, and gets a line in one of the methods that newMetrics calls,
// with counter, gauge or, for several numbers of one name, counters. A part
// that tells of events gets a histogram.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec

	mu     sync.Mutex // for adding to series
	series atomic.Pointer[map[answerKind]*answers]
}

func newMetrics(s *service) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "castellan_build_info", Help: "The running version.",
		ConstLabels: prometheus.Labels{"version": s.o.Version, "commit": s.o.Commit, "go": runtime.Version()}}, func() float64 { return 1 }))
	m.traffic(s)
	m.security(s)
	m.rates(s)
	m.messages(s)
	m.cluster(s)
	m.database(s)
	return m
}

func (m *metrics) traffic(s *service) {
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "castellan_http_requests_total",
		Help: "Finished requests by method, route template (* for none), class of the status and error code."}, []string{"method", "route", "status", "code"})
	m.latency = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "castellan_http_request_duration_seconds", Help: "Time to answer, by method and route template.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30}}, []string{"method", "route"})
	m.series.Store(&map[answerKind]*answers{})
	m.registry.MustRegister(m.requests, m.latency)
	m.gauge("castellan_http_requests_in_flight", "Requests being served.", func() float64 { return float64(s.server.InFlight()) })
	m.gauge("castellan_sockets_open", "Open sockets.", func() float64 { return float64(s.hub.Live()) })
}

func (m *metrics) security(s *service) {
	m.counters("castellan_firewall_decisions_total", "Requests by what the firewall made of them; unsure is a counter that could not tell.", "outcome", map[string]func() int64{
		"allow": s.wall.Allowed.Load, "deny": s.wall.Denied.Load, "rate_limited": s.wall.Limited.Load, "unsure": s.wall.Unsure.Load})
	m.counter("castellan_firewall_dry_run_total", "Requests that only a rule on trial (dryRun) would have refused; they are among the decisions too.", s.wall.Tried.Load)
	m.gauge("castellan_firewall_keys", "Counters of rate limits in memory.", func() float64 { return float64(s.counts.Keys()) })
	m.counter("castellan_challenges_started_total", "Challenges that were started.", s.tally.started.Load)
	ended := map[string]func() int64{}
	for outcome, n := range s.tally.ended {
		ended[outcome] = n.Load
	}
	m.counters("castellan_challenges_ended_total", "Challenges that ended otherwise than by time.", "outcome", ended)
	m.gauge("castellan_password_hash_slots", "Password hashes that may run at once.", func() float64 { return float64(s.hasher.Slots()) })
	m.gauge("castellan_password_hashing", "Password hashes that run.", func() float64 { return float64(s.hasher.Running()) })
	m.gauge("castellan_password_waiting", "Logins that wait for a hash slot.", func() float64 { return float64(s.hasher.Waiting()) })
	m.counter("castellan_password_refused_total", "Logins refused because no hash slot was free in time.", s.hasher.Refused)
	m.flag("castellan_feed_fresh", "1 while the change feed is read in time.", s.feed.Fresh)
}

// rates stay at zero on a node that is alone.
func (m *metrics) rates(s *service) {
	rate := func(name, help string, read func(ratelimit.Stats) int64) {
		m.counter("castellan_ratelimit_"+name, help, func() int64 { return read(s.rateStats()) })
	}
	rate("here_total", "Decisions of this node's requests by its own windows.", func(r ratelimit.Stats) int64 { return r.Here })
	rate("elsewhere_total", "Decisions of this node's requests that other members took part in.", func(r ratelimit.Stats) int64 { return r.Elsewhere })
	rate("remembered_total", "Requests refused by a refusal that was still known here.", func(r ratelimit.Stats) int64 { return r.Cached })
	rate("leased_total", "Requests let in by what their owners had counted beforehand.", func(r ratelimit.Stats) int64 { return r.Leased })
	rate("standin_total", "Admissions counted in the place of a silent owner.", func(r ratelimit.Stats) int64 { return r.Stood })
	rate("shared_total", "Requests decided within this node's share of a limit, because nobody answered.", func(r ratelimit.Stats) int64 { return r.Shared })
	rate("ask_batches_total", "Batches sent to the owners of windows.", func(r ratelimit.Stats) int64 { return r.Batches })
	rate("asked_total", "Requests in those batches.", func(r ratelimit.Stats) int64 { return r.Asked })
	rate("copy_batches_total", "Batches sent to the stand-ins of owners.", func(r ratelimit.Stats) int64 { return r.Copies })
	rate("copied_total", "Admissions in those batches.", func(r ratelimit.Stats) int64 { return r.Copied })
	rate("taken_over_total", "Partitions of windows taken over from other members.", func(r ratelimit.Stats) int64 { return r.Pulled })
	rate("added_up_total", "Partitions of windows in which two members had counted, so that some requests may count twice.", func(r ratelimit.Stats) int64 { return r.Merged })
}

func (m *metrics) messages(s *service) {
	m.counter("castellan_outbox_sent_total", "Messages delivered.", s.dispatch.Sent.Load)
	m.counter("castellan_outbox_failed_total", "Messages given up.", s.dispatch.Failed.Load)
	m.counter("castellan_outbox_gone_total", "Messages given up because their destination is no more.", s.dispatch.Gone.Load)
	m.counter("castellan_outbox_retried_total", "Deliveries that will be tried again.", s.dispatch.Retried.Load)
	m.counter("castellan_outbox_discarded_total", "Messages that were not to be sent: over a cap, or to nobody.", s.tally.discarded.Load)
	m.gauge("castellan_outbox_waiting", "Messages that wait for a worker of this node.", func() float64 { return float64(s.dispatch.Waiting()) })
	m.gauge("castellan_outbox_queued", "Messages in the database that are not delivered yet, of all nodes.", func() float64 { return float64(s.backlog.queued.Load()) })
	m.gauge("castellan_outbox_oldest_age_seconds", "Age of the oldest message that is not delivered yet, of all nodes.", func() float64 { return s.backlog.age(time.Now()) })
}

func (m *metrics) cluster(s *service) {
	m.registry.MustRegister(actorLoads{s.node.Loads})
	m.gauge("castellan_actors_calls", "Calls that wait for an actor.", func() float64 { return float64(s.node.Calls()) })
	m.gauge("castellan_cluster_members", "Members of the cluster in the eyes of this node.", func() float64 { return float64(len(s.node.Members())) })
	m.flag("castellan_cluster_belongs", "1 while this node knows that it is a member.", s.node.Belongs)
	m.counter("castellan_cluster_handed_over_total", "Activations that other members took over.", s.node.HandedOver)
	m.counter("castellan_cluster_moved_total", "Activations made here after members that owned them before let go.", s.node.Moved)
	m.counter("castellan_cluster_lapses_total", "Times at which all activations were dropped because the node did not know that it belongs.", s.node.Lapses)
}

func (m *metrics) database(s *service) {
	db := s.vault.DB
	for name, pool := range db.Pools() {
		m.registry.MustRegister(collectors.NewDBStatsCollector(pool, name))
	}
	m.counter("castellan_commit_batches_total", "Transactions of gathered units.", db.Batches)
	m.counter("castellan_commit_units_total", "Units of work made durable.", db.Units)
	m.gauge("castellan_commit_waiting", "Units that wait for the writer.", func() float64 { return float64(db.Waiting()) })
	statements := prometheus.NewCounter(prometheus.CounterOpts{Name: "castellan_commit_statements_total", Help: "Statements of these transactions; one for many rows counts once."})
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "castellan_commit_batch_units", Help: "Units gathered in a transaction.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "castellan_commit_duration_seconds", Help: "Time of a transaction of gathered units, flush of the disk included.",
		Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}})
	m.registry.MustRegister(statements, size, took)
	db.OnCommit(func(c persistence.Committed) {
		statements.Add(float64(c.Statements))
		size.Observe(float64(c.Units))
		took.Observe(c.Took.Seconds())
	})
}

func (m *metrics) gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// flag is a gauge of 0 or 1.
func (m *metrics) flag(name, help string, read func() bool) {
	m.gauge(name, help, func() float64 {
		if read() {
			return 1
		}
		return 0
	})
}

func (m *metrics) counter(name, help string, read func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
}

// counters are those of one name, told apart by a label.
func (m *metrics) counters(name, help, label string, reads map[string]func() int64) {
	for value, read := range reads {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: value}},
			func() float64 { return float64(read()) }))
	}
}

// answerKind is what requests are told apart by: as many as the program has
// routes, statuses and codes, however clients ask.
type answerKind struct {
	key    string
	status int
	code   string
}

type answers struct {
	count   prometheus.Counter
	latency prometheus.Observer
}

// observe is on the path of every request: it finds its series without a lock
// and without making anything, once a request of that kind was seen.
func (m *metrics) observe(a edge.Answered) {
	kind := answerKind{a.Key, a.Status, string(a.Code)}
	found := (*m.series.Load())[kind]
	if found == nil {
		found = m.add(kind)
	}
	found.count.Inc()
	found.latency.Observe(a.Took.Seconds())
}

func (m *metrics) add(kind answerKind) *answers {
	method, route, _ := strings.Cut(kind.key, " ")
	made := &answers{m.requests.WithLabelValues(method, route, strconv.Itoa(kind.status/100)+"xx", kind.code), m.latency.WithLabelValues(method, route)}
	m.mu.Lock()
	defer m.mu.Unlock()
	next := maps.Clone(*m.series.Load())
	next[kind] = made
	m.series.Store(&next)
	return made
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

// Package metrics counts what a node does, for Prometheus.
//
// The one idea: a part counts for itself, and is read when Prometheus scrapes.
//
// Start reading at Registry; Committer counts the ends of challenges and jobs.
package metrics

import (
	"errors"
	"iter"
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

	"castellan/http/edge"
)

// Registry serves the node's Prometheus metrics on a separate listener. Labels are route templates, codes, other words
// of the program and labels of firewall rules, never paths, names or addresses: a client cannot create new series.
//
// A part counts for itself and is read when Prometheus scrapes. It exports atomic numbers, and its declaration
// (part.metrics) names them with Counter, Gauge or, for several numbers under one name, Counters. A part with events
// registers a histogram.
type Registry struct {
	*prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec

	mu     sync.Mutex // for adding to series
	series atomic.Pointer[map[answerKind]*answers]
}

// New returns a registry with the metrics of the process, of the given version and commit, and of its requests.
func New(version, commit string) *Registry {
	m := &Registry{Registry: prometheus.NewRegistry()}
	m.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	labels := prometheus.Labels{"version": version, "commit": commit, "go": runtime.Version()}
	m.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "castellan_build_info",
		Help: "The running version.", ConstLabels: labels}, func() float64 { return 1 }))
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "castellan_http_requests_total",
		Help: "Finished requests by method, route template (* for none), class of the status and error code."},
		[]string{"method", "route", "status", "code"})
	m.latency = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "castellan_http_request_duration_seconds",
		Help:    "Response time, by method and route template.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 30}}, []string{"method", "route"})
	m.series.Store(&map[answerKind]*answers{})
	m.MustRegister(m.requests, m.latency)
	return m
}

// Gauge adds a number that rises and falls.
func (m *Registry) Gauge(name, help string, read func() float64) {
	m.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Info adds a constant gauge of 1 whose label has the value.
func (m *Registry) Info(name, help, label, value string) {
	m.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help,
		ConstLabels: prometheus.Labels{label: value}}, func() float64 { return 1 }))
}

// Flag adds a gauge of 0 or 1.
func (m *Registry) Flag(name, help string, read func() bool) {
	m.Gauge(name, help, func() float64 {
		if read() {
			return 1
		}
		return 0
	})
}

// Counter adds a number that only rises.
func (m *Registry) Counter(name, help string, read func() int64) {
	m.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
		func() float64 { return float64(read()) }))
}

// Counters adds counters under one name, distinguished by a label.
func (m *Registry) Counters(name, help, label string, reads map[string]func() int64) {
	for value, read := range reads {
		m.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help,
			ConstLabels: prometheus.Labels{label: value}},
			func() float64 { return float64(read()) }))
	}
}

// PerRule adds a counter for each rate limit of the firewall, from its first count on.
func (m *Registry) PerRule(name, help string, read iter.Seq2[string, int64]) {
	m.Scrape(func(to Samples) {
		sums := map[string]int64{} // two series of one name would fail the whole scrape
		for rule, n := range read {
			sums[strings.TrimSpace(rule)] += n
		}
		for rule, n := range sums {
			to.Counter(name, help, float64(n), "rule", rule)
		}
	})
}

// Scrape adds metrics that are read together, at each scrape.
func (m *Registry) Scrape(read func(to Samples)) { m.MustRegister(scrape(read)) }

// Samples receives the metrics of a scrape.
type Samples chan<- prometheus.Metric

// Gauge adds a number that rises and falls. labels are names, each with its value.
func (s Samples) Gauge(name, help string, value float64, labels ...string) {
	s.add(prometheus.GaugeValue, name, help, value, labels)
}

// Counter adds a number that only rises.
func (s Samples) Counter(name, help string, value float64, labels ...string) {
	s.add(prometheus.CounterValue, name, help, value, labels)
}

func (s Samples) add(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	named := prometheus.Labels{}
	for i := 0; i < len(labels); i += 2 {
		named[labels[i]] = labels[i+1]
	}
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, named), kind, value)
}

// scrape is a collector that does not describe its metrics in advance.
type scrape func(Samples)

func (scrape) Describe(chan<- *prometheus.Desc) {}

func (s scrape) Collect(to chan<- prometheus.Metric) { s(to) }

// answerKind distinguishes requests by route, status and code: their number is bounded, however clients call.
type answerKind struct {
	key    string
	status int
	code   string
}

type answers struct {
	count   prometheus.Counter
	latency prometheus.Observer
}

// Observe is on the path of every request. After the first request of a kind it finds its series without a lock and
// without an allocation.
func (m *Registry) Observe(a edge.Answered) {
	kind := answerKind{a.Key, a.Status, string(a.Code)}
	found := (*m.series.Load())[kind]
	if found == nil {
		found = m.add(kind)
	}
	found.count.Inc()
	found.latency.Observe(a.Took.Seconds())
}

func (m *Registry) add(kind answerKind) *answers {
	method, route, _ := strings.Cut(kind.key, " ")
	made := &answers{m.requests.WithLabelValues(method, route, strconv.Itoa(kind.status/100)+"xx", kind.code),
		m.latency.WithLabelValues(method, route)}
	m.mu.Lock()
	defer m.mu.Unlock()
	next := maps.Clone(*m.series.Load())
	next[kind] = made
	m.series.Store(&next)
	return made
}

// Listen serves /metrics and the health checks; nil if it is off.
func (m *Registry) Listen(addr string, health http.Handler) (*http.Server, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}))
	mux.Handle("/health/", health)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	go func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the metrics listener failed", "err", err)
		}
	}()
	return s, nil
}

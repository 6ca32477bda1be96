package office

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"

	"castellan/domain/account/password/argon2id"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// All metrics follow the conventions of Prometheus, and count events correctly.
func TestMetricsFollowConventionsAndCount(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		addr := porttest.Free(t)
		n := s.Start("METRICS_ADDR="+addr, "MFA_CHALLENGE_ATTEMPTS=3")
		boss, demo := blackbox.Admin(t, s, n), s.Seeded("user")
		f := n.Login(t, demo)
		for range 3 {
			n.Complete(t, f, f.Method(t, "SMS"), blackbox.WrongFor(n.Code(t, demo, "SMS")))
		}
		socket := n.Socket(t, n.Login(t, demo))
		defer socket.Close()
		blackbox.Rule(t, n, boss, "nobody", "blacklist", map[string]any{"targetResources": []string{"GET " +
			blackbox.KeysPath}})
		n.Do(t, "GET", blackbox.KeysPath, nil, nil).Is(t, 403, "ACCESS_DENIED")
		n.Do(t, "GET", "/auth/sessions", nil, nil).Is(t, 401, "UNAUTHENTICATED")

		problems := storetest.Value(promlint.New(bytes.NewReader(blackbox.Exported(t, addr))).Lint())(t)
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "castellan_") { // the others belong to the runtime and the pools
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
		got := blackbox.Scrape(t, addr)
		for want, at := range map[string]float64{
			"completed": blackbox.Value(got, "castellan_challenges_ended_total", "outcome=completed"),
			"locked":    blackbox.Value(got, "castellan_challenges_ended_total", "outcome=locked"),
			"deny":      blackbox.Value(got, "castellan_firewall_decisions_total", "outcome=deny"),
			"sockets":   blackbox.Value(got, "castellan_sockets_open"),
			"refused": blackbox.Value(got, "castellan_http_requests_total", "method=GET", "route=/auth/sessions", "status=4xx",
				"code=UNAUTHENTICATED"),
		} {
			storetest.Equal(t, at, 1, want, "1")
		}
		seeds := blackbox.Value(got, "castellan_commit_functions_total", "write=user.Add") +
			blackbox.Value(got, "castellan_commit_functions_total", "write=user.Grant") +
			blackbox.Value(got, "castellan_commit_functions_total", "write=password.SetKinds")
		storetest.Equal(t, blackbox.Value(got, "castellan_commit_functions_total"), seeds,
			"transactions that left the executor")
		for name, labels := range map[string][]string{
			"castellan_challenges_started_total":      nil,
			"castellan_firewall_decisions_total":      {"outcome=allow"},
			"castellan_actors_active":                 {"kind=challenge"},
			"castellan_actors_activated_total":        {"kind=user"},
			"castellan_commit_duration_seconds":       nil,
			"castellan_commit_batch_units":            nil,
			"castellan_commit_statements_total":       nil,
			"castellan_password_hash_slots":           nil,
			"castellan_password_hash_info":            {"vectors=" + argon2id.Vectors()},
			"castellan_http_request_duration_seconds": {"method=POST", "route=/auth/login"},
			"go_sql_max_open_connections":             nil,
			"go_goroutines":                           nil,
			"castellan_build_info":                    nil,
		} {
			if blackbox.Value(got, name, labels...) < 1 {
				t.Errorf("%s %v is %v", name, labels, blackbox.Value(got, name, labels...))
			}
		}
	})
}

// Values that clients invent create no series: paths, methods, queries, ids in a path, headers.
func TestClientValuesCreateNoMetricSeries(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	addr := porttest.Free(t)
	n := s.Start("METRICS_ADDR=" + addr)
	boss := blackbox.Admin(t, s, n)
	target := strings.TrimPrefix(n.URL, "http://")
	hostile := func(i int) {
		n.Do(t, "GET", fmt.Sprintf("/never/%d/served", i), nil, nil)
		n.Do(t, "POST", fmt.Sprintf("/auth/login/%d", i), map[string]any{"a": i}, nil)
		n.Do(t, "GET", fmt.Sprintf("/auth/sessions?q=%d", i), nil, nil)
		n.Do(t, "GET", fmt.Sprintf("/admin/jobs/%d", i), nil, boss)
		n.Do(t, "GET", fmt.Sprintf("/flags/%d.svg", i), nil, nil)
		n.Do(t, "GET", fmt.Sprintf("/static/%d", i), nil,
			blackbox.Headers{"x-auth": fmt.Sprint(i), "tenant-id": fmt.Sprint(i), "accept-language": fmt.Sprint(i)})
		for _, line := range []string{fmt.Sprintf("BREW%d /auth/login", i), fmt.Sprintf("GET /%%6%d//../;x=%d", i%10, i),
			fmt.Sprintf("TRACE /x%d", i), fmt.Sprintf("PUT http://evil%d/x", i)} {
			c := storetest.Value(net.Dial("tcp", target))(t)
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: h%d\r\nConnection: close\r\n\r\n", line, i)
			c.Read(make([]byte, 1))
			c.Close()
		}
	}
	series := func() map[string]bool {
		all := map[string]bool{}
		for name, family := range blackbox.Scrape(t, addr) {
			if strings.HasPrefix(name, "castellan_jobs_") {
				continue // the service has work of its own meanwhile
			}
			for _, m := range family.GetMetric() {
				all[fmt.Sprint(name, m.GetLabel())] = true
			}
		}
		return all
	}
	hostile(0)
	first := series()
	for i := range 30 {
		hostile(i + 1)
	}
	for _, name := range slices.Sorted(maps.Keys(series())) {
		if !first[name] {
			t.Errorf("a new series: %s", name)
		}
	}
	if got := blackbox.Scrape(t, addr); blackbox.Value(got, "castellan_http_requests_total", "route=*",
		"method=GET") < 31 || blackbox.Value(got, "castellan_http_requests_total", "route=*", "method=UNKNOWN") < 31 {
		t.Errorf("requests that no route serves are not counted under one: %v", got["castellan_http_requests_total"])
	}
}

var (
	quoted     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	metricName = regexp.MustCompile(`\b(?:castellan|go|process)_[a-z0-9_]+`)
	labelUse   = regexp.MustCompile(`(castellan_[a-z0-9_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
)

// known fails the test if an expression is malformed, or uses a metric or a label that a running node does not
// export. Labels of a scrape are Prometheus' own.
func known(t *testing.T, where, expr string, families map[string]*dto.MetricFamily) {
	t.Helper()
	if bare := quoted.ReplaceAllString(expr, ""); strings.Count(bare, "(") != strings.Count(bare, ")") ||
		strings.Count(bare, "{") != strings.Count(bare, "}") || strings.TrimSpace(bare) == "" {
		t.Errorf("%s: not an expression: %s", where, expr)
	}
	family := func(name string) *dto.MetricFamily {
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			if f := families[strings.TrimSuffix(name, suffix)]; f != nil && strings.HasSuffix(name, suffix) {
				if suffix == "" || f.GetType() == dto.MetricType_HISTOGRAM || f.GetType() == dto.MetricType_SUMMARY {
					return f
				}
			}
		}
		return nil
	}
	names := metricName.FindAllString(quoted.ReplaceAllString(expr, ""), -1)
	for _, name := range names {
		if family(name) == nil {
			t.Errorf("%s: no node exports %s", where, name)
		}
	}
	for _, use := range labelUse.FindAllStringSubmatch(expr, -1) {
		f := family(use[1])
		if f == nil {
			continue
		}
		has := map[string]bool{"job": true, "instance": true, "le": true}
		for _, l := range f.GetMetric()[0].GetLabel() {
			has[l.GetName()] = true
		}
		for _, m := range matcher.FindAllStringSubmatch(use[2], -1) {
			if !has[m[1]] {
				t.Errorf("%s: %s has no label %s", where, use[1], m[1])
			}
		}
	}
}

// running returns the metrics of a node that has served requests.
func running(t *testing.T) (families map[string]*dto.MetricFamily) {
	t.Helper()
	s := blackbox.NewSite(t, "sqlite")
	addr := porttest.Free(t)
	n := s.Start("METRICS_ADDR=" + addr)
	blackbox.Admin(t, s, n)
	blackbox.Until(t, blackbox.Within(20), "a job has ended", func() bool {
		families = blackbox.Scrape(t, addr)
		return families["castellan_jobs_ended_total"] != nil
	})
	return families
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	Datasource  struct{ Type, UID string }
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ Type, UID string }
	}
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
}

// The dashboard can be imported unchanged. It and the alerting rules use existing metrics only.
func TestDashboardUsesExportedMetrics(t *testing.T) {
	t.Parallel()
	text := storetest.Value(os.ReadFile("../../deploy/grafana/castellan.json"))(t)
	var board struct {
		Title, UID    string
		ID            *int // a board with an id overwrites another one
		SchemaVersion int
		Templating    struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []panel
	}
	storetest.Must(t, json.Unmarshal(text, &board))
	if board.Title == "" || board.UID == "" || board.ID != nil || board.SchemaVersion < 36 {
		t.Errorf("title %q, uid %q, id %v, schema %d", board.Title, board.UID, board.ID, board.SchemaVersion)
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range board.Templating.List {
		variables[v.Name] = true
	}
	families := running(t)
	rows, ids, taken := map[string]int{}, map[int]string{}, map[[2]int]string{}
	row := ""
	for _, p := range board.Panels {
		if p.ID <= 0 || ids[p.ID] != "" {
			t.Errorf("%q has the id %d, like %q", p.Title, p.ID, ids[p.ID])
		}
		ids[p.ID] = p.Title
		if g := p.GridPos; g.W <= 0 || g.H <= 0 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
			t.Errorf("%q lies outside of the grid: %+v", p.Title, g)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				storetest.Equal(t, taken[[2]int{x, y}], "", p.Title, "lies on")
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			row = p.Title
			continue
		}
		rows[row]++
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("%q lacks a title, a description, a unit or an expression", p.Title)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if refs[q.RefID] || q.RefID == "" || q.Datasource.UID != "${datasource}" || p.Datasource.UID != "${datasource}" {
				t.Errorf("%q, %q: reference or data source", p.Title, q.RefID)
			}
			refs[q.RefID] = true
			known(t, p.Title, q.Expr, families)
			for _, v := range regexp.MustCompile(`\$([a-z_]+)`).FindAllStringSubmatch(q.Expr, -1) {
				if !variables[v[1]] {
					t.Errorf("%q: no variable %s", p.Title, v[1])
				}
			}
		}
	}
	for _, want := range []string{"Traffic", "Security decisions", "Challenges", "Cluster", "Database", "Outbox",
		"Sockets", "Runtime"} {
		if rows[want] < 2 {
			t.Errorf("the row %q has %d panels", want, rows[want])
		}
	}
	alerts(t, families)
}

// alerts checks that the alerting rules are complete, and use existing metrics only.
func alerts(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	file := storetest.Value(os.Open("../../deploy/prometheus/alerts.yaml"))(t)
	defer file.Close()
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr         string
				For                 time.Duration
				Labels, Annotations map[string]string
			}
		}
	}
	d := yaml.NewDecoder(file)
	d.KnownFields(true) // as strict as Prometheus
	storetest.Must(t, d.Decode(&rules))
	names := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if !regexp.MustCompile(`^Castellan[A-Z][A-Za-z]+$`).MatchString(r.Alert) || names[r.Alert] {
				t.Errorf("the name %q", r.Alert)
			}
			names[r.Alert] = true
			if s := r.Labels["severity"]; s != "warning" && s != "critical" || r.Annotations["summary"] == "" {
				t.Errorf("%s: severity %q, annotations %v", r.Alert, s, r.Annotations)
			}
			known(t, r.Alert, r.Expr, families)
		}
	}
	if len(names) < 10 {
		t.Errorf("%d alerts", len(names))
	}
}

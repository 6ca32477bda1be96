package gateway

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/domain/kit/sorting"
)

// Request is the request that a gateway asks about, as its client sent it.
type Request struct {
	Host string // without a port, lower case (HostOf)
	// Authority is the host with its port, as sent: proofs of a session key name it.
	Authority string
	Method    string
	Path      string // as sent
	Query     string // as sent, without the question mark
	// Digest is the header Content-Digest; "" for none.
	Digest string
	// Headers are names and values, as sent.
	Headers iter.Seq2[string, string]
}

// HostOf returns a host in the form of Request.Host.
func HostOf(authority string) string {
	host := strings.ToLower(authority)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.Trim(host[i+1:], "0123456789") == "" {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}

// split returns the decoded segments of a path without its last slash. plain is false if servers read the path in
// different ways: with dot segments, empty segments, encoded slashes, backslashes, semicolons, control characters or
// invalid escapes.
func split(path string) (segments []string, plain bool) {
	rest, rooted := strings.CutPrefix(path, "/")
	if !rooted {
		return nil, false
	}
	rest = strings.TrimSuffix(rest, "/")
	if rest == "" {
		return nil, path == "/"
	}
	for part := range strings.SplitSeq(rest, "/") {
		s, err := url.PathUnescape(part)
		if err != nil || s == "" || s == "." || s == ".." || !utf8.ValidString(s) || strings.ContainsAny(s, `/\;?#%`) ||
			strings.ContainsFunc(s, unicode.IsControl) {
			return nil, false
		}
		segments = append(segments, s)
	}
	return segments, true
}

// Table is the compiled routes. It is immutable.
type Table struct {
	rules   []rule          // the most specific first
	hosts   map[string]bool // that an active route names
	plainly bool            // some route may be meant by a request without an odd segment
}

type rule struct {
	Route
	segments []string // without the last one of a deep route
	deep     bool     // the path ends in /**
}

// every stands for any number of further segments at the end of a path.
const every = "**"

// compile returns the segments of the path of a route; plain is false if it is none.
func compile(path string) (segments []string, deep, plain bool) {
	segments, plain = split(path)
	if n := len(segments); n > 0 && segments[n-1] == every {
		return segments[:n-1], true, plain
	}
	return segments, false, plain
}

// NewTable compiles routes.
func NewTable(routes []Route) *Table {
	t := &Table{hosts: map[string]bool{}}
	for _, r := range routes {
		segments, deep, plain := compile(r.Path)
		if plain && r.Status != Inactive {
			t.rules = append(t.rules, rule{r, segments, deep})
		}
		if r.Status == Active && r.Host != "" {
			t.hosts[r.Host] = true
		}
	}
	sorting.Stable(t.rules, func(a, b rule) int {
		return cmp.Or(-cmp.Compare(a.Host, b.Host), a.depth()-b.depth(), literals(a.segments, b.segments),
			-cmp.Compare(a.Method, b.Method))
	})
	for i := range t.rules {
		t.plainly = t.plainly || t.rules[i].plainly()
	}
	return t
}

// Names reports whether a route is for this host alone, in the form of HostOf.
func (t *Table) Names(host string) bool {
	return host != "" && slices.ContainsFunc(t.rules, func(r rule) bool { return r.Host == host })
}

// depth orders the paths of a host: those that end in /** are last, the longest of them first.
func (r *rule) depth() int {
	if r.deep {
		return maxPathBytes*2 - len(r.segments)
	}
	return len(r.segments)
}

// literals orders the path with the first literal segment, where the other has *, first.
func literals(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if (a[i] == "*") != (b[i] == "*") {
			if b[i] == "*" {
				return -1
			}
			return 1
		}
	}
	return 0
}

// exactly compares as the routes are written. strings.EqualFold compares as the many servers do that ignore case.
func exactly(a, b string) bool { return a == b }

// concerns reports whether the rule is for the host and the method of a request. Methods are compared by same.
func (r *rule) concerns(q Request, same func(a, b string) bool) bool {
	// Frameworks answer HEAD by the handler of GET.
	return (r.Host == "" || r.Host == q.Host) &&
		(r.Method == "*" || same(r.Method, q.Method) || r.Method == "GET" && same("HEAD", q.Method))
}

// matches reports whether the rule is for a request whose method and path are compared by same.
func (r *rule) matches(q Request, segments []string, same func(a, b string) bool) bool {
	if n := len(r.segments); n > len(segments) || n < len(segments) && !r.deep || !r.concerns(q, same) {
		return false
	}
	for i, s := range r.segments {
		if s != "*" && !same(s, segments[i]) {
			return false
		}
	}
	return true
}

// Match is what the routes say about a request.
type Match struct {
	// Route is the active route that decides; nil for none.
	Route *Route
	// Tried is the route on trial that would decide; nil for none.
	Tried *Route
	// Ambiguous is a request that servers read in different ways, on a host with active routes. The cause is its host,
	// its path, that only its case differs from a route, or Respelled. It is refused.
	Ambiguous bool
	// Respelled is the route for which some servers take the request, by a spelling of its path; nil for none. It is
	// active if the request is ambiguous, and else on trial.
	Respelled *Route
	// Reader names these servers, and Sent is the segment that they take for another.
	Reader, Sent string
	// UnknownHost is a host that no active route names, where other hosts are named, and no route decides.
	UnknownHost bool
	segments    []string
}

// Match finds the route of a request: the most specific one by host, then by path from the left, then by method. A path
// that ends in /** comes after all others of its host.
func (t *Table) Match(q Request) (m Match) {
	if len(t.rules) == 0 {
		return m
	}
	segments, plain := split(q.Path)
	m.segments = segments
	known := oneHost(q.Host)
	if !plain || !known || slices.ContainsFunc(segments, hollow) {
		for i := range t.rules {
			r := &t.rules[i]
			m.Ambiguous = m.Ambiguous || r.Status == Active && (r.Host == "" || r.Host == q.Host || !known)
		}
		m.UnknownHost = !m.Ambiguous && t.unknown(q.Host)
		return m
	}
	decides := len(t.rules) // the index of the rule that decides
	for i := range t.rules {
		r := &t.rules[i]
		if !r.matches(q, segments, exactly) {
			continue
		}
		if r.Status == Active {
			m.Route, decides = &r.Route, i
			break
		}
		m.Tried = cmp.Or(m.Tried, &r.Route)
	}
	for i := range t.rules[:decides] {
		r := &t.rules[i]
		if r.Status == Active && r.matches(q, segments, strings.EqualFold) && !r.covered(m.Route) {
			m.Ambiguous, m.Route = true, nil
			return m
		}
	}
	t.respell(q, &m, decides)
	m.UnknownHost = m.Route == nil && !m.Ambiguous && t.unknown(q.Host)
	return m
}

// Starts reports whether a route, active or on trial, is behind an action.
func (t *Table) Starts(action string) bool {
	return slices.ContainsFunc(t.rules, func(r rule) bool { return r.Mode == Guarded && r.ActionCode == action })
}

// unknown reports whether active routes name hosts, and not this one.
func (t *Table) unknown(host string) bool { return len(t.hosts) > 0 && !t.hosts[host] }

// covered reports whether a route decides about a request as the rule would if servers ignored the case.
func (r *rule) covered(by *Route) bool {
	return by != nil && (r.Mode == Session && by.Mode == Session ||
		r.Host == by.Host && r.Method == by.Method && strings.EqualFold(r.Path, by.Path))
}

// oneHost reports whether a host is a name, an address or empty. Servers read anything else in different ways.
func oneHost(host string) bool {
	if inner, v6 := strings.CutPrefix(host, "["); v6 {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil && a.Is6()
	}
	if strings.HasPrefix(host, ".") || strings.HasSuffix(host, ".") || strings.Contains(host, "..") {
		return false
	}
	for _, c := range []byte(host) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

const (
	maxValueBytes = 512
	// absent stands for a value that the request does not have: the approver must see that it is missing.
	absent = "—"
)

// Values reads the rows of a request. FORBIDDEN for a value that cannot be shown in full, or a header that was sent
// more than once.
func (m Match) Values(q Request, rows []Row) ([]challenge.Detail, error) {
	out := make([]challenge.Detail, 0, len(rows))
	for _, row := range rows {
		v := challenge.Detail{Key: row.Key, Label: row.Label}
		switch row.From {
		case FromPath:
			v.Value = m.segments[row.Index]
		case FromQuery:
			all, err := queryValues(q.Query, row.Name)
			if err != nil {
				return nil, err
			}
			v.Value = strings.Join(all, ", ")
		case FromHeader:
			value, once := q.header(row.Name)
			if !once {
				return nil, fault.New(fault.Forbidden, "a header of the route was sent more than once")
			}
			v.Value = strings.TrimSpace(value)
		}
		if len(v.Value) > maxValueBytes || !legible.Valid(v.Value) {
			return nil, fault.New(fault.Forbidden, "a value of the route cannot be shown")
		}
		v.Value = cmp.Or(v.Value, absent)
		out = append(out, v)
	}
	return out, nil
}

// header returns the value of a header. once is false if it was sent more than once, also with _ in place of - or the
// reverse. An upstream that speaks CGI or WSGI gets both names as one variable.
func (q Request) header(name string) (value string, once bool) {
	times := 0
	for other, text := range q.Headers {
		switch {
		case strings.EqualFold(other, name):
			value = text
			times++
		case text != "" && strings.EqualFold(strings.ReplaceAll(other, "_", "-"), strings.ReplaceAll(name, "_", "-")):
			times = 2
		}
	}
	return value, times < 2
}

// queryValues returns the values of a parameter, in order.
func queryValues(query, name string) (all []string, err error) {
	nested := strings.Contains(name, "[")
	shown := loose(name, nested)
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		k, err1 := url.QueryUnescape(key)
		v, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil || strings.Contains(pair, ";") {
			return nil, fault.New(fault.Forbidden, "the query is ambiguous")
		}
		switch {
		case k == name:
			all = append(all, v)
		case strings.EqualFold(loose(k, nested), shown):
			return nil, fault.New(fault.Forbidden, "the query is ambiguous")
		}
	}
	return all, nil
}

var underscores = strings.NewReplacer(".", "_", " ", "_", "[", "_", "]", "")

// loose returns a key as the most generous servers read it, except for its case. Spaces around it and what follows a
// NUL are dropped, and dots, spaces and brackets are _. Only a nested key keeps its index.
func loose(key string, nested bool) string {
	key, _, _ = strings.Cut(key, "\x00")
	if !nested {
		key, _, _ = strings.Cut(key, "[")
	}
	return strings.TrimRight(underscores.Replace(strings.TrimSpace(key)), "_")
}

// sorted returns the pairs of a query in the order of their keys. Those of one key keep their order, which counts.
func sorted(query string) string {
	keyOf := func(pair string) string {
		key, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(key); err == nil {
			key = plain
		}
		return strings.ToLower(loose(key, false))
	}
	pairs := strings.Split(query, "&")
	sorting.Stable(pairs, func(a, b string) int { return strings.Compare(keyOf(a), keyOf(b)) })
	return strings.Join(pairs, "&")
}

// Cache is the node's copy of the routes. It follows change.Gateways and is safe for concurrent use.
type Cache struct{ *change.Snapshot[Table] }

// NewCache returns a Cache over a store. It has no routes until the first Reload.
func NewCache(store Store) *Cache {
	load := func(ctx context.Context) (*Table, error) {
		routes, err := store.Routes(ctx)
		if err != nil {
			return nil, fmt.Errorf("reload the routes of gateways: %w", err)
		}
		return NewTable(routes), nil
	}
	return &Cache{change.NewSnapshot(NewTable(nil), load, nil)}
}

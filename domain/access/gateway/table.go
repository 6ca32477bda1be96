package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
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
	// Header returns a header; repeated reports whether it was sent more than once.
	Header func(name string) (value string, repeated bool)
}

// HostOf returns a host in the form of Request.Host.
func HostOf(authority string) string {
	host := strings.ToLower(authority)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}

// Target splits a request target into path and query.
func Target(uri string) (path, query string) {
	path, query, _ = strings.Cut(uri, "?")
	return path, query
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
	rules []rule // the most specific first
}

type rule struct {
	Route
	segments []string
}

// NewTable compiles routes.
func NewTable(routes []Route) *Table {
	t := &Table{}
	for _, r := range routes {
		segments, plain := split(r.Path)
		if plain && r.Status != Inactive {
			t.rules = append(t.rules, rule{r, segments})
		}
	}
	slices.SortStableFunc(t.rules, func(a, b rule) int {
		return cmp.Or(-cmp.Compare(a.Host, b.Host), literals(a.segments, b.segments), -cmp.Compare(a.Method, b.Method))
	})
	return t
}

// near reports whether a request differs from those of the rule only in the case of its method or of its path. Many
// servers ignore it.
func (r rule) near(q Request, segments []string) bool {
	if r.Method != "*" && !strings.EqualFold(r.Method, q.Method) &&
		!(r.Method == "GET" && strings.EqualFold(q.Method, "HEAD")) || r.Host != "" && r.Host != q.Host ||
		len(r.segments) != len(segments) {
		return false
	}
	for i, s := range r.segments {
		if s != "*" && !strings.EqualFold(s, segments[i]) {
			return false
		}
	}
	return true
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

func (r rule) matches(q Request, segments []string) bool {
	// Frameworks answer HEAD by the handler of GET.
	if r.Method != "*" && r.Method != q.Method && !(r.Method == "GET" && q.Method == "HEAD") ||
		r.Host != "" && r.Host != q.Host || len(r.segments) != len(segments) {
		return false
	}
	for i, s := range r.segments {
		if s != "*" && s != segments[i] {
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
	// Ambiguous is a request that servers read in different ways, on a host with active routes: by its host or its path,
	// or because only its case differs from a route. It is refused.
	Ambiguous bool
	segments  []string
}

// Match finds the route of a request: the most specific one by host, then by path from the left, then by method.
func (t *Table) Match(q Request) (m Match) {
	if len(t.rules) == 0 {
		return m
	}
	segments, plain := split(q.Path)
	m.segments = segments
	known := oneHost(q.Host)
	var near *rule
	for i := range t.rules {
		r := &t.rules[i]
		switch active := r.Status == Active; {
		case active && (!plain || !known) && (r.Host == "" || r.Host == q.Host || !known):
			m.Ambiguous = true
			return m
		case !plain:
		case r.matches(q, segments):
			if !active {
				if m.Tried == nil {
					m.Tried = &r.Route
				}
				continue
			}
			if near != nil && !strings.EqualFold(near.Path, r.Path) { // a more specific route
				m.Ambiguous = true
				return m
			}
			m.Route = &r.Route
			return m
		case active && near == nil && r.near(q, segments):
			near = r
		}
	}
	m.Ambiguous = near != nil
	return m
}

// oneHost reports whether a host is a name, an address or empty. Servers read anything else in different ways.
func oneHost(host string) bool {
	if inner, v6 := strings.CutPrefix(host, "["); v6 {
		a, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil && a.Is6()
	}
	for _, c := range []byte(host) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// Value is a row of a request with its value.
type Value struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	Value string `json:"value"`
}

const (
	maxValueBytes = 512
	// absent stands for a value that the request does not have: the approver must see that it is missing.
	absent = "—"
)

// Values reads the rows of a request. FORBIDDEN for a value that cannot be shown in full, or a header that was sent
// more than once.
func (m Match) Values(q Request, rows []Row) ([]Value, error) {
	out := make([]Value, 0, len(rows))
	for _, row := range rows {
		v := Value{row.Key, row.Label, ""}
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
			value, repeated := q.Header(row.Name)
			if repeated {
				return nil, fault.New(fault.Forbidden, "a header of the route was sent more than once")
			}
			v.Value = strings.TrimSpace(value)
		}
		if len(v.Value) > maxValueBytes || !utf8.ValidString(v.Value) || strings.ContainsFunc(v.Value, hidden) {
			return nil, fault.New(fault.Forbidden, "a value of the route cannot be shown")
		}
		v.Value = cmp.Or(v.Value, absent)
		out = append(out, v)
	}
	return out, nil
}

// hidden reports whether a character does not show, or changes the order in which others show.
func hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// queryValues returns the values of a parameter, in order.
func queryValues(query, name string) (all []string, err error) {
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
		case loose(k) == loose(name):
			return nil, fault.New(fault.Forbidden, "the query is ambiguous")
		}
	}
	return all, nil
}

// loose returns a key as the most generous servers read it: without its case, spaces, index and what follows a NUL, and
// with _ in place of a dot.
func loose(key string) string {
	if i := strings.IndexAny(key, "[\x00"); i >= 0 {
		key = key[:i]
	}
	return strings.NewReplacer(".", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(key)))
}

// sorted returns the pairs of a query in the order of their keys. Those of one key keep their order, which counts.
func sorted(query string) string {
	pairs := strings.Split(query, "&")
	slices.SortStableFunc(pairs, func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return strings.Compare(a, b)
	})
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

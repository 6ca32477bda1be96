package edge

import (
	"bytes"
	"strings"
)

// bodyLimits holds the largest body of each route, in bytes. It is consulted before the
// router, when the head of a request is read (D-GEN-12).
type bodyLimits struct {
	paths    map[string][]bodyLimit // of routes without parameters
	patterns []bodyLimit
}

type bodyLimit struct {
	method   string
	segments []string // of a pattern: ":name" is any segment, "*" is everything that follows
	bytes    int
}

// add adds a route; path has the notation of the router.
func (l *bodyLimits) add(method, path string, limit int) {
	b := bodyLimit{method: method, bytes: limit}
	if !strings.ContainsAny(path, ":*") {
		l.paths[path] = append(l.paths[path], b)
		return
	}
	b.segments = strings.Split(path, "/")
	l.patterns = append(l.patterns, b)
}

// of is the largest limit of the routes that can serve a target; 0 if there is none.
func (l *bodyLimits) of(method, target []byte) (most int) {
	path, _, _ := bytes.Cut(target, questionMark)
	for _, b := range l.paths[string(path)] {
		if b.serves(method) {
			most = max(most, b.bytes)
		}
	}
	for i := range l.patterns {
		if b := &l.patterns[i]; b.serves(method) && b.matches(path) {
			most = max(most, b.bytes)
		}
	}
	return most
}

func (b *bodyLimit) serves(method []byte) bool {
	return string(method) == b.method || b.method == "GET" && string(method) == "HEAD"
}

func (b *bodyLimit) matches(path []byte) bool {
	for i, want := range b.segments {
		segment, rest, more := bytes.Cut(path, slash)
		switch {
		case want == "*":
			return true
		case more != (i < len(b.segments)-1):
			return false
		case want != string(segment) && (!strings.HasPrefix(want, ":") || len(segment) == 0):
			return false
		}
		path = rest
	}
	return true
}

var questionMark, slash = []byte("?"), []byte("/")

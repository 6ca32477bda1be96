package intake

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// shape names the fields of an object that a format takes; a field may be an object with a shape of its own.
type shape map[string]shape

// shapeOf returns the shape of a struct: the names of its JSON fields.
func shapeOf(value any) shape {
	s := shape{}
	for f := range reflect.TypeOf(value).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		s[strings.ToLower(name)] = nil
	}
	return s
}

// with returns the shape with the shape of a field.
func (s shape) with(field string, inner shape) shape {
	s = maps.Clone(s)
	s[strings.ToLower(field)] = inner
	return s
}

// Bounds of the report: a file may have any number of names.
const (
	maxIgnored   = 200
	maxFieldName = 64
)

// ignored counts the fields of users that a format does not take.
type ignored struct {
	taken  shape // nil: every other field is refused
	counts map[string]int64
}

func ignoring(taken shape) ignored { return ignored{taken: taken, counts: map[string]int64{}} }

// Ignored returns the number of users by field.
func (g *ignored) Ignored() map[string]int64 { return g.counts }

func (g *ignored) count(text []byte) {
	if g.taken != nil {
		g.within("", text, g.taken)
	}
}

func (g *ignored) within(path string, object []byte, taken shape) {
	// An object with a field twice was refused, or is counted up to it.
	_ = unique(object, func(name string, value json.RawMessage) {
		inner, known := taken[strings.ToLower(name)]
		switch {
		case known && inner != nil:
			g.within(path+name+".", value, inner)
		case !known && !empty(value):
			g.add(path + name)
		}
	})
}

func (g *ignored) add(name string) {
	if len(name) > maxFieldName {
		name = strings.ToValidUTF8(name[:maxFieldName], "") + "…"
	}
	if _, counted := g.counts[name]; counted || len(g.counts) < maxIgnored {
		g.counts[name]++
	}
}

// empty reports whether a value says nothing.
func empty(value json.RawMessage) bool {
	switch string(value) {
	case "null", `""`, "[]", "{}":
		return true
	}
	return false
}

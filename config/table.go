package config

import (
	_ "embed"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// entry is one key: a leaf of Config as its tags describe it.
type entry struct {
	section string // "" for a key of the top level
	name    string
	key     string // section.name
	env     string
	doc     string
	index   []int
	kind    reflect.Type

	bounded  bool
	min, max int64 // durations in nanoseconds
	floor    int64 // lower bound outside development mode; min if the tag is absent
	oneof    []string
	preset   string // the default, as the environment would have it
	lines    bool
	records  bool // an item of the list may be a map, whose pairs become name=value
}

// settings explains every section and key in a line: name, tab, text. The texts are too long for tags.
//
//go:embed settings.tsv
var settings string

// table lists every key in the order of Config; the rest of the package uses it. sections holds the explanation of each
// section.
var table, sections = buildTable()

// byKey finds entries by dotted key.
var byKey = func() map[string]*entry {
	m := map[string]*entry{}
	for i := range table {
		m[table[i].key] = &table[i]
	}
	return m
}()

// buildTable panics if settings lacks a key, or has one that Config lacks.
func buildTable() (entries []entry, sections map[string]string) {
	texts, sections := map[string]string{}, map[string]string{}
	for line := range strings.Lines(settings) {
		key, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		texts[key] = text
	}
	explain := func(key string) string {
		text := texts[key]
		if text == "" {
			panic("config: settings.tsv does not explain " + key)
		}
		delete(texts, key)
		return text
	}
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case !f.IsExported():
		case f.Type.Kind() != reflect.Struct:
			entries = append(entries, newEntry("", f))
		default:
			section := f.Tag.Get("key")
			sections[section] = explain(section)
			for j := range f.Type.NumField() {
				e := newEntry(section, f.Type.Field(j))
				e.index = []int{i, j}
				entries = append(entries, e)
			}
		}
	}
	for i := range entries {
		entries[i].doc = explain(entries[i].key)
	}
	for key := range texts {
		panic("config: settings.tsv explains " + key + ", which is no setting")
	}
	return entries, sections
}

// newEntry reads the tags. An invalid tag is an error in this package, so it panics.
func newEntry(section string, f reflect.StructField) entry {
	e := entry{section: section, name: f.Tag.Get("key"), index: f.Index, kind: f.Type}
	e.key = e.name
	if section != "" {
		e.key = section + "." + e.name
	}
	e.env = "CASTELLAN_" + strings.ToUpper(strings.ReplaceAll(e.key, ".", "_"))
	e.preset = f.Tag.Get("default")
	e.lines = f.Tag.Get("lines") == "true"
	e.records = f.Tag.Get("records") == "true"
	if words, ok := f.Tag.Lookup("oneof"); ok {
		e.oneof = strings.Split(words, "|")
	}
	if r, ok := f.Tag.Lookup("range"); ok {
		lo, hi, _ := strings.Cut(r, "..")
		e.bounded, e.min, e.max = true, e.number(lo), e.number(hi)
		e.floor = e.min
		if fl, ok := f.Tag.Lookup("floor"); ok {
			e.floor = e.number(fl)
		}
	}
	return e
}

// number reads a bound in the unit of the key.
func (e entry) number(s string) int64 {
	if e.isDuration() {
		d, err := time.ParseDuration(s)
		if err != nil {
			panic(fmt.Sprintf("config: bound of %s: %v", e.key, err))
		}
		return int64(d)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("config: bound of %s: %v", e.key, err))
	}
	return n
}

func (e entry) isDuration() bool { return e.kind == reflect.TypeFor[time.Duration]() }

// show writes a bound in the unit of the key.
func (e entry) show(n int64) string {
	if e.isDuration() {
		return shortDuration(time.Duration(n))
	}
	return strconv.FormatInt(n, 10)
}

// field returns a pointer to the entry's value inside c.
func (e entry) field(c *Config) any {
	return reflect.ValueOf(c).Elem().FieldByIndex(e.index).Addr().Interface()
}

// secret reports whether the value must never be repeated in a message.
func (e entry) secret() bool {
	return e.kind == reflect.TypeFor[Secret]() || e.kind == reflect.TypeFor[Secrets]()
}

// nearest returns the most similar name, "" if none is similar.
func nearest(name string, names []string) string {
	best, bestAt := "", 3
	for _, n := range names {
		if d := distance(name, n); d < bestAt {
			best, bestAt = n, d
		}
	}
	return best
}

// distance counts the letters to insert, remove or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

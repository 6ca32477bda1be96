package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Source names the layer of a value.
type Source string

// The layers, lowest first.
const (
	FromDefault Source = "default"
	FromFile    Source = "file"
	FromEnv     Source = "env"
)

// origin is the source of a value: the layer, and the line or variable.
type origin struct {
	source Source
	where  string
}

// Source returns the layer that set the dotted key.
func (c Config) Source(key string) Source {
	if o, ok := c.origins[key]; ok {
		return o.source
	}
	return FromDefault
}

// Load applies the YAML file (none if file is "") and the environment (in the form of os.Environ) to the defaults,
// resolves and validates. Its error is Faults with every fault found: unknown keys and variables, invalid values,
// values out of bounds and conflicts between keys. Load reads the file and opens nothing else. checks find the faults
// that only other parts can detect; they run even if there are other faults, and may open files. Beside an error, the
// configuration has only Log, for the record of the error.
func Load(file string, environ []string, checks ...func(Config) Faults) (Config, error) {
	l := loader{config: Default(), broken: map[string]bool{}}
	l.config.origins = map[string]origin{}
	readable := true
	if file != "" {
		readable = l.file(file)
	}
	l.environment(environ)
	if !readable {
		// The content of the file is unknown, so conflicts would be guesses.
		return Config{Log: l.config.Log}, l.faults
	}
	c := l.config.Resolved()
	l.faults = append(l.faults, c.faults(l.broken)...)
	for _, check := range checks {
		l.faults = append(l.faults, l.further(check(c))...)
	}
	if len(l.faults) > 0 {
		return Config{Log: c.Log}, l.faults
	}
	return c, nil
}

// further drops the faults of keys and sections that are already reported. To the others it adds the setting, if there
// is one, and the source.
func (l *loader) further(faults Faults) (more Faults) {
	for _, f := range faults {
		section, _, _ := strings.Cut(f.Key, ".")
		known := slices.ContainsFunc(l.faults, func(k Fault) bool {
			return k.Key == f.Key || f.Key == section && strings.HasPrefix(k.Key, section+".")
		})
		if !known {
			f = f.ofSetting()
			f.Where = l.config.origins[f.Key].where
			more = append(more, f)
		}
	}
	return more
}

type loader struct {
	config Config
	faults Faults
	broken map[string]bool // keys with an unreadable value: rules about them are skipped
}

func (l *loader) fault(key, where, format string, args ...any) {
	l.faults = append(l.faults, Fault{Key: key, Where: where, Problem: fmt.Sprintf(format, args...)})
}

// set reads r into the entry's field and stores its origin.
func (l *loader) set(e *entry, r raw, from origin) {
	r.lines = e.lines
	if err := assign(e.field(&l.config), r); err != nil {
		problem := err.Error()
		if e.secret() && strings.Contains(problem, `"`) {
			problem = "cannot be read" // the reason quotes the value
		}
		l.fault(e.key, from.where, "%s", problem)
		l.broken[e.key] = true
		return
	}
	l.config.origins[e.key] = from
}

// file reads the YAML file; false means that it could not be read at all.
func (l *loader) file(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		l.fault("", path, "cannot be read: %v", errors.Unwrap(err))
		return false
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return true
		}
		l.fault("", path, "%s", syntaxProblem(err))
		return false
	}
	if len(doc.Content) == 0 {
		return true
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		l.fault("", path, "holds more than one document")
		return false
	}
	name := filepath.Base(path)
	l.pairs(doc.Content[0], name, "", func(key string, k, v *yaml.Node) {
		if _, ok := sections[key]; ok {
			l.pairs(v, name, key, func(sub string, k, v *yaml.Node) { l.inner(key+"."+sub, name, k, v) })
			return
		}
		l.setKey(key, name, k, v)
	})
	return true
}

// syntaxProblem returns the parser's message, except for an unknown alias: an unquoted password that starts with *
// looks like one.
func syntaxProblem(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.Contains(text, "anchor") {
		text = "text that starts with * or & must be quoted"
	}
	return "is not valid YAML: " + text
}

// pairs visits the keys of a mapping once each. An empty section is no fault.
func (l *loader) pairs(n *yaml.Node, file, section string, visit func(key string, k, v *yaml.Node)) {
	n = dealias(n)
	where := place(file, n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		l.fault(section, where, "want a map of keys")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if seen[k.Value] {
			key := strings.TrimPrefix(section+"."+k.Value, ".")
			l.fault(key, place(file, k), "is given twice")
			continue
		}
		seen[k.Value] = true
		visit(k.Value, k, v)
	}
}

// inner sets one key of a section, or those of a map in it.
func (l *loader) inner(key, file string, k, v *yaml.Node) {
	within := func(e entry) bool { return strings.HasPrefix(e.key, key+".") }
	if dealias(v).Kind == yaml.MappingNode && slices.ContainsFunc(table, within) {
		l.pairs(v, file, key, func(sub string, k, v *yaml.Node) { l.inner(key+"."+sub, file, k, v) })
		return
	}
	l.setKey(key, file, k, v)
}

// setKey sets one key. A key without a value keeps the default.
func (l *loader) setKey(key, file string, k, v *yaml.Node) {
	where := place(file, k)
	e, ok := byKey[key]
	if !ok {
		l.fault(key, where, "unknown key%s", suggestKey(key))
		return
	}
	r, set, err := fromYAML(v, e.records)
	switch {
	case err != nil:
		l.fault(key, where, "%v", err)
		l.broken[key] = true
	case set:
		l.set(e, r, origin{FromFile, where})
	}
}

func place(file string, n *yaml.Node) string { return fmt.Sprintf("%s:%d", file, n.Line) }

func dealias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias // an alias cannot point at an alias
	}
	return n
}

var errTagged = errors.New("quote text that starts with !, & or *")

// fromYAML converts a node; set is false for a null.
func fromYAML(n *yaml.Node, records bool) (r raw, set bool, err error) {
	n = dealias(n)
	switch n.Kind {
	case yaml.SequenceNode:
		r.form = sequence
		for _, item := range n.Content {
			item = dealias(item)
			text, err := scalarText(item)
			if records && item.Kind == yaml.MappingNode {
				text, err = recordText(item)
			}
			if err != nil {
				return raw{}, false, err
			}
			r.list = append(r.list, text)
		}
	case yaml.MappingNode:
		r.form = mapping
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, err1 := scalarText(dealias(n.Content[i]))
			v, err2 := scalarText(dealias(n.Content[i+1]))
			if err := errors.Join(err1, err2); err != nil {
				return raw{}, false, err
			}
			r.pairs = append(r.pairs, pair{k, v})
		}
	default:
		if n.ShortTag() == "!!null" {
			if n.Anchor != "" {
				return raw{}, false, errTagged
			}
			return raw{}, false, nil
		}
		r.text, err = scalarText(n)
	}
	return r, true, err
}

// recordText writes a map as name=value pairs with spaces between them.
func recordText(n *yaml.Node) (string, error) {
	r, _, err := fromYAML(n, false)
	var words []string
	for _, p := range r.pairs {
		if strings.ContainsFunc(p.key+p.value, unicode.IsSpace) {
			return "", errors.New("a value of the list contains a space")
		}
		words = append(words, p.key+"="+p.value)
	}
	return strings.Join(words, " "), err
}

// scalarText returns the text as written in the file, so that a password 0123 stays 0123. Tags are refused: YAML drops
// an unquoted text that starts with an exclamation mark.
func scalarText(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", errors.New("is nested too deeply")
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return n.Value, nil
	case "!!null":
		return "", errors.New("contains an entry without a value")
	}
	return "", errTagged
}

// environment applies the variables of the table. An unknown variable is a fault only if its section exists: other
// programs may use the prefix too.
func (l *loader) environment(environ []string) {
	values := map[string]string{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "CASTELLAN_") {
			values[name] = value
		}
	}
	var names []string
	for i := range table {
		e := &table[i]
		names = append(names, e.env)
		if value, ok := values[e.env]; ok {
			l.set(e, raw{text: value}, origin{FromEnv, e.env})
			delete(values, e.env)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if isSectionVariable(name) {
			l.fault(name, "", "unknown variable%s", suggest(name, names))
		}
	}
}

// isSectionVariable reports whether the variable names an existing section. The variables that Kubernetes injects for a
// service named castellan do not.
func isSectionVariable(name string) bool {
	rest := strings.TrimPrefix(name, "CASTELLAN_")
	if strings.HasPrefix(rest, "SERVICE_") || strings.HasPrefix(rest, "PORT") {
		return false
	}
	section, _, _ := strings.Cut(rest, "_")
	_, ok := sections[strings.ToLower(section)]
	return ok
}

// suggestKey suggests a key for a misspelt or misplaced one.
func suggestKey(key string) string {
	section, name, inSection := strings.Cut(key, ".")
	if !inSection {
		section, name = "", key
	}
	var siblings []string
	for _, e := range table {
		if e.section == section {
			siblings = append(siblings, e.name)
		}
	}
	if section == "" {
		siblings = append(siblings, slices.Sorted(maps.Keys(sections))...)
	}
	return suggest(name, siblings)
}

// suggest proposes the most similar name, if one is similar.
func suggest(name string, names []string) string {
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

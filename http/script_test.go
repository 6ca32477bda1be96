package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	httpapi "castellan/http"
	"castellan/http/rest"
)

// script is every endpoint in the order of the examples, section by section. Each follows
// those whose answers it names, and reads follow writes. Deletes come last, in reverse order
// of creation.
func script() (all []rest.Endpoint) {
	sections, bySection := []string{}, map[string][]rest.Endpoint{}
	for _, e := range httpapi.Endpoints() {
		if bySection[e.Section] == nil {
			sections = append(sections, e.Section)
		}
		bySection[e.Section] = append(bySection[e.Section], e)
	}
	at := map[string]int{} // the place of an operation in all, from 1
	for _, name := range sections {
		var ends []rest.Endpoint
		var put func(e rest.Endpoint)
		put = func(e rest.Endpoint) {
			if at[e.ID] > 0 {
				return
			}
			at[e.ID] = 1 // so that two that name each other end
			for _, other := range bySection[name] {
				if slices.Contains(names(e), other.ID) {
					put(other)
				}
			}
			all = append(all, e)
			at[e.ID] = len(all)
		}
		for _, reads := range []bool{false, true} { // a list shows what was added
			for _, e := range bySection[name] {
				switch last := e.Example().Last; {
				case (e.Method == "GET") != reads:
				case last:
					ends = append([]rest.Endpoint{e}, ends...)
				default:
					put(e)
				}
			}
		}
		made := func(e rest.Endpoint) (last int) {
			for _, name := range names(e) {
				last = max(last, at[name])
			}
			return last
		}
		slices.SortStableFunc(ends, func(a, b rest.Endpoint) int { return made(b) - made(a) })
		all = append(all, ends...)
	}
	return all
}

// names are the operations whose answers an example names.
func names(e rest.Endpoint) (all []string) {
	for _, found := range placeholder.FindAllStringSubmatch(e.Example().Request, -1) {
		name, _, _ := strings.Cut(found[1], ".")
		all = append(all, name)
	}
	return all
}

var placeholder = regexp.MustCompile(`\$\{([^}]+)\}`)

// filled is a request with the values of earlier answers.
func (l *live) filled(e rest.Endpoint, request string) string {
	return placeholder.ReplaceAllStringFunc(request, func(found string) string {
		v := l.value(found[2 : len(found)-1])
		if v == nil {
			l.t.Errorf("the example of %s: nothing before it answered %s", e.Key(), found)
		}
		switch v.(type) {
		case map[string]any, []any:
			text, _ := json.Marshal(v)
			return string(text)
		}
		return fmt.Sprint(v)
	})
}

func (l *live) value(path string) any {
	name, _, _ := strings.Cut(path, ".")
	if rest, ok := strings.CutPrefix(path, name+".result."); ok {
		name, path = name+".result", rest
	} else {
		path = strings.TrimPrefix(strings.TrimPrefix(path, name), ".")
	}
	v := l.said[name]
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			v = element(x, step)
		default:
			return nil
		}
	}
	if raw, ok := v.(json.RawMessage); ok {
		return string(raw)
	}
	return v
}

// element is the one of a list that a step names: by its number, or by a field, as
// in code=auditor.
func element(list []any, step string) any {
	if name, want, ok := strings.Cut(step, "="); ok {
		for _, e := range list {
			if o, ok := e.(map[string]any); ok && fmt.Sprint(o[name]) == want {
				return e
			}
		}
		return nil
	}
	if i, err := strconv.Atoi(step); err == nil && i < len(list) {
		return list[i]
	}
	return nil
}

// target is the path and the body of a request. Fields that the path names are
// taken out of it.
func target(e rest.Endpoint, request string) (path, body string) {
	path = e.Path
	if names := rest.PathParams(path); len(names) > 0 {
		query, err := url.ParseQuery(request)
		fields := map[string]json.RawMessage{}
		if e.Method != "GET" && json.Unmarshal([]byte(request), &fields) != nil || err != nil {
			return path, request
		}
		for _, name := range names {
			value := query.Get(name)
			if e.Method != "GET" {
				value = strings.Trim(string(fields[name]), `"`)
			}
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
			query.Del(name)
			delete(fields, name)
		}
		if e.Method == "GET" {
			request = query.Encode()
		} else if len(fields) == 0 {
			request = ""
		}
	}
	if e.Method == "GET" {
		if request != "" {
			path += "?" + request
		}
		return path, ""
	}
	return path, request
}

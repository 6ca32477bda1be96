package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/http/rest"
)

// Preview returns the changes that a captured request would make. It checks no permission.
func (s *Server) Preview(ctx context.Context, c Captured) ([]rest.Change, error) {
	e, in, err := c.bind(s.index)
	if err != nil {
		return nil, err
	}
	return e.Preview(ctx, in)
}

// maxAsked bounds a text of Asked, in characters: a file is not readable text.
const maxAsked = 1000

// Asked returns the fields of a captured request as an object for display. Of several sources of a field it has the
// value that Bind takes. Long texts are cut, and fields named like a secret are omitted.
func (c Captured) Asked() (json.RawMessage, error) {
	body := map[string]any{}
	if len(c.Body) > 0 {
		text := json.NewDecoder(bytes.NewReader(c.Body))
		text.UseNumber() // an amount stays as it was written
		if err := text.Decode(&body); err != nil {
			return nil, fmt.Errorf("captured body: %w", err)
		}
	}
	all := body
	switch c.Method {
	case "GET":
		maps.Copy(all, queried(c.Query))
	case "DELETE":
		all = queried(c.Query)
		maps.DeleteFunc(body, func(name string, value any) bool { return value == nil && all[name] != nil })
		maps.Copy(all, body)
	}
	for name, value := range c.Params {
		all[name] = value
	}
	return json.Marshal(readable(all))
}

// queried returns the fields of a query; a repeated one is a list. Bind ignores a pair that cannot be read, or has
// refused the request.
func queried(query string) map[string]any {
	all := map[string]any{}
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(key)
		text, err2 := url.QueryUnescape(value)
		name = strings.TrimSuffix(name, "[]")
		if err1 != nil || err2 != nil || name == "" {
			continue
		}
		switch before := all[name].(type) {
		case nil:
			all[name] = text
		case []any:
			all[name] = append(before, text)
		default:
			all[name] = []any{before, text}
		}
	}
	return all
}

// Details returns the operation and the fields of Asked, by name, for the approver of a captured request (D-EXT-09).
func (c Captured) Details() ([]challenge.Detail, error) {
	text, err := c.Asked()
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("captured request: %w", err)
	}
	out := []challenge.Detail{{Key: mfa.HeaderOperation, Value: c.Method + " " + c.Path}}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := string(fields[name])
		if plain := ""; json.Unmarshal(fields[name], &plain) == nil && value != "null" {
			value = plain
		}
		out = append(out, challenge.Detail{Key: name, Value: value})
	}
	if c.Shown != nil {
		for _, row := range c.Shown.Rows {
			out = append(out, challenge.Detail{Key: row.Key, Value: row.Value})
		}
	}
	return out, nil
}

func readable(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			if secret(name) {
				delete(value, name)
			} else {
				value[name] = readable(one)
			}
		}
	case []any:
		for i, one := range value {
			value[i] = readable(one)
		}
	case string:
		if n := utf8.RuneCountInString(value); n > maxAsked {
			return fmt.Sprintf("%s … (%d)", string([]rune(value)[:maxAsked/10]), n)
		}
	}
	return value
}

// secret reports whether a field is named like a secret. No endpoint whose calls can be
// pending has such a field today.
func secret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"password", "secret", "token", "privatekey"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "otp" || name == "pin"
}

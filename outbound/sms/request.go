package sms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/message/placeholder"
)

// body is a compiled form or JSON document.
type body struct {
	form []field
	// document holds []placeholder.Segment in place of each string; nil for a form.
	document any
}

type field struct {
	name  string
	value []placeholder.Segment
}

// compileBody also requires a placeholder for the recipient and for the text: a gateway that gets neither sometimes
// answers with success.
func compileBody(cfg Config) (body, error) {
	if (cfg.Fields == nil) == (cfg.Body == "") || cfg.Body != "" && cfg.Format != jsonFormat {
		return body{}, fmt.Errorf("either fields or, with format %s, body must be given", jsonFormat)
	}
	var b body
	var faults []error
	uses := map[string]bool{}
	compile := func(at, template string) []placeholder.Segment {
		segments, err := placeholder.Parse(template, bodyNames...)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", at, err))
		}
		for _, s := range segments {
			uses[s.Name] = true
		}
		return segments
	}
	if cfg.Body != "" {
		decoder := json.NewDecoder(strings.NewReader(cfg.Body))
		decoder.UseNumber() // an account number keeps its digits
		err := decoder.Decode(&b.document)
		if _, end := decoder.Token(); err != nil || end != io.EOF {
			return body{}, errors.New("body is not one JSON document")
		}
		b.document = mapped(b.document, func(leaf any) any {
			if s, ok := leaf.(string); ok {
				return compile("body", s)
			}
			return leaf
		})
	} else {
		object := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(cfg.Fields)) {
			value := compile(fmt.Sprintf("params %.40q", name), cfg.Fields[name])
			b.form = append(b.form, field{name, value})
			object[name] = value
		}
		if cfg.Format == jsonFormat {
			b.form, b.document = nil, object
		}
	}
	if faults == nil && !(uses["to"] || uses["digits"]) {
		faults = append(faults, errors.New("params: no field and no body uses {{to}}"))
	}
	if faults == nil && !uses["text"] {
		faults = append(faults, errors.New("params: no field and no body uses {{text}}"))
	}
	if faults == nil && uses["from"] && cfg.From == "" {
		faults = append(faults, errors.New("sender must be set, because the message uses {{from}}"))
	}
	return b, errors.Join(faults...)
}

// mapped copies a JSON value with every leaf, a value that is no array and no object, replaced.
func mapped(v any, leaf func(any) any) any {
	switch x := v.(type) {
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = mapped(e, leaf)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = mapped(e, leaf)
		}
		return out
	}
	return leaf(v)
}

// request builds the request that carries m. Its errors name no recipient.
func (s *Sender) request(ctx context.Context, key string, m message.Rendered) (*http.Request, error) {
	switch {
	case m.Channel != message.SMS:
		return nil, fmt.Errorf("message of channel %q", string(m.Channel))
	case !isPhone(m.To):
		return nil, errors.New("malformed phone number")
	case m.Text == "":
		return nil, errors.New("message without a text")
	case key == "" || strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) }):
		return nil, errors.New("malformed message key")
	}
	value := func(name string) string {
		switch name {
		case "to":
			return m.To
		case "digits":
			return m.To[1:]
		case "text":
			return m.Text
		case "from":
			return s.cfg.From
		case "key":
			return key
		}
		panic("sms: placeholder without a value: " + name) // placeholder.Parse accepts declared names only
	}
	target := *s.target
	var content io.Reader
	contentType := "application/x-www-form-urlencoded"
	switch {
	case s.body.document != nil:
		contentType = "application/json"
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		filled := mapped(s.body.document, func(leaf any) any {
			if segments, ok := leaf.([]placeholder.Segment); ok {
				return placeholder.Fill(segments, value)
			}
			return leaf
		})
		if err := encoder.Encode(filled); err != nil {
			return nil, errors.New("message cannot be encoded")
		}
		content = bytes.NewReader(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	case s.cfg.Method == http.MethodGet:
		if target.RawQuery != "" {
			target.RawQuery += "&"
		}
		target.RawQuery += s.form(value)
	default:
		content = strings.NewReader(s.form(value))
	}
	request, err := http.NewRequestWithContext(ctx, s.cfg.Method, target.String(), content)
	if err != nil {
		return nil, errors.New("request cannot be made")
	}
	for _, h := range s.header {
		request.Header.Set(h.name, placeholder.Fill(h.value, value))
	}
	if content != nil {
		request.Header.Set("Content-Type", contentType)
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "castellan")
	}
	if s.cfg.Username != "" {
		request.SetBasicAuth(s.cfg.Username, s.cfg.Password)
	}
	return request, nil
}

func (s *Sender) form(value func(string) string) string {
	out := make(url.Values, len(s.body.form))
	for _, f := range s.body.form {
		out.Set(f.name, placeholder.Fill(f.value, value))
	}
	return out.Encode()
}

// isPhone reports whether s is E.164 with the plus, the canonical form of a recipient.
func isPhone(s string) bool {
	if len(s) < 8 || len(s) > 16 || s[0] != '+' || s[1] == '0' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

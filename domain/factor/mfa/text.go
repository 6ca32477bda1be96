package mfa

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"castellan/domain/kit/legible"
)

// languages of the interface, in the order of writing. They are also searched in this order if neither the requested
// language nor a fallback exists.
var languages = []string{"tr", "en", "ar"}

// Limits of texts.
const (
	maxTextChars      = 200
	maxHeaderKeyChars = 64
	maxHeaders        = 50
)

// Text is a localized text by language: tr, en, ar. It is immutable.
type Text map[string]string

// In returns the text in a language. If that is missing or blank, it returns the English, the Turkish, then the first
// one (D-GEN-16).
func (t Text) In(lang string) string {
	if len(t) == 0 {
		return ""
	}
	for _, l := range [...]string{lang, "en", languages[0], languages[2]} {
		if s := t[l]; strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

func (t Text) Equal(u Text) bool { return maps.Equal(t, u) }

// MarshalJSON writes the languages in the order of the interface.
func (t Text) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, l := range languages {
		if s, ok := t[l]; ok {
			member(&b, l, s)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object of tr, en and ar. It refuses other keys and values that are not strings; it ignores
// null values.
func (t *Text) UnmarshalJSON(data []byte) error {
	out := Text{}
	err := object(data, func(key string, value json.RawMessage) error {
		if !slices.Contains(languages, key) {
			return fmt.Errorf("has the unknown key %.40q; known are tr, en and ar", key)
		}
		if string(value) == "null" {
			return nil
		}
		var s string
		if json.Unmarshal(value, &s) != nil {
			return fmt.Errorf("%s must be a string", key)
		}
		out[key] = s
		return nil
	})
	if err != nil {
		return err
	}
	*t = out
	return nil
}

// check validates a text before it is written.
func (t Text) check() error {
	for _, l := range languages {
		if s := t[l]; utf8.RuneCountInString(s) > maxTextChars {
			return fmt.Errorf("%s is longer than %d characters", l, maxTextChars)
		} else if !legible.Valid(s) {
			return fmt.Errorf("%s contains a control character", l)
		}
	}
	if t.In("") == "" {
		return errors.New("needs a text in at least one of tr, en and ar")
	}
	return nil
}

// Header is one row label of the table in a push approval.
type Header struct {
	Key   string
	Label Text
}

// Headers are the labels in the order of their rows (D-2FA-25). As JSON they are one object whose keys keep that
// order.
type Headers []Header

// Equal reports whether h and g are equal, including their order.
func (h Headers) Equal(g Headers) bool {
	return slices.EqualFunc(h, g, func(a, b Header) bool { return a.Key == b.Key && a.Label.Equal(b.Label) })
}

// Label returns the label of a key in a language; "" without one.
func (h Headers) Label(key, lang string) string {
	for _, e := range h {
		if e.Key == key {
			return e.Label.In(lang)
		}
	}
	return ""
}

// MarshalJSON writes the object in order.
func (h Headers) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, e := range h {
		member(&b, e.Key, e.Label)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads the object and keeps the order of its keys.
func (h *Headers) UnmarshalJSON(data []byte) error {
	out := Headers{}
	err := object(data, func(key string, value json.RawMessage) error {
		var label Text
		if err := label.UnmarshalJSON(value); err != nil {
			return fmt.Errorf("%.40q %w", key, err)
		}
		out = append(out, Header{key, label})
		return nil
	})
	if err != nil {
		return err
	}
	*h = out
	return nil
}

func (h Headers) check() error {
	if len(h) > maxHeaders {
		return fmt.Errorf("has more than %d keys", maxHeaders)
	}
	for _, e := range h {
		if strings.TrimSpace(e.Key) == "" || utf8.RuneCountInString(e.Key) > maxHeaderKeyChars ||
			!legible.Valid(e.Key) {
			return fmt.Errorf("%.40q is not usable as a key", e.Key)
		}
		if err := e.Label.check(); err != nil {
			return fmt.Errorf("%.40q %w", e.Key, err)
		}
	}
	return nil
}

// object calls each for every member of a JSON object, in order. The text is strict JSON: without a key twice, and
// complete.
func object(data []byte, each func(key string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return errors.New("must be an object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := each(fmt.Sprint(key), value); err != nil {
			return err
		}
	}
	return nil
}

func member(b *bytes.Buffer, key string, value any) {
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	k, _ := json.Marshal(key) // encoding strings and texts never fails
	v, _ := json.Marshal(value)
	b.Write(k)
	b.WriteByte(':')
	b.Write(v)
}

// Choice is one method of a policy. On the wire it is a tuple, [code] or [code, template].
type Choice struct {
	Code     string
	Template string // "": the built-in message
}

// Tuple returns the choice in its normal form: no empty template.
func (ch Choice) Tuple() []string {
	if ch.Template == "" {
		return []string{ch.Code}
	}
	return []string{ch.Code, ch.Template}
}

func (ch Choice) MarshalJSON() ([]byte, error) { return json.Marshal(ch.Tuple()) }

var errTuples = errors.New("must be an array of [methodCode, templateName]")

// UnmarshalJSON reads a tuple; it ignores a template that is null or blank (D-MFA-04).
func (ch *Choice) UnmarshalJSON(data []byte) error {
	var tuple []*string
	if json.Unmarshal(data, &tuple) != nil || len(tuple) == 0 || len(tuple) > 2 || tuple[0] == nil {
		return errTuples
	}
	*ch = Choice{Code: *tuple[0]}
	if len(tuple) == 2 && tuple[1] != nil && strings.TrimSpace(*tuple[1]) != "" {
		ch.Template = *tuple[1]
	}
	return nil
}

// Choices are the methods of a policy in their wire form.
type Choices []Choice

// UnmarshalJSON reads an array of tuples.
func (cs *Choices) UnmarshalJSON(data []byte) error {
	var list []Choice
	if json.Unmarshal(data, &list) != nil || list == nil {
		return errTuples
	}
	*cs = list
	return nil
}

package sms

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Success is the sign by which a body means success; the zero value needs none, so that the status alone decides.
type Success struct {
	Pattern string // RE2, searched in the body without the spaces around it
	// Field is the path of a value in a JSON body, such as response.status.code or messages.0.status.
	Field  string
	Values []string // the accepted values of Field, as texts: 200 accepts 200 and "200"
}

// sign is a compiled Success.
type sign struct {
	pattern *regexp.Regexp
	path    []string
	values  []string
}

func (s Success) compile() (out sign, err error) {
	switch {
	case s.Pattern != "" && s.Field != "":
		return out, errors.New("either a success pattern or a success field may be given")
	case (s.Field == "") != (len(s.Values) == 0):
		return out, errors.New("a success field and its success values must be given together")
	case s.Pattern != "":
		if out.pattern, err = regexp.Compile(s.Pattern); err != nil {
			return out, errors.New("success_pattern is not a regular expression")
		}
		if out.pattern.MatchString("") {
			return out, errors.New("success_pattern matches an empty body")
		}
	case s.Field != "":
		out.path, out.values = strings.Split(s.Field, "."), s.Values
		if slices.Contains(out.path, "") {
			return out, errors.New("success_field has an empty step")
		}
	}
	return out, nil
}

func (s sign) needed() bool { return s.pattern != nil || s.path != nil }

// missing says in which way a body lacks the sign; "" means success. It describes values by their shape, because a
// gateway may quote the message and its recipient.
func (s sign) missing(body []byte) string {
	text := strings.TrimSpace(strings.TrimPrefix(string(body), "\ufeff"))
	switch {
	case s.pattern != nil && s.pattern.MatchString(text):
		return ""
	case s.pattern != nil:
		return "the body is " + shape(text)
	}
	var v any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // compared as written
	if decoder.Decode(&v) != nil || decoder.InputOffset() != int64(len(text)) {
		return "the body is not JSON but " + shape(text)
	}
	for _, step := range s.path {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(x) {
				return s.name() + " is missing"
			}
			v = x[i]
		default:
			return s.name() + " is missing"
		}
	}
	switch v.(type) {
	case nil:
		return s.name() + " is missing"
	case string, json.Number, bool:
		value := fmt.Sprint(v)
		if slices.Contains(s.values, value) {
			return ""
		}
		return s.name() + " is " + shape(value)
	}
	return s.name() + " is a list or an object"
}

func (s sign) name() string { return strings.Join(s.path, ".") }

const (
	// maxShapeRunes is how much of a value is described.
	maxShapeRunes = 24
	// maxReasonDigits is the length of a reason such as 30 or 451. A code of the service has more digits.
	maxReasonDigits = 3
)

// shape describes a value: its length, and 9 for each digit and a for each letter at its beginning. A value that is
// nothing but a few digits is the gateway's reason and is shown.
func shape(value string) string {
	if value == "" {
		return "empty"
	}
	if len(value) <= maxReasonDigits && strings.Trim(value, "0123456789") == "" {
		return value
	}
	var b strings.Builder
	for _, r := range value {
		if b.Len() == maxShapeRunes {
			b.WriteString("...")
			break
		}
		switch {
		case unicode.IsDigit(r):
			r = '9'
		case unicode.IsSpace(r):
			r = ' '
		case r >= utf8.RuneSelf || unicode.IsLetter(r) || unicode.IsControl(r):
			r = 'a'
		}
		b.WriteRune(r)
	}
	return fmt.Sprintf("a text of %d characters like %q", utf8.RuneCountInString(value), b.String())
}

package config

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
)

// hidden replaces a secret.
const hidden = "(hidden)"

// Secret is text that must not be seen. Every way of printing or encoding it gives "(hidden)", or "" if it is not set;
// only Reveal gives the text.
type Secret string

// Reveal returns the text. Pass it only to the call that needs it.
func (s Secret) Reveal() string { return string(s) }

// String redacts.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format redacts every verb: without it fmt prints the text of a Secret in its message about a wrong verb, such as %d.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text)
}

// LogValue redacts in log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText redacts in JSON, YAML and all other text encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Secrets is a map whose values are secret; its keys may be shown.
type Secrets map[string]Secret

// Reveal returns the map with its texts.
func (s Secrets) Reveal() map[string]string {
	if s == nil {
		return nil
	}
	m := make(map[string]string, len(s))
	for k, v := range s {
		m[k] = v.Reveal()
	}
	return m
}

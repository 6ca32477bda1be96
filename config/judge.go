package config

import (
	"net/url"
	"sort"
	"strings"
)

// AllKeys lists every dotted key, in the order of Config.
func AllKeys() []string {
	keys := make([]string, len(table))
	for i, e := range table {
		keys[i] = e.key
	}
	return keys
}

// Shown returns the value of a key as Describe writes it: a secret is "(hidden)".
func (c Config) Shown(key string) string {
	e, ok := byKey[key]
	if !ok {
		return ""
	}
	text, _ := c.shown(*e)
	return text
}

// minHidden is the minimum length of a part of a secret that is replaced in a text, in bytes.
const minHidden = 4

// Hide replaces every secret of the configuration in a text. It is the last protection for texts of other programs,
// such as the answer of a server.
func (c Config) Hide(text string) string {
	var parts []string
	for _, e := range table {
		switch p := e.field(&c).(type) {
		case *Secret:
			parts = append(parts, secretParts(p.Reveal())...)
		case *Secrets:
			for _, s := range *p {
				parts = append(parts, secretParts(s.Reveal())...)
			}
		}
	}
	// Long parts come first: a part that contains another must not be split.
	sort.Slice(parts, func(i, j int) bool { return len(parts[i]) > len(parts[j]) })
	for _, p := range parts {
		if len(p) >= minHidden {
			text = strings.ReplaceAll(text, p, hidden)
		}
	}
	return text
}

// secretParts returns the texts of a secret that must not be seen. For a URL these are the password, the path and the
// query; its host may be named.
func secretParts(s string) (parts []string) {
	if strings.HasPrefix(s, "sqlite:") {
		return nil
	}
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		if p, ok := u.User.Password(); ok {
			parts = append(parts, p, url.QueryEscape(p))
		}
		database := u.Scheme == "postgres" || u.Scheme == "postgresql" // its path is a name that may be shown
		for name, values := range u.Query() {
			if !database || !harmless[strings.ToLower(name)] {
				parts = append(parts, values...)
			}
		}
		if database {
			return parts
		}
		return append(parts, u.RawQuery, u.EscapedPath(), strings.Trim(u.EscapedPath(), "/"))
	}
	parts = append(parts, s)
	if strings.Contains(s, "{{") { // a template: its words may occur in any text
		return parts
	}
	for word := range strings.FieldsSeq(s) {
		parts = append(parts, word)
		parts = append(parts, strings.Split(word, ":")...)
	}
	return parts
}

package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Describe returns the configuration as YAML that Load reads: every key with its explanation, bounds, variable and the
// layer of its value. Secrets are hidden and therefore commented out; they must be supplied again.
func (c Config) Describe() string {
	var b strings.Builder
	b.WriteString("# Configuration of castellan. A value comes from the environment, else from the file, else it is " +
		"the default.\n" +
		"# In a variable a list is written a,b and a map k=v,k=v. Secrets are hidden: set them here or by their " +
		"variable.\n\n")
	section := ""
	for _, e := range table {
		indent := ""
		if e.section != "" {
			indent = "  "
		}
		if e.section != section {
			section = e.section
			fmt.Fprintf(&b, "\n# %s\n%s:\n", sections[section], section)
		}
		fmt.Fprintf(&b, "%s# %s%s\n", indent, e.doc, e.bounds())
		value, whole := c.shown(e)
		if !whole {
			value = "# " + e.name + ": " + value
		} else {
			value = e.name + ": " + value
		}
		fmt.Fprintf(&b, "%s%s # %s (%s)\n", indent, value, e.env, c.Source(e.key))
	}
	return b.String()
}

// shown returns the value as YAML; the two URLs show only their parts that are not secret.
func (c Config) shown(e entry) (text string, whole bool) {
	switch e.key {
	case "database.url":
		text, whole = showURL(c.Database.URL.Reveal(), true, harmless)
	case "sms.url":
		text, whole = showURL(c.SMS.URL.Reveal(), false, nil)
	default:
		return format(e.field(&c))
	}
	return strconv.Quote(text), whole
}

// bounds writes the values that Load accepts, in brackets.
func (e entry) bounds() string {
	switch {
	case e.oneof != nil:
		words := make([]string, len(e.oneof))
		for i, w := range e.oneof {
			words[i] = w
			if w == "" {
				words[i] = "empty"
			}
		}
		return " [" + strings.Join(words, " | ") + "]"
	case e.bounded && e.floor > e.min:
		return fmt.Sprintf(" [%s to %s; in development mode from %s]", e.show(e.floor), e.show(e.max), e.show(e.min))
	case e.bounded:
		return fmt.Sprintf(" [%s to %s]", e.show(e.min), e.show(e.max))
	}
	return ""
}

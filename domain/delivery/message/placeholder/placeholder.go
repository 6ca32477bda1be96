// Package placeholder owns the syntax of texts with blanks: a name of letters, digits and underscores between double
// braces. A text is split once into segments. Filling it copies them in order, so a value that looks like a
// placeholder is unchanged. Start reading at Parse.
package placeholder

import (
	"fmt"
	"slices"
	"strings"
)

// Segment is a literal piece of a text, or a blank.
type Segment struct {
	Literal string
	// Name is the blank's name; "" for a literal.
	Name string
}

// Parse splits text into its segments; literals are never empty and never adjacent. An unknown name, an empty one and
// an opening without an end are errors. So a typo is found when a text is stored, not when it is sent. A lone "}}" is
// text.
func Parse(text string, known ...string) ([]Segment, error) {
	var out []Segment
	for text != "" {
		literal, rest, found := strings.Cut(text, "{{")
		if literal != "" {
			out = append(out, Segment{Literal: literal})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, fmt.Errorf("placeholder opened but not closed")
		}
		name = strings.Trim(name, " ")
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown placeholder %.40q, known: %s", name, strings.Join(known, " "))
		}
		out = append(out, Segment{Name: name})
		text = after
	}
	return out, nil
}

// Fill joins the segments with the values of the blanks. It is the simple way; package message has its own for the
// hot path.
func Fill(segments []Segment, value func(name string) string) string {
	if len(segments) == 1 && segments[0].Name == "" {
		return segments[0].Literal
	}
	var b strings.Builder
	for _, s := range segments {
		if s.Name == "" {
			b.WriteString(s.Literal)
		} else {
			b.WriteString(value(s.Name))
		}
	}
	return b.String()
}

package rest

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"castellan/domain/kit/sorting"
)

// A phrase is one text of a refusal in the languages of D-GEN-16. In each
// language %s stands for any text, in the same order.
//
// Tables of phrases are next to the code that uses them: the kit's in phrases.tsv of this
// package, a section's in phrases.tsv of its folder. They serve INVALID_FIELD and
// CHAR_LIMIT_EXCEEDED, whose titles do not name the problem.
type phrase struct{ en, tr, ar string }

func (p phrase) in(language string) string {
	if language == "tr" {
		return p.tr
	}
	return p.ar
}

// fixed is the number of bytes of the English text outside of %s.
func (p phrase) fixed() int { return len(p.en) - strings.Count(p.en, "%s")*len("%s") }

// exactly holds the phrases without %s, alike those with it, the most specific
// one first. Both are complete before the first request.
var (
	exactly = map[string]phrase{}
	alike   []phrase
)

//go:embed phrases.tsv
var kitPhrases string

func init() {
	if err := AddPhrases(kitPhrases); err != nil {
		panic(err)
	}
}

// AddPhrases adds a table of phrases: lines of English, Turkish and Arabic,
// separated by tabs, under a line that names the columns. Call it from init
// only: nothing guards the table against requests.
//
// It returns an error for a line that lacks a language, has a different number of %s in one of
// them, or is in a table already.
func AddPhrases(table string) error {
	if head, _, _ := strings.Cut(table, "\n"); head != "en\ttr\tar" {
		return fmt.Errorf("rest: a table of phrases begins with %q", head)
	}
	for _, text := range Rows(table) {
		if len(text) != 3 || slices.Contains(text, "") {
			return fmt.Errorf("rest: phrase %q needs English, Turkish and Arabic", text)
		}
		p := phrase{text[0], text[1], text[2]}
		n := strings.Count(p.en, "%s")
		if strings.Count(p.tr, "%s") != n || strings.Count(p.ar, "%s") != n {
			return fmt.Errorf("rest: phrase %q holds other texts in another language", p.en)
		}
		if _, twice := exactly[p.en]; twice || slices.ContainsFunc(alike, func(x phrase) bool { return x.en == p.en }) {
			return fmt.Errorf("rest: phrase %q is defined twice", p.en)
		}
		if n == 0 {
			exactly[p.en] = p
		} else {
			alike = append(alike, p)
		}
	}
	sorting.Stable(alike, func(a, b phrase) int { return b.fixed() - a.fixed() })
	return nil
}

// Translated translates an English text into Turkish (tr) or Arabic (ar); ok is false if no
// phrase fits. A quoted value may precede the phrase.
func Translated(text, language string) (said string, ok bool) {
	if p, ok := exactly[text]; ok {
		return p.in(language), true
	}
	if value, err := strconv.QuotedPrefix(text); err == nil {
		if said, ok := Translated(strings.TrimSpace(text[len(value):]), language); ok {
			return value + " " + said, true
		}
	}
	for _, p := range alike {
		if held, ok := p.holds(text); ok {
			parts := strings.Split(p.in(language), "%s")
			said = parts[0]
			for i, h := range held {
				if w, ok := Translated(h, language); ok {
					h = w
				}
				said += h + parts[i+1]
			}
			return said, true
		}
	}
	return "", false
}

// InLanguage returns a text in a language; the English text itself if it has no translation.
func InLanguage(text, language string) string {
	if said, ok := Translated(text, language); ok && language != "en" {
		return said
	}
	return text
}

// holds returns the texts in place of %s if the phrase matches text.
func (p phrase) holds(text string) (held []string, ok bool) {
	parts := strings.Split(p.en, "%s")
	if text, ok = strings.CutPrefix(text, parts[0]); !ok {
		return nil, false
	}
	for i, part := range parts[1:] {
		var h string
		if last := i == len(parts)-2; last {
			h, ok = strings.CutSuffix(text, part)
		} else {
			h, text, ok = strings.Cut(text, part)
		}
		if !ok || h == "" {
			return nil, false
		}
		held = append(held, h)
	}
	return held, true
}

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// finding is a sentence that breaks a rule.
type finding struct {
	file     string
	line     int
	rule     string
	sentence string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.rule, f.sentence)
}

const maxWords = 30

// rules are the patterns that no sentence may have.
var rules = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"a sentence starts with its subject", regexp.MustCompile(
		`^(?:Who|Whom|Whose|What|Whoever|Whatever|Whichever)\b[^?]*$`)},
	{"name the actor", regexp.MustCompile(
		`(?i)\b(?:nobody|somebody|everybody|anybody|whoever|someone else's|whomever)\b`)},
	{`use "again" or a verb`, regexp.MustCompile(`(?i)\banew\b`)},
	{`write "reports whether"`, regexp.MustCompile(`(?i)\btells? whether\b`)},
	{`use "is" or "are"`, regexp.MustCompile(`(?i)\bstands\b(?: for\b)?`)},
	{"a comment says more than its interface", regexp.MustCompile(`^\w+ implements [\w.]+\.$`)},
}

// judge applies the rules to each sentence of a paragraph.
func judge(file string, p paragraph) (found []finding) {
	for _, s := range sentences(p.text) {
		add := func(rule string) { found = append(found, finding{file, p.line, rule, s}) }
		plain := code.ReplaceAllString(s, "code")
		for _, r := range rules {
			if m := r.pattern.FindString(plain); m != "" && !strings.HasSuffix(strings.ToLower(m), "stands for") {
				add(r.name)
			}
		}
		if n := words(s); n > maxWords {
			add(fmt.Sprintf("at most %d words, this has %d", maxWords, n))
		}
	}
	return found
}

var (
	abbreviation = regexp.MustCompile(`\b(?:e\.g|i\.e|etc|vs|cf|No|approx)\.$`)
	code         = regexp.MustCompile("`[^`]*`")
	link         = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	word         = regexp.MustCompile(`[\p{L}\p{N}][^\s]*`)
)

// sentences splits a paragraph after a full stop, a colon before a list, or the like.
func sentences(text string) (all []string) {
	text = link.ReplaceAllString(text, "$1")
	var now []string
	for _, w := range strings.Fields(text) {
		now = append(now, w)
		end := strings.TrimRight(w, `)"'”*_`)
		if strings.ContainsAny(end[max(0, len(end)-1):], ".!?;") && !abbreviation.MatchString(end) {
			all, now = append(all, strings.Join(now, " ")), nil
		}
	}
	if len(now) > 0 {
		all = append(all, strings.Join(now, " "))
	}
	return all
}

// words counts the words of a sentence; code counts as one word.
func words(sentence string) int {
	return len(word.FindAllString(code.ReplaceAllString(sentence, "code"), -1))
}

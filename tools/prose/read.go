package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// paragraph is a text that is read as a whole, and its first line.
type paragraph struct {
	line int
	text string
}

// reader returns the function that finds the texts of a file; nil for a file without our own texts.
func reader(file string) func(string) []paragraph {
	switch {
	case strings.Contains(file, "testdata/"), strings.HasPrefix(file, "web/console/"),
		file == "docs/style.md": // holds bad examples
		return nil
	case file == "docs/openapi.json", file == "docs/asyncapi.json":
		return described
	case strings.HasPrefix(file, "console/src/text/en"):
		return quoted
	}
	switch path.Ext(file) {
	case ".go":
		if strings.HasSuffix(file, "_test.go") {
			return commented
		}
		return goTexts
	case ".ts", ".tsx", ".js":
		if strings.HasSuffix(file, ".d.ts") {
			return nil
		}
		return scripted
	case ".md":
		return written
	case ".tsv":
		if path.Base(file) == "phrases.tsv" {
			return phrased
		}
	}
	return nil
}

// goTexts reads the comments and the literals of Go.
func goTexts(text string) []paragraph {
	set, file := parsed(text)
	return append(comments(set, file), literals(set, file)...)
}

// commented reads the comments of Go alone.
func commented(text string) []paragraph { return comments(parsed(text)) }

// parsed returns an empty file for a text that is generated or not Go.
func parsed(text string) (*token.FileSet, *ast.File) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return set, new(ast.File)
	}
	return set, file
}

// comments reads the comments, a paragraph at a time; indented lines are code.
func comments(set *token.FileSet, file *ast.File) (all []paragraph) {
	for _, group := range file.Comments {
		var lines []string
		start := set.Position(group.Pos()).Line
		for _, c := range group.List {
			if t, ok := strings.CutPrefix(c.Text, "//"); ok {
				if strings.HasPrefix(t, "go:") || strings.HasPrefix(t, "nolint") || strings.HasPrefix(t, "#nosec") {
					t = ""
				}
				lines = append(lines, t)
				continue
			}
			lines = append(lines, strings.Split(strings.Trim(c.Text, "/*"), "\n")...)
		}
		all = append(all, paragraphs(lines, start, indented)...)
	}
	return all
}

// paragraphs joins lines up to an empty one; it skips a line for which code returns true. An item of a list begins a
// paragraph.
func paragraphs(lines []string, start int, code func(string) bool) (all []paragraph) {
	var now []string
	from := start
	end := func() {
		if len(now) > 0 {
			all = append(all, paragraph{from, strings.Join(now, " ")})
		}
		now = nil
	}
	for n, line := range lines {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || code(line) {
			end()
			continue
		}
		if item.MatchString(trimmed) {
			end()
			trimmed = item.ReplaceAllString(trimmed, "")
		}
		if len(now) == 0 {
			from = start + n
		}
		now = append(now, trimmed)
	}
	end()
	return all
}

// indented is the rule of Go: indented lines are code.
func indented(l string) bool { return strings.HasPrefix(l, "\t") || strings.HasPrefix(l, "  ") }

// never is the rule for texts without lines of code.
func never(string) bool { return false }

var item = regexp.MustCompile(`^(?:[-*+] |\d+\. |#+ |> )`)

// written reads Markdown: blocks of code are skipped, and a cell of a table is a paragraph.
func written(text string) (all []paragraph) {
	fenced := false
	var lines []string
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
			line = ""
		case fenced:
			line = ""
		case strings.HasPrefix(trimmed, "|"):
			for cell := range strings.SplitSeq(trimmed, "|") {
				all = append(all, paragraph{n + 1, strings.TrimSpace(cell)})
			}
			line = ""
		case strings.HasPrefix(trimmed, "#"):
			all = append(all, paragraph{n + 1, strings.TrimLeft(trimmed, "# ")})
			line = ""
		}
		lines = append(lines, line)
	}
	return append(all, paragraphs(lines, 1, never)...)
}

var (
	lineComment = regexp.MustCompile(`^\s*(?://|\*|/\*\*?)\s?(.*?)(?:\*/)?$`)
	literal     = regexp.MustCompile("'((?:[^'\\\\]|\\\\.)*)'|\"((?:[^\"\\\\]|\\\\.)*)\"|`((?:[^`\\\\]|\\\\.)*)`")
)

// scripted reads the comments of TypeScript and JavaScript that are on a separate line.
func scripted(text string) (all []paragraph) {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		m := lineComment.FindStringSubmatch(line)
		if m == nil {
			lines = append(lines, "")
			continue
		}
		lines = append(lines, m[1])
	}
	return paragraphs(lines, 1, never)
}

// quoted reads the literals of a file of texts.
func quoted(text string) (all []paragraph) {
	all = scripted(text)
	for n, line := range strings.Split(text, "\n") {
		for _, m := range literal.FindAllStringSubmatch(line, -1) {
			all = append(all, paragraph{n + 1, m[1] + m[2] + m[3]})
		}
	}
	return all
}

// phrased reads the English column of a table of phrases.
func phrased(text string) (all []paragraph) {
	for n, line := range strings.Split(text, "\n") {
		english, _, _ := strings.Cut(line, "\t")
		all = append(all, paragraph{n + 1, english})
	}
	return all
}

// described reads the summaries, descriptions and titles of a document of the interface.
func described(text string) (all []paragraph) {
	var root any
	if json.Unmarshal([]byte(text), &root) != nil {
		return nil
	}
	seen := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if s, ok := value.(string); ok && (key == "summary" || key == "description" || key == "title") && !seen[s] {
					seen[s] = true
					for part := range strings.SplitSeq(s, "\n\n") {
						all = append(all, paragraph{1, part})
					}
				}
				walk(value)
			}
		case []any:
			for _, value := range v {
				walk(value)
			}
		}
	}
	walk(root)
	return all
}

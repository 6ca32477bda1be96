package main

import (
	"slices"
	"strings"
	"testing"
)

// Each bad text breaks exactly the named rule, and each good text breaks none.
func TestJudge(t *testing.T) {
	long := strings.Repeat("word ", 31) + "."
	for _, c := range []struct{ file, text, rule string }{
		{"a.go", "package a\n\n// Who asks sees it.\nvar x int\n", "a sentence starts with its subject"},
		{"a.go", "package a\n\n// It is so. What holds is kept.\nvar x int\n", "a sentence starts with its subject"},
		{"a.go", "package a\n\n// x is what\n// nobody knows.\nvar x int\n", "name the actor"},
		{"a.go", "package a\n\n// List implements Store.\nfunc List() {}\n", "a comment says more than its interface"},
		{"a.go", "package a\n\n// " + long + "\nvar x int\n", "at most 30 words, this has 31"},
		{"a.go", "package a\n\n// It tells whether.\nvar x int\n", `write "reports whether"`},
		{"a.go", "package a\n\nvar x = \"it is not \" +\n\t\"known to anybody\"\n", "name the actor"},
		{"a.go", "package a\n\nvar x = f(`what it is follows here`)\n", "a sentence starts with its subject"},
		{"a.go", "package a\n\ntype x struct {\n\ty int `help:\"Nobody reads it at all.\"`\n}\n", "name the actor"},
		{"a.go", "package a\n\nvar x = \"" + long + "\"\n", "at most 30 words, this has 31"},
		{"a.md", "# Who is there\n", "a sentence starts with its subject"},
		{"a.md", "| Built anew |\n", `use "again" or a verb`},
		{"a.md", "- It stands there.\n", `use "is" or "are"`},
		{"http/a/phrases.tsv", "nobody has it\tx\ty\n", "name the actor"},
		{"console/src/text/en/a.ts", "export default { a: 'Who holds which' }\n", "a sentence starts with its subject"},
		{"docs/openapi.json", `{"info":{"description":"Nobody may."}}`, "name the actor"},

		{"a.go", "package a\n\n// Get returns the record.\nvar x = \"nobody\"\n", ""},
		{"a.go", "package a\n\nvar x = `SELECT nobody AS a FROM somebody ORDER BY a`\n", ""},
		{"a.go", "package a\n\nvar x = `{\"a\": \"this is not for anybody at all\"}`\n", ""},
		{"a.go", "package a\n\nvar x = \"" + strings.Repeat("Name ", 31) + "\"\n", ""},
		{"a.go", "package a\n\nvar x = y{Description: \"docs/openapi.json has this for anybody\"}\n", ""},
		{"a_test.go", "package a\n\nvar x = \"nobody reads this in a test\"\n", ""},
		{"a.go", "package a\n\n// A field:\n//\n//\tnobody\nvar x int\n", ""},
		{"a.md", "What is a challenge?\n\n```\nnobody\n```\n", ""},
		{"a.md", "x stands for y, `" + strings.Repeat("word ", 40) + "`.\n", ""},
		{"a.md", "- one\n- two\n\nDr. [name](http://nobody)\n", ""},
		{"a.md", "The caller `nobody` has no token.\n", ""},
		{"web/console/a.js", "// nobody\n", ""},
	} {
		read := reader(c.file)
		var rules []string
		if read != nil {
			for _, p := range read(c.text) {
				for _, f := range judge(c.file, p) {
					rules = append(rules, f.rule)
				}
			}
		}
		if got := strings.Join(rules, ", "); got != c.rule {
			t.Errorf("%s: %q breaks %q, want %q", c.file, c.text, got, c.rule)
		}
	}
}

// A finding names the line where its paragraph begins.
func TestLine(t *testing.T) {
	got := commented("package a\n\n// One.\n//\n// Nobody.\nvar x int\n")
	if len(got) != 2 || got[1].line != 5 || got[1].text != "Nobody." {
		t.Fatalf("read %v", got)
	}
}

// A text of several lines has the line of each paragraph; a joined text has the line of its beginning.
func TestLineOfLiteral(t *testing.T) {
	got := goTexts("package a\n\nvar x = `The first of two paragraphs.\n\nThe second of two\nparagraphs.`\n\n" +
		"var y = \"one text in \" +\n\t\"two literals\"\n")
	want := []paragraph{{3, "The first of two paragraphs."}, {5, "The second of two paragraphs."},
		{8, "One text in two literals"}}
	if !slices.Equal(got, want) {
		t.Fatalf("read %v, want %v", got, want)
	}
}

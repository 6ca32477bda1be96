package archtest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// excerpt is a block of Go whose first line names its file.
	excerpt = regexp.MustCompile("(?ms)^```go\n// (\\S+\\.go)\n(.*?)^```$")
	// linked is a link from the name of a declaration to its file.
	linked = regexp.MustCompile("\\[`(?:(\\w+)\\.)?(\\w+)`\\]\\(([^)\\s#]+\\.go)\\)")
)

// The recipe shows the tree: a file declares each name that is linked to it, and has every line of an excerpt, in this
// order. A line with … replaces omitted lines.
func TestRecipeShowsTheTree(t *testing.T) {
	all := texts(t)
	const recipe = "docs/add-a-section.md"
	links := linked.FindAllStringSubmatch(all[recipe], -1)
	for _, l := range links {
		declares := `(?m)^(func|type|var|const) ` + l[2] + `\b`
		if l[1] != "" {
			declares = `(?m)^func \((\w+ )?\*?` + l[1] + `\) ` + l[2] + `\(`
		}
		if !regexp.MustCompile(declares).MatchString(all[path.Join("docs", l[3])]) {
			t.Errorf("%s: %s does not declare %s", recipe, l[3], strings.TrimPrefix(l[1]+"."+l[2], "."))
		}
	}
	blocks := excerpt.FindAllStringSubmatch(all[recipe], -1)
	for _, b := range blocks {
		rest := words(all[b[1]])
		for _, line := range words(b[2]) {
			if line == "" || strings.Contains(line, "…") {
				continue
			}
			at := slices.Index(rest, line)
			if at < 0 {
				t.Errorf("%s shows a line that %s does not have there:\n%s", recipe, b[1], line)
				break
			}
			rest = rest[at+1:]
		}
	}
	if len(links) < 15 || len(blocks) < 2 {
		t.Errorf("%d links and %d excerpts were found", len(links), len(blocks))
	}
}

// words returns the lines of a text without the white space that aligns them.
func words(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

package archtest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// excerpt is a block of Go whose first line names its file.
var excerpt = regexp.MustCompile("(?ms)^```go\n// (\\S+\\.go)\n(.*?)^```$")

// The recipe shows the tree: every line of an excerpt is in its file, in this order. A line with … represents
// omitted lines.
func TestRecipeShowsTheTree(t *testing.T) {
	all := texts(t)
	blocks := excerpt.FindAllStringSubmatch(all["docs/add-a-section.md"], -1)
	for _, b := range blocks {
		rest := words(all[b[1]])
		for _, line := range words(b[2]) {
			if line == "" || strings.Contains(line, "…") {
				continue
			}
			at := slices.Index(rest, line)
			if at < 0 {
				t.Errorf("docs/add-a-section.md shows a line that %s does not have there:\n%s", b[1], line)
				break
			}
			rest = rest[at+1:]
		}
	}
	if len(blocks) < 10 {
		t.Errorf("%d excerpts were found", len(blocks))
	}
}

// words are the lines of a text without the white space by which they are aligned.
func words(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

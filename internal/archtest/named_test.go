package archtest

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// The security documents name tests and files that exist. The checklist of ASVS names no requirement twice and
// gives the state of each.
func TestSecurityDocumentsNameWhatExists(t *testing.T) {
	all := texts(t)
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for name, text := range all {
		if strings.HasSuffix(name, "_test.go") {
			for _, found := range declared.FindAllStringSubmatch(text, -1) {
				tests[found[1]] = true
			}
		}
	}
	named := regexp.MustCompile("`([A-Za-z][A-Za-z0-9_./-]*)`")
	known := regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`)
	place := regexp.MustCompile(`^(actors|client|cluster|cmd|config|docs|domain|http|internal|outbound|persistence|` +
		`scripts|test|tools|web)/`)
	count := 0
	for _, document := range []string{"docs/asvs.md", "docs/threat-model.md", "docs/security.md", "SECURITY.md"} {
		for _, found := range named.FindAllStringSubmatch(all[document], -1) {
			switch word := found[1]; {
			case known.MatchString(word):
				if count++; !tests[word] {
					t.Errorf("%s names the test %s, which does not exist", document, word)
				}
			case place.MatchString(word):
				if _, err := os.Stat(path.Join(moduleRoot(t), word)); err != nil {
					t.Errorf("%s names %s, which does not exist", document, word)
				}
			}
		}
	}
	row := regexp.MustCompile(`(?m)^\| (\d+\.\d+\.\d+[^|]*) \| [^|]+ \| (met|in part|not met|–) \| ([^|]*)\|([^|]*)\|$`)
	seen := map[string]bool{}
	for _, found := range row.FindAllStringSubmatch(all["docs/asvs.md"], -1) {
		for id := range strings.SplitSeq(found[1], ", ") {
			if seen[id] {
				t.Errorf("the requirement %s stands twice", id)
			}
			seen[id] = true
		}
		if found[2] == "met" && strings.TrimSpace(found[3]+found[4]) == "" {
			t.Errorf("%s is met, and nothing says where", found[1])
		}
	}
	if lines := strings.Count(all["docs/asvs.md"], "\n| "); len(seen) < 200 || count < 100 ||
		len(row.FindAllString(all["docs/asvs.md"], -1)) != lines-1 {
		t.Errorf("%d requirements in %d lines, %d tests: the search is broken, or a line has another form", len(seen), lines,
			count)
	}
}

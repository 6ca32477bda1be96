package archtest

import (
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// named is a path from the root, at most with the name of a declaration behind it (domain/money/provider.Named).
	named = regexp.MustCompile(`(^|[^\w./$*{}-])(?:\./)?([a-z]\w*/[\w./-]*\w)`)
	// declaration is the name behind a package's path.
	declaration = regexp.MustCompile(`\.[A-Z]\w*(\.\w+)?$`)
	// placeholder is a part of a path that the reader fills in, such as AREA.
	placeholder = regexp.MustCompile(`(^|/)[A-Z]+(/|$)`)
	// source is a file by its name alone, in backquotes.
	source = regexp.MustCompile("`([\\w-]+\\.(?:go|proto|sh|sql|tsx?|tsv))`")
	// testName is a test in backquotes.
	testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)[/`]")
	// declared is the declaration of a test.
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	// goTest is a command. inFolder is the package that it tests, and picked what it runs there.
	goTest   = regexp.MustCompile("go test [^`\n]*")
	inFolder = regexp.MustCompile(` \./([\w/]+)( |$)`)
	picked   = regexp.MustCompile(` -(?:run|bench|fuzz) '?([^\s']+)`)
	nothing  = regexp.MustCompile(`^(\^\$+|xxx|XXX)$`)
	// built is output that no clone has.
	built = regexp.MustCompile(`(^bin|/node_modules)(/|$)`)
)

// A path, a source file or a test that a document or a comment names exists. Only a path that begins with a folder of
// the root is a path here.
func TestDocumentsNameWhatExists(t *testing.T) {
	all, root := texts(t), moduleRoot(t)
	roots, bases, tests := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for name, text := range all {
		first, _, _ := strings.Cut(name, "/")
		roots[first], bases[path.Base(name)] = true, true
		if strings.HasSuffix(name, "_test.go") {
			for _, found := range declared.FindAllStringSubmatch(text, -1) {
				tests[found[1]] = true
			}
		}
	}
	count := 0
	for name, text := range all {
		if name == "CHANGELOG.md" || strings.Contains(name, "testdata/") || // of the past, or of others
			name == "docs/endpoints.md" || generated.MatchString(text) { // its links are relative to http
			continue
		}
		for n, line := range prose(name, text) {
			for _, found := range named.FindAllStringSubmatch(line, -1) {
				to := declaration.ReplaceAllString(found[2], "")
				if first, _, _ := strings.Cut(to, "/"); !roots[first] || placeholder.MatchString(to) || built.MatchString(to) {
					continue
				}
				count++
				if _, err := os.Stat(path.Join(root, to)); err != nil {
					t.Errorf("%s:%d: %s does not exist", name, n+1, to)
				}
			}
			for _, found := range source.FindAllStringSubmatch(line, -1) {
				if !bases[found[1]] {
					t.Errorf("%s:%d: no file is named %s", name, n+1, found[1])
				}
			}
			for _, found := range testName.FindAllStringSubmatch(line, -1) {
				if !tests[found[1]] {
					t.Errorf("%s:%d: no test is named %s", name, n+1, found[1])
				}
			}
		}
	}
	if count < 300 {
		t.Errorf("%d paths were found: the search is broken", count)
	}
}

// A command of a document or of the Makefile runs a test, a benchmark or a fuzz target of the package that it names.
func TestCommandsRunWhatExists(t *testing.T) {
	all, count := texts(t), 0
	of := map[string][]string{} // the tests of each folder
	for name, text := range all {
		for _, found := range declared.FindAllStringSubmatch(text, -1) {
			of[path.Dir(name)] = append(of[path.Dir(name)], found[1])
		}
	}
	for name, text := range all {
		if path.Ext(name) != ".md" && name != "Makefile" || name == "CHANGELOG.md" {
			continue
		}
		for _, found := range goTest.FindAllString(strings.ReplaceAll(text, "\\\n", " "), -1) {
			folder := inFolder.FindStringSubmatch(found)
			if folder == nil || strings.Contains(found, "$(") {
				continue
			}
			for _, pick := range picked.FindAllStringSubmatch(found, -1) {
				wanted, _, _ := strings.Cut(strings.ReplaceAll(pick[1], `\|`, "|"), "/")
				is := regexp.MustCompile(wanted)
				if count++; !nothing.MatchString(wanted) && !slices.ContainsFunc(of[folder[1]], is.MatchString) {
					t.Errorf("%s: nothing in %s is named %s", name, folder[1], wanted)
				}
			}
		}
	}
	if count < 30 {
		t.Errorf("%d names were found: the search is broken", count)
	}
}

// prose returns the lines of a document, and of a source file only its comments, by the number of their line.
func prose(name, text string) []string {
	lines := strings.Split(text, "\n")
	mark := map[string]string{".md": "", ".sql": "-- ", ".go": "// ", ".ts": "// ", ".tsx": "// ", ".proto": "// "}
	begin, read := mark[path.Ext(name)]
	for i, line := range lines {
		if _, comment, is := strings.Cut(line, begin); read && is {
			lines[i] = comment
		} else {
			lines[i] = ""
		}
	}
	return lines
}

// The documents count the operations of the published interface correctly.
func TestDocumentsCountOperations(t *testing.T) {
	all := texts(t)
	var published struct {
		Paths map[string]map[string]struct {
			Extension bool `json:"x-extension"`
		}
	}
	if err := json.Unmarshal([]byte(all["docs/openapi.json"]), &published); err != nil {
		t.Fatal(err)
	}
	operations, given := 0, 0
	for _, methods := range published.Paths {
		for method, operation := range methods {
			if slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
				operations++
				if !operation.Extension {
					given++
				}
			}
		}
	}
	says := regexp.MustCompile(`\b(\d{3})\s(operations|endpoints)\b`)
	count := 0
	for name, text := range all {
		if path.Ext(name) != ".md" || name == "CHANGELOG.md" {
			continue
		}
		for _, found := range says.FindAllStringSubmatch(text, -1) {
			count++
			if n, _ := strconv.Atoi(found[1]); n != operations && n != given {
				t.Errorf("%s: %s, docs/openapi.json has %d operations, %d of them of the interface", name, found[0],
					operations, given)
			}
		}
	}
	if count < 2 {
		t.Errorf("%d numbers were found: the search is broken", count)
	}
}

// The ASVS checklist names each requirement once, with its state, and a met one with its place.
func TestSecurityChecklistIsComplete(t *testing.T) {
	text := texts(t)["docs/asvs.md"]
	row := regexp.MustCompile(`(?m)^\| (\d+\.\d+\.\d+[^|]*) \| [^|]+ \| (met|in part|not met|–) \| ([^|]*)\|([^|]*)\|$`)
	rows, seen := row.FindAllStringSubmatch(text, -1), map[string]bool{}
	for _, found := range rows {
		for id := range strings.SplitSeq(found[1], ", ") {
			if seen[id] {
				t.Errorf("the requirement %s is listed twice", id)
			}
			seen[id] = true
		}
		if found[2] == "met" && strings.TrimSpace(found[3]+found[4]) == "" {
			t.Errorf("%s is met, and nothing says where", found[1])
		}
	}
	if lines := strings.Count(text, "\n| "); len(seen) < 200 || len(rows) != lines-1 {
		t.Errorf("%d requirements in %d lines: the search is broken, or a line has another form", len(seen), lines)
	}
}

package archtest

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// texts reads every text file of the project, by its path from the root.
func texts(t *testing.T) map[string]string {
	t.Helper()
	root, err := os.OpenRoot(moduleRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	found := map[string]string{}
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (notOurs[name] || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || name == ".git":
			return nil
		}
		text, err := root.ReadFile(name)
		if err == nil && bytes.IndexByte(text, 0) < 0 {
			found[name] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 100 {
		t.Fatalf("read %d files: the walk is broken", len(found))
	}
	return found
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every relative link of the documents leads to a file, and its part after # to a heading there.
func TestLinks(t *testing.T) {
	all := texts(t)
	links := 0
	for name, text := range all {
		if path.Ext(name) != ".md" || strings.Contains(name, "testdata/") {
			continue
		}
		for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target := found[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(target, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(path.Join(moduleRoot(t), to)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, target)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(all[to]), anchor) {
				t.Errorf("%s: the link %s names no heading of %s", name, target, to)
			}
		}
	}
	if links < 20 {
		t.Errorf("found %d links: the search is broken", links)
	}
}

// anchors returns the names of a document's headings in links.
func anchors(text string) []string {
	var names []string
	for _, found := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		words := noSlug.ReplaceAllString(strings.ToLower(found[1]), "")
		names = append(names, strings.ReplaceAll(words, " ", "-"))
	}
	return names
}

// number matches the numbers that follow the first in "D-GEN-03, 05 and 07".
var number = regexp.MustCompile(`\d\d`)

// Every cited decision has its text in docs/decisions, once.
func TestDecisionsAreDefined(t *testing.T) {
	testDefined(t, "docs/decisions", 100, func(name string) bool { return path.Dir(name) == "docs/decisions" },
		regexp.MustCompile(`\b(D-[A-Z0-9]+-)(\d\d)((?:(?:,| and) \d\d\b)*)`),
		regexp.MustCompile(`(?m)^## (D-[A-Z0-9]+-\d\d): `))
}

// Every cited rule of security and reliability has its line in docs/security.md, once.
func TestSecurityRulesAreDefined(t *testing.T) {
	testDefined(t, "docs/security.md", 30, func(name string) bool { return name == "docs/security.md" },
		regexp.MustCompile(`\b((?:SEC|REL)-)(\d\d)((?:(?:,| and) \d\d\b)*)`),
		regexp.MustCompile(`(?m)^- \*\*((?:SEC|REL)-\d\d)\*\*: `))
}

// testDefined fails for a number that cited finds in any file and defined in no file of the place. cited has three
// groups: the letters, the first number, the numbers after it. Fewer numbers than least mean that the search is broken.
func testDefined(t *testing.T, place string, least int, inPlace func(file string) bool, cited, defined *regexp.Regexp) {
	t.Helper()
	all := texts(t)
	known := map[string]string{}
	for name, text := range all {
		if !inPlace(name) {
			continue
		}
		for _, found := range defined.FindAllStringSubmatch(text, -1) {
			if other, twice := known[found[1]]; twice {
				t.Errorf("%s is defined in %s and in %s", found[1], other, name)
			}
			known[found[1]] = name
		}
	}
	unknown := map[string][]string{}
	count := 0
	for name, text := range all {
		for _, found := range cited.FindAllStringSubmatch(text, -1) {
			for _, n := range append([]string{found[2]}, number.FindAllString(found[3], -1)...) {
				count++
				id := found[1] + n
				if known[id] == "" && !slices.Contains(unknown[id], name) {
					unknown[id] = append(unknown[id], name)
				}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(unknown)) {
		t.Errorf("%s is cited and not defined in %s: %s", id, place, strings.Join(unknown[id], ", "))
	}
	if count < least || len(known) < least {
		t.Errorf("found %d citations of %d numbers: the search is broken", count, len(known))
	}
}

// The indexes name every document: docs/README.md those of docs, docs/decisions/README.md those of
// docs/decisions.
func TestIndexesAreComplete(t *testing.T) {
	all := texts(t)
	for _, folder := range []string{"docs", "docs/decisions"} {
		index := all[folder+"/README.md"]
		for name := range all {
			base := path.Base(name)
			if path.Dir(name) == folder && base != "README.md" && !strings.Contains(index, "]("+base+")") {
				t.Errorf("%s/README.md has no link to %s", folder, base)
			}
		}
	}
}

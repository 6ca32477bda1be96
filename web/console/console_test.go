//go:build !noconsole

package console_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/web/console"
)

const sources = "../../console"

// The embedded output was built from the sources beside it. The check needs no Node: the manifest has the hash of all
// inputs of the output (tools/console, Sources).
func TestOutputBelongsToItsSources(t *testing.T) {
	sum := sha256.New()
	root := os.DirFS(sources)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "node_modules":
			return fs.SkipDir
		case entry.IsDir(), strings.HasPrefix(entry.Name(), "."), name == "src/api.d.ts":
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err == nil {
			fmt.Fprintf(sum, "%s %s\n", hash(text), name)
		}
		return err
	})
	storetest.Must(t, err)
	m, _ := console.Built()
	if got := hex.EncodeToString(sum.Sum(nil)); got != m.Sources {
		t.Errorf("the sources have the hash %s and the console was built from %s: run make console", got, m.Sources)
	}
}

// Each file of the manifest exists, with the bytes that it names, and there are no other files. All of it adds at most
// 650 kB to the program.
func TestFilesAreThoseOfTheManifest(t *testing.T) {
	m, _ := console.Built()
	all := 0
	for name, want := range m.Files {
		zipped, ok := console.File(name)
		if !ok {
			t.Errorf("%s is not there", name)
			continue
		}
		all += len(zipped)
		r := storetest.Value(gzip.NewReader(bytes.NewReader(zipped)))(t)
		if text, err := io.ReadAll(r); err != nil || hash(text) != want {
			t.Errorf("%s has the hash %s, want %s (%v)", name, hash(text), want, err)
		}
	}
	if found, err := filepath.Glob("dist/*"); err != nil || len(found) != len(m.Files) {
		t.Errorf("dist has %d files, want %d (%v)", len(found), len(m.Files), err)
	}
	if all > 650_000 {
		t.Errorf("the console adds %d bytes, more than 650 kB", all)
	}
	first, scripts := 0, 0
	for name := range m.Files {
		zipped, _ := console.File(name)
		if strings.HasSuffix(name, ".js") && name != m.Texts["tr"] && name != m.Texts["ar"] {
			scripts += len(zipped)
		}
		if slices.Contains(m.First, name) {
			first += len(zipped)
		}
	}
	if first == 0 || first > 180_000 {
		t.Errorf("%d bytes of script are loaded before the login, want at most 180 kB", first)
	}
	if scripts > 515_000 {
		t.Errorf("all scripts, in one language, have %d bytes, want at most 515 kB", scripts)
	}
}

// Every language has the same texts, and the screens use no others.
func TestTexts(t *testing.T) {
	texts := map[string]map[string]string{}
	for _, language := range []string{"en", "tr", "ar"} {
		texts[language] = map[string]string{}
		files, err := filepath.Glob(filepath.Join(sources, "src/text", language, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no texts of %s (%v)", language, err)
		}
		for _, file := range files {
			part := map[string]string{}
			read(t, file, &part)
			for key, text := range part {
				storetest.Equal(t, texts[language][key], "", file, "has the text", key, "twice")
				texts[language][key] = text
			}
		}
	}
	for _, language := range []string{"tr", "ar"} {
		for key := range texts["en"] {
			if texts[language][key] == "" {
				t.Errorf("%s has no text %q", language, key)
			}
		}
		for key := range texts[language] {
			if _, ok := texts["en"][key]; !ok {
				t.Errorf("%s has the text %q, which English lacks", language, key)
			}
		}
	}
	used := map[string]string{}
	literal := regexp.MustCompile(`\bt\(\s*'([a-z][\w.-]*)'|\btitle: '([a-z][\w.-]*)'|\btitle="([a-z][\w.-]*\.[\w.-]*)"`)
	for _, name := range scripts(t) {
		text := storetest.Value(os.ReadFile(name))(t)
		for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
			used[m[1]+m[2]+m[3]] = name
		}
	}
	if len(used) < 40 {
		t.Fatalf("found %d texts in use: the search is broken", len(used))
	}
	for key, name := range used {
		if texts["en"][key] == "" {
			t.Errorf("%s uses the text %q, which is nowhere", name, key)
		}
	}
}

// Amounts are texts of the service: no screen converts one to a number.
func TestNoScreenCounts(t *testing.T) {
	counting := regexp.MustCompile(`\b(Number|parseFloat|parseInt)\(`)
	for _, name := range scripts(t) {
		text := storetest.Value(os.ReadFile(name))(t)
		for n, line := range strings.Split(string(text), "\n") {
			if counting.MatchString(line) && !strings.Contains(line, "retry-after") {
				t.Errorf("%s:%d makes a number of a text", name, n+1)
			}
		}
	}
}

func scripts(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(sources, "src"), func(name string, entry fs.DirEntry, err error) error {
		if ext := filepath.Ext(name); err == nil && (ext == ".ts" || ext == ".tsx") && !strings.HasSuffix(name, ".d.ts") {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	slices.Sort(names)
	return names
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// The identifiers of a serving process cannot be guessed: only the demonstration data repeats its own
// (id.Repeat).
func TestIdentifiersAreRandom(t *testing.T) {
	root, err := os.OpenRoot(moduleRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	calls := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (notOurs[name] || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := root.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte("id.Repeat(")) {
			calls++
			if !strings.HasPrefix(name, "cmd/demo/") {
				t.Errorf("%s makes identifiers that can be guessed", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls != 1 {
		t.Errorf("%d files of cmd/demo call id.Repeat: the search is broken", calls)
	}
}

//go:build faults

package ratesim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each planted fault, applied to a copy, is found. The seed that finds it is printed. testdata/open/README.md lists the
// changes that the simulation does not find.
func TestPlantedFaultsAreFound(t *testing.T) {
	patches, err := filepath.Glob("testdata/planted/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatal("no patch", err)
	}
	for _, patch := range patches {
		t.Run(strings.TrimSuffix(filepath.Base(patch), ".patch"), func(t *testing.T) {
			text, err := os.ReadFile(patch)
			if err != nil {
				t.Fatal(err)
			}
			name := regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`).FindStringSubmatch(string(text))[1]
			source, err := filepath.Abs(filepath.Join("../..", name))
			if err != nil {
				t.Fatal(err)
			}
			code, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			copied := filepath.Join(dir, filepath.FromSlash(name))
			overlay := filepath.Join(dir, "overlay.json")
			replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{source: copied}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string][]byte{copied: code, overlay: replaced} {
				if err := os.WriteFile(file, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			apply := exec.Command("git", "apply", "-")
			apply.Dir, apply.Stdin = dir, strings.NewReader(string(text))
			if out, err := apply.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			out, err := exec.Command("go", "test", "-count=1", "-overlay", overlay, ".", "-run", "TestLimitIsExactInSimulation",
				"-seeds", "40", "-crowd").CombinedOutput()
			if found := regexp.MustCompile(`seed \d+, .*differ`).Find(out); err == nil || found == nil {
				t.Errorf("not found: %.500s", out)
			} else {
				t.Logf("%s", found)
			}
		})
	}
}

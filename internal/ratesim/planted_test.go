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

	"castellan/domain/kit/storetest"
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
			text := storetest.Value(os.ReadFile(patch))(t)
			name := regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`).FindStringSubmatch(string(text))[1]
			source := storetest.Value(filepath.Abs(filepath.Join("../..", name)))(t)
			code := storetest.Value(os.ReadFile(source))(t)
			dir := t.TempDir()
			copied := filepath.Join(dir, filepath.FromSlash(name))
			overlay := filepath.Join(dir, "overlay.json")
			replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{source: copied}})
			storetest.Must(t, err)
			storetest.Must(t, os.MkdirAll(filepath.Dir(copied), 0o700))
			for file, content := range map[string][]byte{copied: code, overlay: replaced} {
				storetest.Must(t, os.WriteFile(file, content, 0o600))
			}
			apply := exec.Command("git", "apply", "-")
			apply.Dir, apply.Stdin = dir, strings.NewReader(string(text))
			if out, err := apply.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			out, err := exec.Command("go", "test", "-count=1", "-overlay", overlay, ".", "-run", "TestLimitIsExactInSimulation",
				"-seeds", "150", "-crowd").CombinedOutput()
			if found := regexp.MustCompile(`seed \d+, .*differ`).Find(out); err == nil || found == nil {
				t.Errorf("not found: %.500s", out)
			} else {
				t.Logf("%s", found)
			}
		})
	}
}

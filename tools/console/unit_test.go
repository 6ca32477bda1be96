package main

import (
	"path/filepath"
	"strings"
	"testing"

	"castellan/tools/console/unit"
)

// The modules of the console that need no browser pass their tests.
func TestModules(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if modules, err := unit.Modules(root); err != nil || len(modules) < 5 {
		t.Fatalf("%v, %v", modules, err)
	}
	if out, err := unit.Run(t.Context(), root, filepath.Join(root, "console")); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The components of the kit and of the frame pass their tests on a page without a browser.
func TestComponents(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	out, err := unit.Components(t.Context(), root, filepath.Join(root, "console"))
	if err != nil || !strings.Contains(out, "✔ a page, the next one") {
		t.Errorf("%v\n%s", err, out)
	}
}

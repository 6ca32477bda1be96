package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files of this repository pass, and fail without the proxy that they name.
func TestNodesKnowTheirProxy(t *testing.T) {
	for file, read := range map[string]func(string) error{
		"../../deploy/kubernetes/castellan.yaml": readManifests,
		"../../deploy/compose.yaml":              readCompose,
	} {
		if err := read(file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		without := strings.ReplaceAll(string(text), trustedProxies, "CASTELLAN_OTHER")
		changed := filepath.Join(t.TempDir(), filepath.Base(file))
		if err := os.WriteFile(changed, []byte(without), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := read(changed); err == nil || !strings.Contains(err.Error(), trustedProxies) {
			t.Errorf("%s without it: %v", file, err)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A field without effect here is refused, in both kinds of files and in the Dockerfile.
func TestUnknownFieldsAreRefused(t *testing.T) {
	for from, to := range map[string]string{"": "", "read_only: true": "privileged: true", "x-node": "node",
		"stop_grace_period: 45s": "mem_limit: 1g", "{condition: service_healthy}": "{required: false}"} {
		text, err := os.ReadFile("../../deploy/compose.yaml")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		changed := []byte(strings.Replace(string(text), from, to, 1))
		for name, text := range map[string][]byte{"compose.yaml": changed, ".env": []byte("POSTGRES_PASSWORD=x\n")} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := readCompose(filepath.Join(dir, "compose.yaml")); (err != nil) != (from != "") {
			t.Errorf("%q as %q: %v", from, to, err)
		}
	}
	for _, field := range []string{"hostNetwork: true", "securityContext: {runAsUser: 1, supplementalGroups: [1]}"} {
		k := &cluster{secrets: map[string]map[string][]byte{}}
		if err := k.apply([]byte("kind: StatefulSet\nspec: {template: {spec: {" + field + "}}}\n")); err == nil ||
			!strings.Contains(err.Error(), "not found in type") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := new(image).apply("HEALTHCHECK", "CMD true", nil); err == nil {
		t.Error("an unknown instruction is accepted")
	}
}

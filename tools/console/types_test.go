package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The types of the screens are generated from the interface. Removing anything from docs/openapi.json makes tsc fail in
// the screen that uses it: a field of a record, a field of a body, a filter or an endpoint. make console shows that tsc
// passes with the complete document.
func TestWhatLeavesTheInterfaceTurnsRed(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir := screens(t, root)
	types := filepath.Join(dir, "console/src/api.d.ts")
	var api map[string]any
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	at := func(names ...string) map[string]any {
		here := api
		for _, name := range names {
			next, ok := here[name].(map[string]any)
			if !ok {
				t.Fatalf("the interface has no %q in %q", name, names)
			}
			here = next
		}
		return here
	}
	field := func(schema, name string) {
		of := at("components", "schemas", schema)
		at("components", "schemas", schema, "properties", name) // it is there
		delete(of["properties"].(map[string]any), name)
		required, _ := of["required"].([]any)
		of["required"] = slices.DeleteFunc(required, func(v any) bool { return v == name })
	}
	field("ReceivedTransaction", "senderInfo")
	field("AddFirewallRuleRequest", "dryRun")
	list := at("paths", "/admin/list-users", "get")
	list["parameters"] = slices.DeleteFunc(list["parameters"].([]any), func(v any) bool {
		return v.(map[string]any)["name"] == "taxNumber"
	})
	delete(at("paths"), "/admin/jobs")
	if text, err = json.Marshal(api); err != nil {
		t.Fatal(err)
	}
	out, err := check(root, dir, text, types)
	if err == nil {
		t.Error("tsc is green")
	}
	for _, screen := range []string{
		"money/transactions.tsx", "guard/firewall.tsx", "people/users.tsx", "app/jobs.tsx",
	} {
		if !strings.Contains(out, "src/"+screen+"(") {
			t.Errorf("tsc says nothing of %s:\n%s", screen, out)
		}
	}
	if strings.Contains(out, "Cannot find") {
		t.Errorf("tsc is red for another reason:\n%s", out)
	}
}

// screens returns a folder with a copy of the sources, whose types can be generated again.
func screens(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(filepath.Join(dir, "console/src"), os.DirFS(filepath.Join(root, "console/src")))
	for _, name := range []string{"web", "console/node_modules", "console/tsconfig.json"} {
		if err == nil {
			err = os.Symlink(filepath.Join(root, name), filepath.Join(dir, name))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// check generates the types of an interface and runs tsc on the screens, as make console does.
func check(root, dir string, api []byte, types string) (string, error) {
	document := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(document, api, 0o644); err != nil {
		return "", err
	}
	make := exec.Command(filepath.Join(root, "tools/openapi/node_modules/.bin/openapi-typescript"), document, "-o", types)
	if out, err := make.CombinedOutput(); err != nil {
		return string(out), err
	}
	tsc := exec.Command(filepath.Join(root, "console/node_modules/.bin/tsc"), "--noEmit", "--pretty", "false", "-p",
		filepath.Join(dir, "console"))
	tsc.Dir = filepath.Join(dir, "console")
	out, err := tsc.CombinedOutput()
	return string(out), err
}

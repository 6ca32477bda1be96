package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// A binary built here gets a bill with its linked modules, and the same bill twice.
func TestBillOfABinary(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "deploylint")
	if out, err := exec.Command("go", "build", "-o", binary, "../deploylint").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	linked, err := exec.Command("go", "version", "-m", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	notices := ""
	var want []string
	for _, found := range regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(string(linked), -1) {
		notices += found[1] + " " + found[2] + ": MIT, BSD; source: x\n"
		want = append(want, found[1])
	}
	file, first, second := filepath.Join(dir, "NOTICES"), filepath.Join(dir, "1.json"), filepath.Join(dir, "2.json")
	if err := os.WriteFile(file, []byte("The Go standard library: BSD\n"+notices), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{first, second} {
		if err := run(binary, "v1.2.3", file, out); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(second); err != nil || !bytes.Equal(text, again) {
		t.Errorf("the same binary gives another bill: %v", err)
	}
	valid(t, text)
	var b struct{ Components []struct{ Name string } }
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(want, "std") {
		if !slices.ContainsFunc(b.Components, func(c struct{ Name string }) bool { return c.Name == name }) {
			t.Errorf("%s is linked and not in the bill", name)
		}
	}
	if len(want) < 2 || len(b.Components) != len(want)+1 {
		t.Errorf("%d components of %d modules", len(b.Components), len(want))
	}
}

// valid checks a bill against the requirements of the CycloneDX 1.6 schema for the parts in use.
func valid(t *testing.T, text []byte) {
	t.Helper()
	var b struct {
		BomFormat, SpecVersion, SerialNumber string
		Version                              int
		Metadata                             struct{ Component map[string]any }
		Components                           []map[string]any
		Dependencies                         []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	uuid := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	if b.BomFormat != "CycloneDX" || b.SpecVersion != "1.6" || b.Version < 1 || !uuid.MatchString(b.SerialNumber) {
		t.Errorf("the head is %+v", b)
	}
	digest, refs := regexp.MustCompile(`^[0-9a-f]{64}$`), map[string]bool{}
	for i, c := range append(b.Components, b.Metadata.Component) {
		ref, _ := c["bom-ref"].(string)
		if refs[ref] || ref == "" {
			t.Errorf("the reference %q is missing or stands twice", ref)
		}
		refs[ref] = true
		if c["name"] == "" || c["version"] == "" || c["type"] != "library" && c["type"] != "application" {
			t.Errorf("component %d: %v", i, c)
		}
		if purl, _ := c["purl"].(string); c["type"] == "library" && !strings.HasPrefix(purl, "pkg:golang/") {
			t.Errorf("%v has the purl %q", c["name"], purl)
		}
		hashes, _ := c["hashes"].([]any)
		if len(hashes) == 0 && c["name"] != "std" {
			t.Errorf("%v has no hash", c["name"])
		}
		for _, h := range hashes {
			h := h.(map[string]any)
			if content, _ := h["content"].(string); h["alg"] != "SHA-256" || !digest.MatchString(content) {
				t.Errorf("the hash of %v is %v", c["name"], h)
			}
		}
		licences, _ := c["licenses"].([]any)
		for _, l := range licences {
			one, _ := l.(map[string]any)["license"].(map[string]any)
			if (one["id"] == nil) == (one["name"] == nil) { // the schema: exactly one of the two
				t.Errorf("the licence of %v is %v", c["name"], one)
			}
		}
		if len(licences) == 0 {
			t.Errorf("%v has no licence", c["name"])
		}
	}
	for _, d := range b.Dependencies {
		for _, ref := range append(d.DependsOn, d.Ref) {
			if !refs[ref] {
				t.Errorf("the dependency %q is no component", ref)
			}
		}
	}
}

// A module that a folder of the repository replaces is part of the program, and in no list of the bill.
func TestOurModuleIsNoComponent(t *testing.T) {
	bill := &cdx.BOM{Components: &[]cdx.Component{{BOMRef: "a", Name: "./client"}, {BOMRef: "b", Name: "b.example/x"}},
		Dependencies: &[]cdx.Dependency{{Ref: "main", Dependencies: &[]string{"a", "b"}}, {Ref: "a"}, {Ref: "b"}}}
	withoutOurs(bill)
	deps := *bill.Dependencies
	if len(*bill.Components) != 1 || len(deps) != 2 || !slices.Equal(*deps[0].Dependencies, []string{"b"}) {
		t.Errorf("%+v, %+v", *bill.Components, deps)
	}
}

// A module whose licence is not in the notices ends the program, and so does a file that is no Go binary.
func TestUnknownLicenceAndBadBinary(t *testing.T) {
	module := []cdx.Component{{Name: "a.example/x", Version: "v1.0.0"}}
	known := licencesOf("a.example/x v1.0.1: MIT\n")
	if err := addLicences(module, known); err == nil || !strings.Contains(err.Error(), "a.example/x v1.0.0") {
		t.Errorf("another version's licence serves: %v", err)
	}
	module[0].Version = "v1.0.1"
	if err := addLicences(module, known); err != nil || (*module[0].Licenses)[0].License.ID != "MIT" {
		t.Errorf("%+v: %v", module, err)
	}
	if err := run("main.go", "v1", "main.go", filepath.Join(t.TempDir(), "out")); err == nil {
		t.Error("a text is a binary")
	}
}

// Sbom writes the bill of materials of the program, CycloneDX 1.6 in JSON, beside the binary that it describes.
//
// The linked modules are those that the Go linker wrote into the binary (debug/buildinfo), so nothing is guessed from
// go.mod. The licences are those of THIRD_PARTY_NOTICES, which is beside the program's source; a module without one
// ends it with an error. One binary always gives the same bytes: the output contains no time, and its number is derived
// from the binary's hash.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY VERSION NOTICES OUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %v\n", err)
		os.Exit(1)
	}
}

func run(binary, version, notices, out string) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("%s: %w", binary, err)
	}
	known, err := os.ReadFile(notices)
	if err != nil {
		return err
	}
	bill, err := billOf(info, sha256.Sum256(program), version, licencesOf(string(known)))
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(bill, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

// The parts of CycloneDX 1.6 in use, in its order.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type     string    `json:"type"`
		Ref      string    `json:"bom-ref"`
		Name     string    `json:"name"`
		Version  string    `json:"version"`
		Hashes   []hash    `json:"hashes,omitempty"`
		Licences []licence `json:"licenses"`
		PURL     string    `json:"purl,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	licence struct {
		Licence struct {
			ID   string `json:"id,omitempty"`   // of SPDX
			Name string `json:"name,omitempty"` // if SPDX distinguishes more kinds than the notices do
		} `json:"license"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

var noticed = regexp.MustCompile(`(?m)^(\S+) (v\S+): ([^;\n]+)`)

// licencesOf returns the kinds of licence by "module version".
func licencesOf(notices string) map[string][]string {
	found := map[string][]string{"std": {"BSD"}}
	for _, line := range noticed.FindAllStringSubmatch(notices, -1) {
		found[line[1]+" "+line[2]] = strings.Split(line[3], ", ")
	}
	return found
}

func licences(kinds []string) (all []licence) {
	for _, kind := range kinds {
		var l licence
		if kind == "BSD" || kind == "public domain" {
			l.Licence.Name = kind
		} else {
			l.Licence.ID = kind
		}
		all = append(all, l)
	}
	return all
}

func billOf(info *debug.BuildInfo, sum [32]byte, version string, known map[string][]string) (bill, error) {
	self := component{Type: "application", Ref: "castellan", Name: info.Main.Path, Version: version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licences: licences([]string{"Apache-2.0"})}
	b := bill{Format: "CycloneDX", Spec: "1.6", Serial: serial(sum), Version: 1, Metadata: metadata{self}}
	std := strings.TrimPrefix(info.GoVersion, "go")
	std, _, _ = strings.Cut(std, " ") // the experiments of the toolchain
	b.Components = []component{{Type: "library", Ref: "pkg:golang/std@" + std, Name: "std", Version: std,
		Licences: licences(known["std"]), PURL: "pkg:golang/std@" + std}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		kinds := known[m.Path+" "+m.Version]
		if kinds == nil {
			return bill{}, fmt.Errorf("%s %s is not in the notices: run make generate", m.Path, m.Version)
		}
		purl := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
		c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, Licences: licences(kinds), PURL: purl}
		// The hash of go.sum: SHA-256 over the names and hashes of the module's files.
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == 32 {
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
		}
		b.Components = append(b.Components, c)
	}
	slices.SortFunc(b.Components, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	all := dependency{Ref: self.Ref}
	for _, c := range b.Components {
		all.On = append(all.On, c.Ref)
	}
	b.Dependencies = []dependency{all}
	return b, nil
}

// serial returns a UUID of version 8 (RFC 9562) derived from the hash of the binary.
func serial(sum [32]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// Sbom writes the bill of materials of the program, CycloneDX 1.6 in JSON, beside the binary that it describes.
//
// cyclonedx-gomod reads the linked modules and their hashes from the binary. Its detection of licences is slow and
// misses some, so the licences are those of THIRD_PARTY_NOTICES; a module without one is an error. One binary always
// gives the same bytes: the output contains no time, and its serial number is derived from the binary's hash.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
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
	known, err := os.ReadFile(notices)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	bill, err := modules(binary, version, serial(sum))
	if err != nil {
		return err
	}
	bill.Metadata.Tools = nil // their hashes differ between machines
	bill.Metadata.Component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	bill.Metadata.Component.Licenses = licences([]string{"Apache-2.0"})
	if err := addLicences(*bill.Components, licencesOf(string(known))); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		return err
	}
	return os.WriteFile(out, text.Bytes(), 0o644)
}

// modules returns the bill of cyclonedx-gomod.
func modules(binary, version, serial string) (*cdx.BOM, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	var failure bytes.Buffer
	cmd := exec.Command("go", "tool", "cyclonedx-gomod", "bin", "-json", "-std", "-notimestamp", "-serial", serial,
		"-version", version, binary)
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cyclonedx-gomod: %w: %s", err, &failure)
	}
	bill := new(cdx.BOM)
	if err := cdx.NewBOMDecoder(bytes.NewReader(out), cdx.BOMFileFormatJSON).Decode(bill); err != nil {
		return nil, err
	}
	if bill.Metadata == nil || bill.Metadata.Component == nil || bill.Components == nil {
		return nil, fmt.Errorf("cyclonedx-gomod: %s has no components", binary)
	}
	withoutOurs(bill)
	return bill, nil
}

// withoutOurs removes the modules that a folder of this repository replaces: they are part of the program.
func withoutOurs(bill *cdx.BOM) {
	ours := map[string]bool{}
	*bill.Components = slices.DeleteFunc(*bill.Components, func(c cdx.Component) bool {
		ours[c.BOMRef] = strings.HasPrefix(c.Name, "./")
		return ours[c.BOMRef]
	})
	if bill.Dependencies == nil {
		return
	}
	*bill.Dependencies = slices.DeleteFunc(*bill.Dependencies, func(d cdx.Dependency) bool { return ours[d.Ref] })
	for _, d := range *bill.Dependencies {
		if d.Dependencies != nil {
			*d.Dependencies = slices.DeleteFunc(*d.Dependencies, func(ref string) bool { return ours[ref] })
		}
	}
}

func addLicences(components []cdx.Component, known map[string][]string) error {
	for i := range components {
		c := &components[i]
		key := c.Name + " " + c.Version
		if c.Name == "std" {
			key = c.Name
		}
		if known[key] == nil {
			return fmt.Errorf("%s is not in the notices: run make generate", key)
		}
		c.Licenses = licences(known[key])
	}
	return nil
}

var noticed = regexp.MustCompile(`(?m)^(\S+) (v\S+): ([^;\n]+)`)

// licencesOf returns the kinds of licence by "module version".
func licencesOf(notices string) map[string][]string {
	found := map[string][]string{"std": {"BSD"}}
	for _, line := range noticed.FindAllStringSubmatch(notices, -1) {
		found[line[1]+" "+line[2]] = strings.Split(line[3], ", ")
	}
	return found
}

func licences(kinds []string) *cdx.Licenses {
	var all cdx.Licenses
	for _, kind := range kinds {
		l := &cdx.License{ID: kind}
		if kind == "BSD" || kind == "public domain" { // SPDX distinguishes more kinds than the notices do
			l = &cdx.License{Name: kind}
		}
		all = append(all, cdx.LicenseChoice{License: l})
	}
	return &all
}

// serial returns a UUID of version 8 (RFC 9562) derived from the hash of the binary.
func serial(sum [32]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

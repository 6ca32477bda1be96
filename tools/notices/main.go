// Notices writes the file THIRD_PARTY_NOTICES: the third-party modules linked into a program, their licences, and the
// texts that must be distributed with it. A module without a recognised licence ends it with an error. The program
// embeds THIRD_PARTY_NOTICES.gz, the same text, which is a seventh as long.
//
// The linked modules are those that "go list -deps" reports for the program on the systems of a release. The texts are
// those in the module cache: the licence files in each linked package's folder, and in all folders above it up to the
// root of its module.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// targets are the systems of a release, without C, as scripts/release.sh and the Dockerfile build.
var targets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// data is in the repository and not in a module, or is data inside a module with separate terms. file is relative to
// the root of the repository.
var data = []part{
	{name: "country-flag-icons", what: "the flags of countries in web/flags", file: "web/flags/LICENSE"},
	{name: "Unicode CLDR", what: "the names of countries in domain/kit/geo", file: "domain/kit/geo/LICENSE"},
	{name: "IP2Location LITE", what: "the countries of addresses in outbound/geoip, by way of github.com/phuslu/iploc",
		file: "outbound/geoip/LICENSE"},
}

// part is a third-party part that is linked or embedded.
type part struct {
	name, version, what string
	file                string // of data: its terms
	texts               map[string]bool
	kinds               map[string]bool
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: notices ROOT PROGRAM, such as: notices .. ./cmd/castellan")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "notices: %v\n", err)
		os.Exit(1)
	}
}

func run(root, program string) error {
	parts, err := linked(root, program)
	if err != nil {
		return err
	}
	for _, one := range data {
		text, err := os.ReadFile(filepath.Join(root, one.file))
		if err != nil {
			return err
		}
		one.add(string(text))
		parts = append(parts, one)
	}
	var out bytes.Buffer
	if err := write(&out, parts); err != nil {
		return err
	}
	name := filepath.Join(root, program, "THIRD_PARTY_NOTICES")
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
	w.Write(out.Bytes())                                       // a buffer takes everything
	w.Close()
	return errors.Join(os.WriteFile(name, out.Bytes(), 0o644), os.WriteFile(name+".gz", packed.Bytes(), 0o644))
}

// pkg is the requested output of "go list".
type pkg struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Version string } // without a version: a folder of this repository
	}
}

// ours reports whether the package is part of this repository.
func (p pkg) ours() bool {
	return p.Module.Main || p.Module.Replace != nil && p.Module.Replace.Version == ""
}

// linked returns every module whose packages the program links, with their licences, and the standard library.
func linked(root, program string) ([]part, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	found := map[string]part{}
	library := part{name: "The Go standard library"}
	if err := library.read(strings.TrimSpace(string(goroot))); err != nil {
		return nil, err
	}
	found[""] = library
	for _, target := range targets {
		packages, err := list(root, program, target)
		if err != nil {
			return nil, err
		}
		for _, one := range packages {
			if one.Standard || one.Module == nil || one.ours() {
				continue
			}
			module, known := found[one.Module.Path]
			if !known {
				module = part{name: one.Module.Path, version: one.Module.Version}
			}
			for dir := one.Dir; strings.HasPrefix(dir, one.Module.Dir); dir = filepath.Dir(dir) {
				if err := module.read(dir); err != nil {
					return nil, err
				}
			}
			found[one.Module.Path] = module
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b part) int { return cmp.Compare(a.name, b.name) }), nil
}

func list(root, program, target string) ([]pkg, error) {
	var stderr bytes.Buffer
	system, arch, _ := strings.Cut(target, "/")
	command := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", "-tags",
		"timetzdata,grpcnotrace,nopgxregisterdefaulttypes", program)
	command.Dir = root
	command.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w: %s", target, err, &stderr)
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var one pkg
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("go list for %s: %w", target, err)
		}
		packages = append(packages, one)
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(.*-)?(licen[cs]e|copying|copyright|notice|patents)([.-].*)?$`)

// read reads the licence files of a folder.
func (p *part) read(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licenceFile.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		if strings.Contains(entry.Name(), "3RD-PARTY") {
			p.keep(string(text)) // third-party contents of the module; not the module's own terms
			continue
		}
		p.add(string(text))
	}
	return nil
}

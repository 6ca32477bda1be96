package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
)

var packageOf = regexp.MustCompile(`^node_modules/((?:@[^/]+/)?[^/]+)/`)

// notices collects the licences of all packages in the bundle.
func notices(sources, metafile string) ([]byte, error) {
	var meta struct {
		Inputs map[string]struct{} `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for name := range meta.Inputs {
		if m := packageOf.FindStringSubmatch(name); m != nil {
			used[m[1]] = true
		}
	}
	names := make([]string, 0, len(used))
	for name := range used {
		names = append(names, name)
	}
	sort.Strings(names)
	var b bytes.Buffer
	b.WriteString("\nThe libraries of the console.\n")
	for _, name := range names {
		if err := notice(&b, filepath.Join(sources, "node_modules", name), name); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// allowed are the licences under which the console may be distributed.
var allowed = map[string]bool{"MIT": true, "ISC": true, "Apache-2.0": true, "BSD-2-Clause": true, "BSD-3-Clause": true,
	"0BSD": true}

func notice(b *bytes.Buffer, dir, name string) error {
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return err
	}
	var about struct{ Version, License string }
	if err := json.Unmarshal(text, &about); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !allowed[about.License] {
		return fmt.Errorf("%s has the licence %q: read it before it is added to tools/console", name, about.License)
	}
	fmt.Fprintf(b, "\n%s %s (%s)\n\n", name, about.Version, about.License)
	for _, file := range []string{"LICENSE", "LICENSE.md", "LICENSE.txt", "license", "LICENCE", "license.md"} {
		licence, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		b.Write(bytes.TrimSpace(licence))
		b.WriteByte('\n')
		return err
	}
	return nil
}

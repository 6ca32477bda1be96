package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// licences are the licences whose terms permit what the project does: link, embed, ship. A new one is added here after
// a review. Each is identified by words that no other one contains.
var licences = []struct{ kind, words string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"Apache-2.0", "licensed under the apache license, version 2.0"},
	{"MPL-2.0", "mozilla public license, version 2.0"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose"},
	{"BSD", "redistribution and use in source and binary forms, with or without modification"},
	{"Unicode-3.0", "unicode license v3"},
	{"CC-BY-SA-4.0", "creative commons attribution-sharealike 4.0"},
	{"public domain", "dedicated to the public domain by the authors"},
}

// keep stores a text that must be distributed with the program.
func (p *part) keep(text string) string {
	if p.texts == nil {
		p.texts, p.kinds = map[string]bool{}, map[string]bool{}
	}
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	p.texts[text] = true
	return text
}

// add stores a text and returns its licences.
func (p *part) add(text string) {
	text = p.keep(text)
	words := strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, known := range licences {
		if strings.Contains(words, known.words) {
			p.kinds[known.kind] = true
		}
	}
}

// source returns the location of a module's source that must be offered with the program (section 3.2 of the MPL).
func (p *part) source() (string, error) {
	repository, ok := strings.CutPrefix(p.name, "github.com/")
	if !ok {
		return "", fmt.Errorf("%s is under the MPL, and the location of its source is unknown", p.name)
	}
	folders := strings.Split(repository, "/")
	return fmt.Sprintf("https://github.com/%s, %s, unchanged", strings.Join(folders[:2], "/"), p.version), nil
}

const head = `Castellan is under the Apache License 2.0. The program holds the work of others.
This file names it, with the terms of each. It is generated (make generate);
"castellan version --licenses" prints it.
`

// write prints the list of parts and then each text once, with the parts that it belongs to.
func write(w io.Writer, parts []part) error {
	fmt.Fprint(w, head, "\n")
	owners := map[string][]string{}
	var order []string
	for _, one := range parts {
		if len(one.kinds) == 0 {
			return fmt.Errorf("%s %s: no recognised licence (tools/notices/licences.go)", one.name, one.version)
		}
		title := strings.TrimSpace(one.name + " " + one.version)
		fmt.Fprintf(w, "%s: %s", title, strings.Join(slices.Sorted(maps.Keys(one.kinds)), ", "))
		if one.what != "" {
			fmt.Fprintf(w, "; %s", one.what)
		}
		if one.kinds["MPL-2.0"] {
			source, err := one.source()
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "; source: %s", source)
		}
		fmt.Fprintln(w)
		for _, text := range slices.Sorted(maps.Keys(one.texts)) {
			if owners[text] == nil {
				order = append(order, text)
			}
			owners[text] = append(owners[text], title)
		}
	}
	rule := strings.Repeat("-", 80)
	for _, text := range order {
		fmt.Fprintf(w, "\n%s\n%s\n%s\n\n%s\n", rule, strings.Join(owners[text], "\n"), rule, text)
	}
	return nil
}

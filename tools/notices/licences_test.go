package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	const mit = "Copyright (c) A\nPermission is hereby granted, free of\ncharge, to any person obtaining a copy of " +
		"this software"
	const mpl = "Mozilla Public License, version 2.0\n1. Definitions"
	module := func(name, text string) part {
		one := part{name: name, version: "v1.2.3"}
		one.add(text)
		return one
	}
	var out bytes.Buffer
	err := write(&out, []part{module("a.example/x", mit), module("b.example/y", mit), module("github.com/o/m/v2", mpl)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a.example/x v1.2.3: MIT\n",
		"github.com/o/m/v2 v1.2.3: MPL-2.0; source: https://github.com/o/m, v1.2.3, unchanged\n",
		"\na.example/x v1.2.3\nb.example/y v1.2.3\n---", // one text for two
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for name, bad := range map[string]part{
		"unknown licence": module("c.example/z", "All rights reserved."),
		"no licence":      {name: "d.example/z"},
		"MPL elsewhere":   module("e.example/z", mpl),
	} {
		if err := write(&bytes.Buffer{}, []part{bad}); err == nil || !strings.Contains(err.Error(), bad.name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"runtime"
	"slices"

	"castellan/web/console"
)

// notices are the licences of everything that is linked into the program.
//
//go:generate go -C ../../tools run ./notices .. ./cmd/castellan
//go:embed THIRD_PARTY_NOTICES.gz
var notices []byte

type versionCmd struct {
	Licenses bool `help:"Print whose work the program holds, and under which licences."`
}

func (c versionCmd) Run(e *env) error {
	if c.Licenses {
		text, err := gzip.NewReader(bytes.NewReader(slices.Concat(notices, console.Notices())))
		if err != nil {
			return err
		}
		_, err = io.Copy(e.out, text) // #nosec G110: the text is our own
		return err
	}
	return e.printf(nil, "castellan %s (commit %s, %s, %s %s/%s)\n", version, commit, date, runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/child"
)

// The benches start this program again as the service.
func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		os.Exit(runRole(role))
	}
	os.Exit(m.Run())
}

// oneDatabase holds the benches that run on one database here: the others run the same code on both.
var oneDatabase = map[string]string{"alone": "postgresql", "password": "sqlite", "mailing": "postgresql",
	"pages": "sqlite", "console": "sqlite", "console-million": "postgresql", "decoy": "sqlite",
	"guard": "sqlite", "sockets": "postgresql"}

// Every bench runs to its end. Its figures mean nothing here.
func TestEveryBenchRuns(t *testing.T) {
	people = smokePeople
	shared := &bench{dir: t.TempDir()}
	defer func() {
		if shared.pg != nil {
			shared.pg.Stop()
		}
	}()
	run := func(t *testing.T, m measurement, ps programs) {
		b := &bench{smoke: true, rounds: 1, clients: 16, dir: t.TempDir(), pg: shared.pg, binary: shared.binary, programs: ps,
			on: oneDatabase[m.name]}
		err := m.measure(b)
		if starved := (refusal{}); errors.As(err, &starved) && strings.Contains(starved.body, `"code":"UNAVAILABLE"`) {
			b.report = report{}
			err = m.measure(b) // the database had no processor for most of a second
		}
		shared.pg = b.pg
		storetest.Must(t, err)
		if len(b.report.lines)+len(b.report.contests) == 0 {
			t.Error("the bench reports nothing")
		}
	}
	shared.binary = filepath.Join(shared.dir, "castellan")
	// Unlike the release it links packages that the tests have compiled already.
	storetest.Must(t, child.Build(shared.binary, "castellan/cmd/castellan"))
	t.Run("flow with the real hash", func(t *testing.T) {
		m := func(b *bench) { b.hash, b.on, b.clients = "real", "sqlite", 4; flow(b) }
		run(t, measurement{"", "", m}, nil)
	})
	for _, m := range measurements {
		t.Run(m.name, func(t *testing.T) { run(t, m, nil) })
	}
	var ps programs
	self, err := os.Executable()
	for name, path := range map[string]string{"bench": self, "castellan": shared.binary} {
		storetest.Must(t, errors.Join(err, ps.Set(name+"="+path)))
	}
	for _, m := range comparisons {
		t.Run("compare "+m.name, func(t *testing.T) { run(t, m, ps) })
	}
}

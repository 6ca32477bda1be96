package main

import (
	"os"
	"testing"
)

// The benches start this program again as the service.
func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		os.Exit(child(role))
	}
	os.Exit(m.Run())
}

// Every bench runs to its end. Its figures mean nothing here.
func TestEveryBenchRuns(t *testing.T) {
	shared := &bench{dir: t.TempDir()}
	defer func() {
		if shared.pg != nil {
			shared.pg.Stop()
		}
	}()
	for _, m := range measurements {
		t.Run(m.name, func(t *testing.T) {
			b := &bench{smoke: true, rounds: 1, clients: 16, dir: t.TempDir(), pg: shared.pg}
			err := m.run(b)
			shared.pg = b.pg
			if err != nil {
				t.Fatal(err)
			}
			if len(b.report.lines) == 0 {
				t.Error("the bench reports nothing")
			}
		})
	}
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"castellan/internal/child"
)

// begin measures the program as operators get it: its size, the time of its first start, and its idle resources.
func begin(b *bench) {
	binary := b.build()
	file := need(os.Stat(binary))
	of := series{}
	for range b.rounds {
		b.await()
		b.beginOnce(program{path: binary}, of)
	}
	r := &b.report
	r.begin("The program, in production mode on a new SQLite file")
	r.line("size of the binary", "MB", []float64{float64(file.Size()) / 1e6}, atMost(45))
	r.line("start to first answer, schema and keys made", "ms", of["cold"], atMost(150))
	r.line("start to first answer, the second time", "ms", of["warm"], bar{})
	r.line("memory when idle (RSS), schema and keys made", "MiB", of["cold idle"], atMost(48))
	r.line("memory when idle (RSS), the second time", "MiB", of["warm idle"], atMost(48))
}

// build builds castellan as it is released.
func (b *bench) build() (binary string) {
	if b.binary == "" {
		binary := filepath.Join(b.dir, "castellan")
		must(os.Setenv("CGO_ENABLED", "0")) // as released
		must(child.Build(binary, "castellan/cmd/castellan", "-trimpath", "-buildvcs=false", "-tags",
			"grpcnotrace,nopgxregisterdefaulttypes", "-ldflags", "-s -w"))
		b.binary = binary
	}
	return b.binary
}

// beginOnce starts a program twice on one new database.
func (b *bench) beginOnce(p program, of series) {
	dir := need(os.MkdirTemp(b.dir, "begin-"))
	for _, name := range []string{"cold", "warm"} {
		began := time.Now()
		s := need(p.launch([]string{"CASTELLAN_DATA_DIR=" + dir, "CASTELLAN_HTTP_PUBLIC_URL=https://id.example.com",
			"CASTELLAN_LOG_LEVEL=error"}))
		took := time.Since(began)
		time.Sleep(b.long(8 * time.Second))
		idle, err := child.Resident(s.PID())
		s.Terminate()
		must(errors.Join(err, s.stop()))
		of.add(name+" idle", float64(idle)/(1<<20))
		of.add(name, took.Seconds()*1e3)
	}
}

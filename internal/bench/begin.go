package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"castellan/internal/porttest"
)

// begin measures the program as operators get it: how large it is, how soon it
// answers where there is nothing yet, and what it needs without requests.
func begin(b *bench) error {
	binary := filepath.Join(b.dir, "castellan")
	build := exec.Command(
		"go",
		"build",
		"-trimpath",
		"-buildvcs=false",
		"-ldflags",
		"-s -w",
		"-o",
		binary,
		"castellan/cmd/castellan",
	)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build, from the root of the module: %w: %s", err, out)
	}
	file, err := os.Stat(binary)
	if err != nil {
		return err
	}
	of := series{}
	for range b.rounds {
		b.await()
		if err := b.beginOnce(binary, of); err != nil {
			return err
		}
	}
	r := &b.report
	r.begin("The program, in production mode on a new SQLite file")
	r.line("size of the binary", "MB", []float64{float64(file.Size()) / 1e6}, atMost(45))
	r.line("start to first answer, schema and keys made", "ms", of["cold"], atMost(150))
	r.line("start to first answer, the second time", "ms", of["warm"], bar{})
	r.line("memory when idle (RSS)", "MiB", of["idle"], atMost(40))
	return nil
}

func (b *bench) beginOnce(binary string, of series) error {
	dir, err := os.MkdirTemp(b.dir, "begin-")
	if err != nil {
		return err
	}
	for _, name := range []string{"cold", "warm"} {
		addr, err := porttest.Find()
		if err != nil {
			return err
		}
		c := exec.Command(binary, "serve")
		c.Env = append(
			environ(),
			"CASTELLAN_HTTP_ADDR="+addr,
			"CASTELLAN_DATA_DIR="+dir,
			"CASTELLAN_HTTP_PUBLIC_URL=https://id.example.com",
			"CASTELLAN_LOG_LEVEL=error",
		)
		c.Stderr = os.Stderr
		began := time.Now()
		if err := c.Start(); err != nil {
			return err
		}
		_, err = ready(addr, 20*time.Second)
		took := time.Since(began)
		var idle uint64
		if err == nil && name == "warm" {
			time.Sleep(b.long(8 * time.Second))
			idle, err = resident(c.Process.Pid)
			of.add("idle", float64(idle)/(1<<20))
		}
		c.Process.Signal(os.Interrupt)
		if werr := c.Wait(); err == nil && werr != nil {
			err = fmt.Errorf("the program ended with %w", werr)
		}
		if err != nil {
			return err
		}
		of.add(name, took.Seconds()*1e3)
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// goRunner compiles the tests of one package with an overlay and runs them.
type goRunner struct {
	root, dir, temp string
	tested          bool
	databases       bool   // whether the tests run on both databases
	only            string // the tests, as an expression; empty: all
}

func (g *goRunner) try(ctx context.Context, file string, source []byte, bound time.Duration) (outcome, string, error) {
	binary, overlay := filepath.Join(g.temp, "tests"), filepath.Join(g.temp, "overlay.json")
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", binary} // without symbols it links faster
	if !g.tested {
		args = []string{"build", "-o", os.DevNull}
	}
	if file != "" {
		if err := g.overlay(overlay, file, source); err != nil {
			return 0, "", err
		}
		args = append(args, "-overlay", overlay)
	}
	compile := exec.CommandContext(ctx, "go", append(args, "./"+g.dir)...)
	compile.Dir = g.root
	if out, err := compile.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return 0, "", ctx.Err()
		}
		if file == "" {
			return 0, "", fmt.Errorf("%s does not compile without a fault:\n%s", g.dir, out)
		}
		return broken, string(out), nil
	}
	if !g.tested {
		return survived, "", nil
	}
	defer os.Remove(binary)
	run := func(env ...string) (outcome, string, error) {
		return runTests(ctx, filepath.Join(g.root, g.dir), bound, env, binary, "-test.count=1", "-test.failfast",
			"-test.timeout="+bound.String(), "-test.run="+g.only)
	}
	if g.databases && file != "" { // the half on SQLite takes less time and catches most
		got, out, err := twice(func() (outcome, string, error) { return run(onlySQLite) })
		if err != nil || got != survived {
			return got, out, err
		}
	}
	return twice(func() (outcome, string, error) { return run() })
}

// onlySQLite skips the tests on PostgreSQL (internal/pgtest).
const onlySQLite = "CASTELLAN_TEST_DATABASES=sqlite"

// twice repeats a run that catches a fault, because a test that fails by chance catches nothing.
func twice(run func() (outcome, string, error)) (outcome, string, error) {
	got, out, err := run()
	if err == nil && got == caught {
		return run()
	}
	return got, out, err
}

// overlay writes the changed file beside the file that describes it to the compiler.
func (g *goRunner) overlay(name, file string, source []byte) error {
	changed := filepath.Join(g.temp, "changed.go")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(g.root, file): changed}})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(changed, source, 0o600), os.WriteFile(name, text, 0o600))
}

// grace is the time after its own timeout in which a test binary must have ended.
const grace = 10 * time.Second

// runTests runs a command with its children as a separate process group, which is killed at its timeout.
func runTests(ctx context.Context, dir string, bound time.Duration, env []string, name string, args ...string) (outcome,
	string, error) {
	bounded, cancel := context.WithTimeout(ctx, bound+grace)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(bounded, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, grace
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, "", ctx.Err()
	case bounded.Err() != nil, bytes.Contains(out.Bytes(), []byte("panic: test timed out after")):
		return timedOut, out.String(), nil
	case errors.As(err, &failed):
		return caught, out.String(), nil
	case err != nil:
		return 0, "", err
	}
	return survived, out.String(), nil
}

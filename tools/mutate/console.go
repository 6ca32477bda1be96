package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"castellan/tools/console/unit"
)

// consoleRunner tests a copy of the console's sources: the type check of the changed module replaces the compiler, the
// tests of modules and then those of components run in Node.
type consoleRunner struct {
	root, dir string // of the copy
}

// findConsole returns the possible faults in the modules of the console that have unit tests.
func findConsole(root, temp string) ([]mutant, error) {
	run := &consoleRunner{root: root, dir: filepath.Join(temp, "console")}
	if err := run.copy(); err != nil {
		return nil, err
	}
	modules, err := unit.Modules(root)
	if err != nil {
		return nil, err
	}
	u := &target{name: "console", run: run, tested: true}
	var all []mutant
	for _, name := range modules {
		file := filepath.Join("console/src", name)
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		found := faultsInScript(file, source)
		for i := range found {
			found[i].unit = u
		}
		all = append(all, found...)
	}
	return all, nil
}

// copy creates a folder in which the sources may change. All their external imports are linked.
func (c *consoleRunner) copy() error {
	if err := os.CopyFS(filepath.Join(c.dir, "console/src"), os.DirFS(filepath.Join(c.root, "console/src"))); err != nil {
		return err
	}
	for _, name := range []string{"web", "tools", "console/node_modules", "console/tsconfig.json"} {
		if err := os.Symlink(filepath.Join(c.root, name), filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	types := exec.Command(filepath.Join(c.root, "tools/openapi/node_modules/.bin/openapi-typescript"),
		filepath.Join(c.root, "docs/openapi.json"), "-o", filepath.Join(c.dir, "console/src/api.d.ts"))
	if out, err := types.CombinedOutput(); err != nil {
		return fmt.Errorf("types of the interface: %w\n%s", err, out)
	}
	return nil
}

func (c *consoleRunner) try(ctx context.Context, file string, source []byte, bound time.Duration) (outcome, string,
	error) {
	if file != "" {
		name := filepath.Join(c.dir, file)
		before, err := os.ReadFile(name)
		if err != nil {
			return 0, "", err
		}
		defer os.WriteFile(name, before, 0o644)
		if err := os.WriteFile(name, source, 0o644); err != nil {
			return 0, "", err
		}
		if out, err := c.check(ctx, file); err != nil {
			return broken, out, ctx.Err()
		}
	}
	for _, tests := range []func(context.Context, string, string) (string, error){unit.Run, unit.Components} {
		got, out, err := twice(func() (outcome, string, error) { return c.tests(ctx, bound, tests) })
		if err != nil || got != survived {
			return got, out, err
		}
	}
	return survived, "", nil
}

// check checks the types of a module and of its imports. The modules that import it are left out: the whole console
// takes a hundred times as long.
func (c *consoleRunner) check(ctx context.Context, file string) (output string, err error) {
	config, err := json.Marshal(map[string]any{"extends": "./tsconfig.json", "include": []string{"src/**/*.d.ts"},
		"files": []string{strings.TrimPrefix(file, "console/")}})
	if err != nil {
		return "", err
	}
	const project = "console/tsconfig.module.json"
	if err := os.WriteFile(filepath.Join(c.dir, project), config, 0o600); err != nil {
		return "", err
	}
	tsc := exec.CommandContext(ctx, filepath.Join(c.dir, "console/node_modules/.bin/tsc"), "--noEmit", "--pretty", "false",
		"-p", project)
	tsc.Dir = c.dir
	out, err := tsc.CombinedOutput()
	return string(out), err
}

// tests runs the tests of all modules or of all components once.
func (c *consoleRunner) tests(ctx context.Context, bound time.Duration,
	run func(ctx context.Context, root, console string) (string, error)) (outcome, string, error) {
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	out, err := run(bounded, c.root, filepath.Join(c.dir, "console"))
	switch {
	case ctx.Err() != nil:
		return 0, "", ctx.Err()
	case bounded.Err() != nil:
		return timedOut, out, nil
	case err != nil && strings.TrimSpace(out) == "":
		return 0, "", err
	case err != nil:
		return caught, out, nil
	}
	return survived, out, nil
}

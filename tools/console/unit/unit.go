// Package unit runs the unit tests of the console's modules in Node: those that need no browser. A test has below
// this folder the path that its module has below console/src, as people/merge.test.ts for people/merge.ts.
//
// Each test file is bundled with the sources of a folder, so that the same tests run on changed sources (tools/mutate).
// The tests of components (*.test.tsx) run on the page of page.tsx, all in one process.
//
// Start reading at Run.
package unit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/evanw/esbuild/pkg/api"
)

const (
	folder = "tools/console/unit"
	suffix = ".test.ts"
	shown  = ".test.tsx" // of a component
)

// Modules returns the modules that have tests, by their paths below console/src. Root is that of the project.
func Modules(root string) (names []string, err error) {
	tests := os.DirFS(filepath.Join(root, folder))
	err = fs.WalkDir(tests, ".", func(name string, _ fs.DirEntry, err error) error {
		if module, is := strings.CutSuffix(name, suffix); is {
			names = append(names, module+".ts")
		}
		return err
	})
	return names, err
}

// Components runs the tests of all components on the sources in console/src of a copy of the console, and returns what
// Node says.
func Components(ctx context.Context, root, console string) (output string, err error) {
	temp, err := os.MkdirTemp("", "components")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	tests := filepath.Join(root, folder)
	var all strings.Builder
	err = fs.WalkDir(os.DirFS(tests), ".", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, shown) {
			fmt.Fprintf(&all, "import './%s';\n", name)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	script := filepath.Join(temp, "components.test.cjs")
	options := bundling(console)
	options.Stdin = &api.StdinOptions{Contents: all.String(), ResolveDir: tests, Loader: api.LoaderTS}
	options.Outfile = script
	options.Conditions = []string{"browser"} // Node's own form of the router renders on a server
	if err := build(options); err != nil {
		return "", err
	}
	return node(ctx, script)
}

// Run runs all tests of modules on the sources in console/src of a copy of the console, and returns what Node says.
func Run(ctx context.Context, root, console string) (output string, err error) {
	temp, err := os.MkdirTemp("", "unit")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	modules, err := Modules(root)
	if err != nil {
		return "", err
	}
	var entries, scripts []string
	for _, m := range modules {
		stem := strings.TrimSuffix(m, ".ts")
		entries = append(entries, filepath.Join(root, folder, stem+suffix))
		scripts = append(scripts, filepath.Join(temp, stem+".test.cjs"))
	}
	options := bundling(console)
	options.EntryPoints, options.Outbase, options.Outdir = entries, filepath.Join(root, folder), temp
	options.OutExtension = map[string]string{".js": ".cjs"}
	if err := build(options); err != nil {
		return "", err
	}
	return node(ctx, scripts...)
}

// bundling returns how a test and the sources of a console become a script of Node.
func bundling(console string) api.BuildOptions {
	return api.BuildOptions{
		Bundle: true, Write: true, Platform: api.PlatformNode, Format: api.FormatCommonJS, Target: api.ES2022,
		JSX:       api.JSXAutomatic,
		Alias:     map[string]string{"castellan-console": filepath.Join(console, "src")},
		NodePaths: []string{filepath.Join(console, "node_modules")},
		Define:    map[string]string{"process.env.NODE_ENV": `"production"`},
	}
}

func build(options api.BuildOptions) error {
	built := api.Build(options)
	if len(built.Errors) == 0 {
		return nil
	}
	return errors.New(strings.Join(api.FormatMessages(built.Errors, api.FormatMessagesOptions{}), "\n"))
}

// node runs the tests of scripts. The test runner starts a process for each; all end together.
func node(ctx context.Context, scripts ...string) (output string, err error) {
	// JSON.parse gives the source of a number in every browser that the console supports, and in Node 20 with this flag.
	args := append([]string{"--harmony-json-parse-with-source", "--test", "--test-reporter=spec"}, scripts...)
	run := exec.CommandContext(ctx, "node", args...)
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
	out, err := run.CombinedOutput()
	return string(out), err
}

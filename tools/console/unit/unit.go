// Package unit runs the unit tests of the console's modules in Node: those that need no browser. A test has below
// this folder the path that its module has below console/src, as people/merge.test.ts for people/merge.ts.
//
// Each test file is bundled with the sources of a folder, so that the same tests run on changed sources (tools/mutate).
//
// Start reading at Run.
package unit

import (
	"context"
	"errors"
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

// Run runs all tests on the sources in console/src of a copy of the console, and returns what Node says.
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
	// JSON.parse gives the source of a number in every browser that the console supports, and in Node 20 with this flag.
	args := []string{"--harmony-json-parse-with-source", "--test", "--test-reporter=spec"}
	var entries []string
	for _, m := range modules {
		stem := strings.TrimSuffix(m, ".ts")
		entries = append(entries, filepath.Join(root, folder, stem+suffix))
		args = append(args, filepath.Join(temp, stem+".test.cjs"))
	}
	built := api.Build(api.BuildOptions{
		EntryPoints: entries, Outbase: filepath.Join(root, folder), Outdir: temp, Write: true,
		OutExtension: map[string]string{".js": ".cjs"},
		Bundle:       true, Platform: api.PlatformNode, Format: api.FormatCommonJS, Target: api.ES2022,
		JSX:       api.JSXAutomatic,
		Alias:     map[string]string{"castellan-console": filepath.Join(console, "src")},
		NodePaths: []string{filepath.Join(console, "node_modules")},
		Define:    map[string]string{"process.env.NODE_ENV": `"production"`},
	})
	if len(built.Errors) > 0 {
		return "", errors.New(strings.Join(api.FormatMessages(built.Errors, api.FormatMessagesOptions{}), "\n"))
	}
	// The test runner starts a process for each file; all end together.
	node := exec.CommandContext(ctx, "node", args...)
	node.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	node.Cancel = func() error { return syscall.Kill(-node.Process.Pid, syscall.SIGKILL) }
	out, err := node.CombinedOutput()
	return string(out), err
}

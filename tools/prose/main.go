// Command prose checks the English of the project: comments, documents, the texts of the published interface and of the
// console. The rules are those of docs/style.md.
//
// Usage: prose [-limit FILE] [-count] [-only FOLDER] ROOT
//
// A finding is printed as FILE:LINE: RULE: SENTENCE. The exit status is 1 if a folder has more findings than the limits
// file permits. It is also 1 if a folder has fewer: lower its number to keep the improvement.
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	limits := flag.String("limit", "", "file with the permitted number of findings of each folder")
	count := flag.Bool("count", false, "print the limits file that fits the findings of today")
	only := flag.String("only", "", "print findings of files below this folder only")
	flag.Parse()
	root := cmp.Or(flag.Arg(0), ".")
	found, err := lintTree(root, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	have := map[string]int{}
	for _, f := range found {
		have[folder(f.file)]++
	}
	if *count {
		for _, dir := range slices.Sorted(maps.Keys(have)) {
			fmt.Printf("%d\t%s\n", have[dir], dir)
		}
		return
	}
	allowed, err := readLimits(*limits)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	failed := false
	for _, f := range found {
		if dir := folder(f.file); have[dir] > allowed[dir] {
			fmt.Println(f)
			failed = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(allowed)) {
		if have[dir] < allowed[dir] && *only == "" {
			fmt.Printf("%s: %s has %d findings, and %d are permitted: lower the number\n", *limits, dir, have[dir], allowed[dir])
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// folder returns the part of the tree that a limit applies to.
func folder(file string) string { return path.Dir(file) }

// readLimits reads lines of a number, a tab and a folder. An empty name means no limits.
func readLimits(name string) (map[string]int, error) {
	limits := map[string]int{}
	if name == "" {
		return limits, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		number, dir, ok := strings.Cut(lines.Text(), "\t")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s: %q is not a number, a tab and a folder", name, lines.Text())
		}
		limits[dir] = n
	}
	return limits, nil
}

// lintTree checks every file under version control.
func lintTree(root, only string) ([]finding, error) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var found []finding
	for file := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if !strings.HasPrefix(file, only) {
			continue
		}
		read := reader(file)
		if read == nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range read(string(text)) {
			found = append(found, judge(file, p)...)
		}
	}
	return found, nil
}

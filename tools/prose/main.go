// Command prose checks the English of the project: comments and messages of Go, documents, the texts of the published
// interface and of the console. The rules are those of docs/style.md.
//
// Usage: prose [-limit FILE] [-count] [-only FOLDER] ROOT
//
// A finding is printed as FILE:LINE: RULE: SENTENCE. The exit status is 1 if a folder has more findings than the limits
// file permits. It is also 1 if a folder has fewer: lower its number to keep the improvement.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	only := flag.String("only", "", "check files below this folder only")
	flag.Parse()
	found, err := lintTree(cmp.Or(flag.Arg(0), "."), *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
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

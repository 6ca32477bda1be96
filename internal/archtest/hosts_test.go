package archtest

import (
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// turnOfHost is the method by which a type is a cluster.Host.
var turnOfHost = regexp.MustCompile(`(?m)^func \(.*\) Turn\(\w* ?\*cluster\.Turn\)`)

// waiting are packages whose calls wait for a disk or another machine.
var waiting = regexp.MustCompile(`^(database/|net$|net/(http|rpc|smtp|textproto)|crypto/tls$|os$|os/exec$` +
	`|castellan/(persistence|http|outbound|config|cmd)(/|$)|github\.com/(uptrace|gofiber|valyala|jackc)/)`)

// The turns of a Host run on goroutines that serve others. So its package imports nothing that waits for a database,
// a network or a file; the turns of rate limits have TestTurnsDoNotWait beside it.
func TestHostsWaitForNothing(t *testing.T) {
	files, hosts := map[string][]string{}, map[string]bool{}
	all := texts(t)
	for name, text := range all {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			continue
		}
		dir := path.Dir(name)
		files[dir] = append(files[dir], name)
		hosts[dir] = hosts[dir] || turnOfHost.MatchString(text)
	}
	n := 0
	for dir, is := range hosts {
		if !is {
			continue
		}
		n++
		for _, name := range files[dir] {
			file, err := parser.ParseFile(token.NewFileSet(), name, all[name], parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range file.Imports {
				if imp, _ := strconv.Unquote(spec.Path.Value); waiting.MatchString(imp) {
					t.Errorf("%s imports %s, and a turn must not wait", name, imp)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no package of a cluster.Host was found")
	}
}

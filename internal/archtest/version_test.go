package archtest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// versioned are the places that name the version of the tree.
var versioned = map[string]string{
	"web/web.go":                       `const Version = "(.*)"`,
	"go.mod":                           `castellan/client v(\S+)`,
	"client/js/package.json":           `"version": "(.*)"`,
	"client/js/README.md":              "`/static/(.*)/`",
	"deploy/kubernetes/castellan.yaml": `image: castellan:(\S+)`,
	"docs/clients.md":                  `/static/(\d.*?)/|client@v(\S+)`,
	"examples/vite/README.md":          `castellan-client-(\d.*?)\.tgz`,
}

// The tree has one version, the one in VERSION, which scripts/release.sh releases.
func TestOneVersion(t *testing.T) {
	all := texts(t)
	want := strings.TrimSpace(all["VERSION"])
	for name, pattern := range versioned {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(all[name], -1)
		for _, one := range found {
			if got := strings.Join(one[1:], ""); got != want {
				t.Errorf("%s has the version %s, and VERSION has %s", name, got, want)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s: %s matches nothing", name, pattern)
		}
	}
}

// Each release marks its schema, so that a program refuses one that is two releases ahead of it.
func TestReleaseMarksItsSchema(t *testing.T) {
	release := strings.Split(strings.TrimSpace(texts(t)["VERSION"]), ".")
	for _, kind := range []string{"sqlite", "postgres"} {
		pattern := fmt.Sprintf("../../persistence/migrations/%s/*_release_%s_%s.sql", kind, release[0], release[1])
		if found, _ := filepath.Glob(pattern); len(found) != 1 {
			t.Errorf("%s: %v", pattern, found)
		}
	}
}

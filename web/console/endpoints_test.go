//go:build !noconsole

package console_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// Each endpoint of the interface is used by a screen, or is in console/unused.txt with its reason. A screen uses an
// endpoint when it names its path, and its method unless that is GET.
func TestEndpointsAreUsed(t *testing.T) {
	var api struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	text, err := os.ReadFile("../../docs/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &api)
	}
	storetest.Must(t, err)
	screens := map[string]string{}
	// the console's writes, challenges and passkeys use them
	clients := []string{"../static/castellan-client.js", "../static/castellan-passkey.js"}
	for _, name := range append(scripts(t), clients...) {
		text := storetest.Value(os.ReadFile(name))(t)
		if filepath.Base(name) != "screens.ts" { // these name what a screen needs, not what it requests
			screens[name] = string(text)
		}
	}
	reasons := unused(t)
	for path, methods := range api.Paths {
		for method := range methods {
			if !strings.Contains(" get post patch delete ", " "+method+" ") {
				continue
			}
			endpoint := strings.ToUpper(method) + " " + path
			_, listed := reasons[endpoint]
			switch used := names(screens, method, path); {
			case !used && !listed:
				t.Errorf("no screen uses %s, and console/unused.txt has no reason", endpoint)
			case used && listed:
				t.Errorf("%s is used, and stands in console/unused.txt", endpoint)
			}
			delete(reasons, endpoint)
		}
	}
	for endpoint := range reasons {
		t.Errorf("console/unused.txt has %s, which is not in the interface", endpoint)
	}
}

func names(screens map[string]string, method, path string) bool {
	asked := regexp.MustCompile("['\"`]" + regexp.QuoteMeta(path) + "['\"`?]")
	how := regexp.MustCompile(fmt.Sprintf(`(?i)['"]%s['"]|useAnswer\(`, method))
	for _, text := range screens {
		if asked.MatchString(text) && (method == "get" || how.MatchString(text)) {
			return true
		}
	}
	return false
}

// unused returns the endpoints of console/unused.txt, with their reasons.
func unused(t *testing.T) map[string]string {
	t.Helper()
	text := storetest.Value(os.ReadFile(filepath.Join(sources, "unused.txt")))(t)
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		endpoint, reason, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || reason == "" {
			t.Errorf("console/unused.txt: %q has no reason", line)
		}
		found[endpoint] = reason
	}
	return found
}

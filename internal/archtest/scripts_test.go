package archtest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The vulnerability check passes only if it ran. It reports a missing database, and fails on a finding or an
// error of the tool.
func TestVulnerabilitiesAreNotPassedUnchecked(t *testing.T) {
	script := filepath.Join(moduleRoot(t), "scripts", "vulnerabilities.sh")
	for _, c := range []struct {
		tool, says string
		fails      bool
	}{
		{"echo 'No vulnerabilities found.'", "checked, no vulnerability", false},
		{"echo 'govulncheck: fetching vulnerabilities: Get \"https://x\": no such host' >&2; exit 1", "NOT CHECKED", false},
		{"echo 'Vulnerability #1: GO-2026-0001'; exit 3", "GO-2026-0001", true},
		{"echo 'govulncheck: loading packages: there are errors' >&2; exit 1", "loading packages", true},
	} {
		out, err := exec.Command(script, "sh", "-c", c.tool).CombinedOutput()
		if (err != nil) != c.fails || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", c.tool, err, out)
		}
		if c.says == "NOT CHECKED" && strings.Contains(string(out), ": checked") {
			t.Errorf("a check that was not made passes: %s", out)
		}
	}
}

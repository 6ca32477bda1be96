package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The check of vulnerabilities passes only after it ran. A missing database is reported, and a finding or an error of
// the tool fails.
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

// A release is made of a committed tree. Its tag names the version of the tree, and that version has notes.
func TestReleaseRefusesAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	do := func(says string, command ...string) {
		t.Helper()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t",
			"GIT_COMMITTER_EMAIL=t@t", "GIT_CONFIG_GLOBAL="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if (err != nil) != (says != "") || !strings.Contains(string(out), says) {
			t.Errorf("%v: %v, want %q\n%s", command, err, says, out)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "scripts"), os.DirFS(filepath.Join(moduleRoot(t), "scripts"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"VERSION": "1.2.0\n", ".gitignore": "bin\n",
		"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [1.1.0]\n\n- old\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do("", "git", "init", "--quiet")
	do("", "git", "add", "scripts", "VERSION", ".gitignore")
	do("", "git", "commit", "--quiet", "--message", "m")
	do("there are uncommitted changes", "scripts/release.sh")
	do("", "git", "add", ".")
	do("", "git", "commit", "--quiet", "--message", "m")
	do("", "git", "tag", "v1.1.0")
	do("the tag is v1.1.0, and VERSION is 1.2.0", "scripts/release.sh")
	do("", "git", "tag", "--delete", "v1.1.0")
	do("", "git", "tag", "v1.2.0")
	do("CHANGELOG.md has no section [1.2.0]", "scripts/release.sh")
}

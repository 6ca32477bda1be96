package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// terminal answers what a person types, and keeps what the command shows.
type terminal struct {
	io.Reader
	shown strings.Builder
}

func (t *terminal) Write(p []byte) (int, error) { return t.shown.Write(p) }
func (t *terminal) Close() error                { return nil }

// An export of secrets asks the terminal of the process, whatever standard input says, and writes nothing unless the
// whole phrase is typed.
func TestExportOfSecretsAsksTheTerminal(t *testing.T) {
	before := openTerminal
	t.Cleanup(func() { openTerminal = before })
	dir := t.TempDir()
	environ := []string{"CASTELLAN_DATA_DIR=" + dir, "CASTELLAN_DATABASE_URL=sqlite:" + filepath.Join(dir, "castellan.db"),
		"CASTELLAN_PASSWORD_ARGON2_MEMORY_KIB=8", "CASTELLAN_PASSWORD_ARGON2_TIME=1", "CASTELLAN_DEV=true"}
	castellan := func(stdin string, args ...string) (code int, out, errOut string) {
		var o, e strings.Builder
		code = run(t.Context(), args, environ, strings.NewReader(stdin), &o, &e)
		return code, o.String(), e.String()
	}
	code, _, errOut := castellan("tall-lantern-orchard\n", "user", "add", "--email", "a@example.test", "--country-code",
		"90",
		"--phone", "5321234567", "--password-stdin")
	if code != 0 {
		t.Fatal(errOut)
	}
	for typed, want := range map[string]int{"export secrets\n": 0, "export secrets": 0, "": 1, "y\n": 1, "export\n": 1,
		"-": 1} {
		tty := &terminal{Reader: strings.NewReader(typed)}
		openTerminal = func() (io.ReadWriteCloser, error) {
			if typed == "-" {
				return nil, errors.New("no terminal")
			}
			return tty, nil
		}
		to := filepath.Join(t.TempDir(), "out.jsonl")
		code, out, errOut := castellan("export secrets\n", "user", "export", "--with-secrets", "--output", to)
		text, err := os.ReadFile(to)
		if code != want || out != "" || (err == nil) != (want == 0) {
			t.Errorf("%q: exit %d, %s%s, %v", typed, code, out, errOut, err)
		}
		if want == 0 && !strings.Contains(string(text), `"hash":"$argon2id$`) {
			t.Errorf("%q: %s", typed, text)
		}
		if typed != "-" && !strings.Contains(tty.shown.String(), "password hashes") {
			t.Errorf("%q: asked %q", typed, tty.shown.String())
		}
	}
}

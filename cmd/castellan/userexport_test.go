package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
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
	settings := []string{"DATA_DIR=" + dir, "PASSWORD_ARGON2_MEMORY_KIB=8", "PASSWORD_ARGON2_TIME=1", "DEV=true"}
	code, _, errOut := command(t, settings, "user add --email a@example.test --country-code 90 --phone 5321234567 "+
		"--password-stdin", "tall-lantern-orchard\n")
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
		code, out, errOut := command(t, settings, "user export --with-secrets --output "+to, "export secrets\n")
		text, err := os.ReadFile(to)
		if code != want || out != "" || (err == nil) != (want == 0) {
			t.Errorf("%q: exit %d, %s%s, %v", typed, code, out, errOut, err)
		}
		if want == 0 {
			storetest.Contains(t, string(text), `"hash":"$argon2id$`, typed)
		}
		if typed != "-" {
			storetest.Contains(t, tty.shown.String(), "password hashes", typed)
		}
	}
}

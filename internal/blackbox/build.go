package blackbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"castellan/internal/apidoc"
	"castellan/internal/child"
)

// program is the package of the program under test.
const program = "castellan/cmd/castellan"

// built is the folder with the program of this process, "" until it is needed.
var built string

// castellan builds the program once for this process, with the tags and the race detector of the tests. All packages of
// a checkout share the file: Go does not link it again if nothing changed. This process uses a hard link, which does
// not change when another process builds from changed sources.
var castellan = sync.OnceValues(func() (string, error) {
	root := apidoc.Root()
	flags := append([]string{"-buildvcs=false", "-ldflags=-s -w"}, buildFlags()...)
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(root + "\x00" + strings.Join(flags, "\x00")))
	cache = filepath.Join(cache, "castellan-test", hex.EncodeToString(key[:8]))
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	shared := filepath.Join(cache, "castellan")
	if err := child.Build(shared, program, flags...); err != nil {
		return "", err
	}
	if built, err = os.MkdirTemp(cache, "run-"); err != nil {
		return "", err
	}
	own := filepath.Join(built, "castellan")
	return own, os.Link(shared, own)
})

// migrated is an SQLite database with the tables of the program under test and without rows of its own.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := prepared("migrated", "migrate")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "castellan.db")
	if more, _ := filepath.Glob(file + "-*"); len(more) > 0 {
		return nil, fmt.Errorf("migrate a database to copy: it is not closed: %v", more)
	}
	return os.ReadFile(file)
})

// prepared returns a new data folder in which a command has run, for copies.
func prepared(name string, command ...string) (dir string, err error) {
	program, err := castellan()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(built, name)
	cmd := exec.Command(program, command...)
	cmd.Env = []string{"CASTELLAN_DEV=true", "CASTELLAN_DATA_DIR=" + dir, "GOGC=" + heapPercent,
		"CASTELLAN_DATABASE_URL=sqlite:" + filepath.Join(dir, "castellan.db"),
		"CASTELLAN_PASSWORD_ARGON2_MEMORY_KIB=8", "CASTELLAN_PASSWORD_ARGON2_TIME=1"}
	if out, err := child.CombinedOutput(cmd); err != nil {
		return "", fmt.Errorf("prepare a folder to copy: %s: %w: %s", name, err, out)
	}
	return dir, nil
}

// removeProgram removes the files that castellan created for this process alone.
func removeProgram() {
	if built != "" {
		os.RemoveAll(built)
	}
}

// buildFlags returns the flags of the test binary that affect the program.
func buildFlags() (flags []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "-race", "-tags":
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}

// lock waits for the lock on a file; it ends with the process at the latest.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

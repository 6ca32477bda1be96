package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"castellan/config"
	"castellan/domain/kit/storetest"
)

// A start reports the files of its database that other users of the machine may read.
func TestReadableDatabaseFilesAreNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(dir, "castellan.db")
	storetest.Must(t, os.Mkdir(dir, 0o700))
	storetest.Must(t, os.WriteFile(file, nil, 0o600))
	cfg := config.Config{Database: config.Database{URL: config.Secret("sqlite:" + file)}}
	for _, c := range []struct {
		path string
		mode os.FileMode
		want []string
	}{{file, 0o600, nil}, {file, 0o640, []string{file}}, {dir, 0o755, []string{dir, file}}} {
		storetest.Must(t, os.Chmod(c.path, c.mode))
		if got := exposed(cfg); !slices.Equal(got, c.want) {
			t.Errorf("%s is %o: %q, want %q", c.path, c.mode, got, c.want)
		}
	}
	cfg.Dev = true
	if got := exposed(cfg); got != nil {
		t.Errorf("in development mode: %q", got)
	}
}

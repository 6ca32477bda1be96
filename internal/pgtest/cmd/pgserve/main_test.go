package main

import (
	"testing"

	"castellan/internal/pgtest"
)

func TestRun(t *testing.T) {
	t.Setenv(pgtest.EnvServer, "")
	// The command gets the address of a running server, and its status is the program's own.
	script := `case "$` + pgtest.EnvServer + `" in postgres://*) exit 7;; *) exit 8;; esac`
	if code, err := run([]string{"--", "sh", "-c", script}); code != 7 || err != nil {
		t.Errorf("got status %d, %v; want 7", code, err)
	}

	t.Setenv(pgtest.EnvServer, "postgres://already@there/db")
	t.Setenv("PG_BINDIR", t.TempDir()) // no server can be started: the given one is used
	script = `test "$` + pgtest.EnvServer + `" = postgres://already@there/db`
	if code, err := run([]string{"sh", "-c", script}); code != 0 || err != nil {
		t.Errorf("got status %d, %v; want 0 on the server named", code, err)
	}

	t.Setenv(pgtest.EnvServer, "")
	if code, err := run([]string{"true"}); code != 1 || err == nil {
		t.Errorf("got status %d, %v; want a failure without PostgreSQL", code, err)
	}
	if code, err := run(nil); code != 2 || err == nil {
		t.Errorf("got status %d, %v; want a usage error", code, err)
	}
}

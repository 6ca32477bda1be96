package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"castellan/domain/kit/storetest"
	"castellan/internal/child"
)

// envOwner makes this test binary the owner of a server, to be killed by TestServerEndsWithItsOwner.
const envOwner = "PGTEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(envOwner) != "" {
		s, err := Start()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.PID(), s.dir)
		select {} // until killed
	}
	os.Exit(m.Run())
}

func query[T any](t *testing.T, dsn, sql string, args ...any) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn := storetest.Value(pgx.Connect(ctx, dsn))(t)
	defer conn.Close(ctx)
	var v T
	storetest.Must(t, conn.QueryRow(ctx, sql, args...).Scan(&v))
	return v
}

func start(t *testing.T, options ...Option) *Server {
	t.Helper()
	s := storetest.Value(Start(options...))(t)
	t.Cleanup(s.Stop)
	return s
}

func TestDSN(t *testing.T) {
	s := start(t)
	t.Setenv(EnvServer, s.DSN())
	t.Setenv(EnvTemplate, "")
	const exists = "SELECT count(*) FROM pg_database WHERE datname = $1"

	var name string
	t.Run("fresh and apart", func(t *testing.T) {
		one, two := DSN(t), DSN(t)
		name = query[string](t, one, "SELECT current_database()")
		storetest.Must(t, do(one, "CREATE TABLE mine (id int)"))
		if n := query[int](t, two, "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'"); n != 0 {
			t.Error("a table of one test's database is seen in another's")
		}
		if n := query[int](t, s.DSN(), exists, name); n != 1 {
			t.Errorf("%s is not on the server named by %s", name, EnvServer)
		}
		// A test that does not close its pool must not keep the database.
		left := storetest.Value(pgx.Connect(t.Context(), one))(t)
		t.Cleanup(func() { left.Close(context.Background()) })
	})
	storetest.Equal(t, query[int](t, s.DSN(), exists, name), 0, name, "is still there after its test")
}

// A test gets a copy of the template; a test of migrations gets an empty database.
func TestDSNCopiesTheTemplate(t *testing.T) {
	s := start(t)
	template := storetest.Value(s.Database("made_before"))(t)
	storetest.Must(t, do(template, "CREATE TABLE mine (id int)"))
	t.Setenv(EnvServer, s.DSN())
	t.Setenv(EnvTemplate, "made_before")
	const tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'"
	storetest.Equal(t, query[int](t, DSN(t), tables), 1, "the copy lacks the table of the template")
	storetest.Equal(t, query[int](t, Empty(t), tables), 0, "the empty database has a table of the template")
}

func TestDSNStartsAServerWhereNoneIsNamed(t *testing.T) {
	t.Setenv(EnvServer, "")
	t.Run("first", func(t *testing.T) { query[int](t, DSN(t), "SELECT 1") })
	s := storetest.Value(shared())(t)
	pid := s.PID()
	t.Run("second", func(t *testing.T) { query[int](t, DSN(t), "SELECT 1") })
	if pid == 0 || s.PID() != pid {
		t.Error("the second test did not get the server of the first")
	}
}

func TestKillAndRestartKeepWhatWasAcknowledged(t *testing.T) {
	s := start(t, Durable())
	if got := query[string](t, s.DSN(), "SELECT current_setting('fsync') || "+
		"current_setting('synchronous_commit')"); got != "onon" {
		t.Fatalf("fsync and synchronous_commit are %q, want both on", got)
	}
	storetest.Must(t, do(s.DSN(), "CREATE TABLE kept (id int)"))
	for round := range 3 {
		storetest.Must(t, do(s.DSN(), fmt.Sprintf("INSERT INTO kept VALUES (%d)", round)))
		children := child.Children(s.PID())
		if len(children) == 0 {
			t.Fatal("the server has no processes below it: the listing is broken")
		}
		s.Kill()
		for _, pid := range children {
			if child.Alive(pid) {
				t.Errorf("round %d: process %d of the server outlived the kill", round, pid)
			}
		}
		if err := ping(s.DSN()); err == nil {
			t.Fatal("a killed server answers")
		}
		storetest.Equal(t, s.PID(), 0, "a killed server has a process id")
		storetest.Must(t, s.Restart())
		if n := query[int](t, s.DSN(), "SELECT count(*) FROM kept"); n != round+1 {
			t.Errorf("round %d: %d rows after recovery, want %d", round, n, round+1)
		}
	}
	if err := s.Restart(); err == nil {
		t.Error("a running server was started again")
	}
}

func TestServerEndsWithItsOwner(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envOwner+"=1")
	out := storetest.Value(cmd.StdoutPipe())(t)
	storetest.Must(t, cmd.Start())
	line, _ := bufio.NewReader(out).ReadString('\n')
	var pid int
	var dir string
	if _, err := fmt.Sscan(line, &pid, &dir); err != nil {
		t.Fatalf("the owner said %q", line)
	}
	if !child.Alive(pid) {
		t.Fatal("the server does not run")
	}
	cmd.Process.Kill()
	cmd.Wait()
	for deadline := time.Now().Add(stopTimeout); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(dir)
		if !child.Alive(pid) && errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after its owner's death: server alive %v, folder: %v", child.Alive(pid), err)
		}
	}
}

func TestStopLeavesNothing(t *testing.T) {
	s := start(t)
	pid := s.PID()
	s.Stop()
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) || child.Alive(pid) {
		t.Errorf("after Stop: server alive %v, folder: %v", child.Alive(pid), err)
	}
	s.Stop() // a second call does nothing
}

func TestStartNamesWhatIsMissing(t *testing.T) {
	t.Setenv("PG_BINDIR", t.TempDir())
	_, err := Start()
	if !errors.Is(err, ErrNoPrograms) {
		t.Fatalf("got %v, want ErrNoPrograms", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Error("the message has more than one line")
	}
}

func TestWithDatabase(t *testing.T) {
	for _, c := range []struct{ dsn, want string }{
		{"postgres://app@127.0.0.1:5432/postgres?sslmode=disable", "postgres://app@127.0.0.1:5432/x?sslmode=disable"},
		{"postgres://app@127.0.0.1:5432", "postgres://app@127.0.0.1:5432/x"},
		{"host=127.0.0.1 dbname=postgres", ""},
		{"", ""},
	} {
		got, err := withDatabase(c.dsn, "x")
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("withDatabase(%q) = %q, %v; want %q", c.dsn, got, err, c.want)
		}
	}
}

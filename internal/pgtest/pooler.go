package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// pooled runs PgBouncer until its standard input ends, which comes with the end of this process.
const pooled = `"$1" -q "$2" & read -r _; kill -KILL $!; wait`

// Pooler starts PgBouncer in front of a database and returns the address of the database there. settings are lines of
// its section [pgbouncer], such as "pool_mode=session". It ends with the test.
func Pooler(t testing.TB, dsn string, settings ...string) string {
	t.Helper()
	Need(t)
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal("PgBouncer is missing: run `make test-deps`")
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cred, err := unprivileged()
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pgtest-pooler-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text := fmt.Sprintf("[databases]\n%s = user=%s host=%s port=%s\n[pgbouncer]\nlisten_addr=127.0.0.1\n"+
		"listen_port=%d\nauth_type=any\nunix_socket_dir=\n%s\n", strings.TrimPrefix(u.Path, "/"), u.User.Username(),
		u.Hostname(), u.Port(), port, strings.Join(settings, "\n"))
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if cred != nil { // it refuses to run as root
		for _, name := range []string{dir, file} {
			if err := os.Chown(name, int(cred.Uid), int(cred.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command("/bin/sh", "-c", pooled, "pgtest", program, file)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: cred}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	u.Host = fmt.Sprint("127.0.0.1:", port)
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		c, err := pgx.Connect(ctx, u.String())
		cancel()
		if err == nil {
			c.Close(context.Background())
			return u.String()
		}
		if time.Now().After(deadline) {
			t.Fatalf("pgtest: PgBouncer does not answer: %v", err)
		}
	}
}

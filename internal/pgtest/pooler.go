package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"castellan/domain/kit/storetest"
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
	u := storetest.Value(url.Parse(dsn))(t)
	cred := storetest.Value(unprivileged())(t)
	port := storetest.Value(freePort())(t)
	dir := storetest.Value(os.MkdirTemp("", "pgtest-pooler-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	text := fmt.Sprintf("[databases]\n%s = user=%s host=%s port=%s\n[pgbouncer]\nlisten_addr=127.0.0.1\n"+
		"listen_port=%d\nauth_type=any\nunix_socket_dir=\n%s\n", strings.TrimPrefix(u.Path, "/"), u.User.Username(),
		u.Hostname(), u.Port(), port, strings.Join(settings, "\n"))
	file := filepath.Join(dir, "pgbouncer.ini")
	storetest.Must(t, os.WriteFile(file, []byte(text), 0o600))
	if cred != nil { // it refuses to run as root
		for _, name := range []string{dir, file} {
			storetest.Must(t, os.Chown(name, int(cred.Uid), int(cred.Gid)))
		}
	}
	cmd := exec.Command("/bin/sh", "-c", pooled, "pgtest", program, file)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: cred}
	in := storetest.Value(cmd.StdinPipe())(t)
	storetest.Must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	u.Host = fmt.Sprint("127.0.0.1:", port)
	if err := await(func() error { return ping(u.String()) }); err != nil {
		t.Fatalf("pgtest: PgBouncer does not answer: %v", err)
	}
	return u.String()
}

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"castellan/internal/child"
)

// ErrNoPrograms means that the machine has no PostgreSQL server. Its text is an instruction for the user.
var ErrNoPrograms = errors.New(
	"PostgreSQL's server programs (initdb, postgres) are missing: run `make test-deps`, or name their folder in PG_BINDIR",
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
)

// Server is a PostgreSQL server that only this process uses. It listens on loopback only and trusts every local
// connection: never store anything valuable in it.
//
// It ends with the process that started it, whatever ends that one: see janitor. It needs no goroutine, so tests for
// leaks do not find it. Stop ends it at once.
//
// Its methods are not safe for concurrent use; the database that it serves is.
type Server struct {
	bin      string
	dir      string // holds the data and the log; removed by Stop
	port     int
	settings []string
	cred     *syscall.Credential
	cmd      *exec.Cmd
	janitor  *janitor
}

// Option changes how a server is started.
type Option func(*Server)

// Durable keeps every promise of a production server: an acknowledged commit is on the disk. For measurements, and for
// tests that kill the server.
func Durable() Option {
	return Settings("fsync=on", "synchronous_commit=on", "full_page_writes=on")
}

// Settings adds lines of postgresql.conf ("name=value"); the last one of a name wins.
func Settings(lines ...string) Option {
	return func(s *Server) { s.settings = append(s.settings, lines...) }
}

// Start creates a new, empty server and returns when it answers. Without Durable it trades durability for speed. It
// returns ErrNoPrograms if PostgreSQL is not installed.
func Start(options ...Option) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	cred, err := unprivileged()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, port: port, cred: cred, settings: []string{
		"fsync=off", "synchronous_commit=off", "full_page_writes=off",
		// Packages tested in parallel share one server, each test with a pool.
		"max_connections=300", "shared_buffers=64MB", "timezone=UTC",
	}}
	for _, o := range options {
		o(s)
	}
	if err := s.makeFolder(); err != nil {
		return nil, err
	}
	if err = s.initialise(); err == nil {
		err = s.Restart()
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// makeFolder creates the folder of the server's user, and its janitor.
func (s *Server) makeFolder() (err error) {
	if s.dir, err = os.MkdirTemp("", "pgtest-"); err != nil {
		return fmt.Errorf("pgtest: make a folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(s.dir); err == nil {
		s.dir = real // the janitor compares it with the kernel's path
	}
	if s.cred != nil {
		err = os.Chown(s.dir, int(s.cred.Uid), int(s.cred.Gid))
	}
	if err == nil {
		s.janitor, err = newJanitor(s.dir, s.data())
	}
	if err != nil {
		os.RemoveAll(s.dir)
		return fmt.Errorf("pgtest: make a folder for the server's user: %w", err)
	}
	return nil
}

// DSN returns the address of the server's default database.
func (s *Server) DSN() string {
	return fmt.Sprintf("postgres://app@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// Prefer gives the server precedence over the processes of the tests, if the system permits it (root on Linux).
// Browsers occupy all processors for minutes, while an answer of a database has a deadline of 1.5 s.
func (s *Server) Prefer() {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, s.cmd.Process.Pid, -10)
}

// Database creates an empty database of the server and returns its address.
func (s *Server) Database(name string) (dsn string, err error) {
	if err := do(s.DSN(), "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return "", err
	}
	return withDatabase(s.DSN(), name)
}

// PID returns the process id of the server's first process, the parent of all others; 0 if it does not run.
func (s *Server) PID() int {
	if !s.running() {
		return 0
	}
	return s.cmd.Process.Pid
}

// Restart starts a server that Kill ended, with the same data and the same address, and returns when it has recovered
// and answers.
func (s *Server) Restart() error {
	if s.running() {
		return errors.New("pgtest: the server is running")
	}
	logfile, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("pgtest: open the server's log: %w", err)
	}
	defer logfile.Close()

	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port), "-h", "127.0.0.1", "-k", ""}
	for _, line := range s.settings {
		args = append(args, "-c", line)
	}
	cmd := s.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = logfile, logfile
	// A separate group, so that Ctrl-C ends the tests and not their database.
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("pgtest: start postgres: %w", err)
	}
	s.cmd = cmd
	if err := s.ready(); err != nil {
		s.Kill()
		return err
	}
	return nil
}

// Kill ends every process of the server at once with SIGKILL, as a crash of the machine would, and returns when they
// are gone. Everything that a Durable server acknowledged exists after Restart. Killing a server that does not run does
// nothing.
func (s *Server) Kill() {
	if !s.running() {
		return
	}
	pid := s.cmd.Process.Pid
	// Frozen first: a parent that saw a child die would shut the others down gracefully, and a new one could start
	// between listing and killing.
	child.Freeze(pid)
	children := child.Children(pid)
	for _, one := range children {
		syscall.Kill(one, syscall.SIGKILL)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	s.cmd.Wait()
	// Orphans hold the shared memory until the kernel has removed them; a restart before that would be refused.
	for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(children, child.Alive) {
			return
		}
	}
}

// Freeze stops every process of the server, like a paused machine; Thaw resumes them.
func (s *Server) Freeze() { s.each(child.Freeze) }

// Thaw ends a Freeze.
func (s *Server) Thaw() { s.each(child.Thaw) }

func (s *Server) each(do func(pid int)) {
	if !s.running() {
		return
	}
	pid := s.cmd.Process.Pid
	do(pid) // the parent first: no child starts in between
	for _, one := range child.Children(pid) {
		do(one)
	}
}

// Shutdown ends the server in order, as systemctl stop does. It keeps its folder, so Restart starts it again.
func (s *Server) Shutdown() {
	if !s.running() {
		return
	}
	s.cmd.Process.Signal(syscall.SIGINT) // PostgreSQL's fast shutdown: connections are cut
	for deadline := time.Now().Add(stopTimeout); s.running(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.Kill()
		}
	}
	s.cmd.Wait()
}

// Stop shuts the server down and removes its folder. The server cannot be used afterwards; a second call does nothing.
func (s *Server) Stop() {
	s.Shutdown()
	os.RemoveAll(s.dir)
	s.janitor.close()
}

// running is false as soon as the server has ended. After it is reaped its number may belong to another process.
func (s *Server) running() bool {
	return s.cmd != nil && s.cmd.ProcessState == nil && child.Alive(s.cmd.Process.Pid)
}

// Folder returns the server's folder. Its data are in data; a test may keep files beside them.
func (s *Server) Folder() string { return s.dir }

// Run runs a shell command in Folder as the server's user. PostgreSQL's programs are in its path and find the server.
func (s *Server) Run(line string) error {
	cmd := s.command("/bin/sh", "-c", line)
	cmd.Env = append(cmd.Env, "PATH="+s.bin+":"+os.Getenv("PATH"), "PGHOST=127.0.0.1", "PGPORT="+strconv.Itoa(s.port),
		"PGUSER=app", "PGDATABASE=postgres")
	return finished(line, cmd)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) initialise() error {
	return finished("initdb", s.command("initdb", "-D", s.data(), "-U", "app", "-A", "trust", "-E", "UTF8",
		"--locale=C", "--no-sync", "--no-instructions"))
}

// finished runs a command to its end.
func finished(name string, cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: %s: %w: %s", name, err, out)
	}
	return nil
}

// command runs one of PostgreSQL's programs, or a file.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.bin, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	return cmd
}

func (s *Server) ready() error {
	err := await(func() error {
		if !s.running() {
			return nil
		}
		return ping(s.DSN())
	})
	if !s.running() {
		s.cmd.Wait()
		return fmt.Errorf("pgtest: postgres ended while starting: %s", s.log())
	}
	if err != nil {
		return fmt.Errorf("pgtest: postgres does not answer: %w: %s", err, s.log())
	}
	return nil
}

// await repeats an attempt until it succeeds, for at most startTimeout.
func await(attempt func() error) error {
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(10 * time.Millisecond) {
		if err := attempt(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func ping(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func (s *Server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text)
}

// programs finds the folder of initdb and postgres. Debian keeps them out of PATH, one folder per major version; the
// newest is used.
func programs() (string, error) {
	if dir := os.Getenv("PG_BINDIR"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			return "", ErrNoPrograms
		}
		return dir, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) > 0 {
		newest := slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })
		return filepath.Dir(newest), nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", ErrNoPrograms
}

func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// unprivileged returns the server's user if the tests run as root: PostgreSQL refuses to run as root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New(
		"pgtest: running as root, and the users postgres and `nobody` do not exist",
	)
}

// freePort picks a port below the kernel's range for outgoing connections. One of those could take a port while the
// server is down, and a client that keeps dialling a dead port of that range can even connect to itself.
func freePort() (int, error) {
	var err error
	for range 50 {
		port := 15000 + rand.IntN(15000)
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("pgtest: find a free port: %w", err)
}

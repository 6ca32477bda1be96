package blackbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"castellan/domain/kit/storetest"
	"castellan/internal/child"
	"castellan/internal/load"
	"castellan/internal/pgtest"
)

// Site is one deployment: a database, a data folder and the settings of its processes. It belongs to one test and ends
// with it.
type Site struct {
	Kind string // of the database: one of Databases
	DSN  string
	Dir  string // the data folder
	// Program is the file of another program, such as another version or the test binary (os.Args[0]); "" is the
	// program under test.
	Program string

	t        testing.TB
	settings map[string]string
	users    int
	empty    bool // no tables are created in advance

	usualHeap bool
}

// NewSite creates a site in development mode with very cheap hashes. Nothing runs yet.
func NewSite(t testing.TB, kind string) *Site {
	t.Helper()
	if kind == "postgres" {
		return NewSiteOn(t, pgtest.DSN(t))
	}
	return NewSiteOn(t, "")
}

// NewSiteOn is NewSite on an empty database of PostgreSQL; "" means SQLite.
func NewSiteOn(t testing.TB, dsn string) *Site {
	t.Helper()
	s := &Site{Kind: "postgres", DSN: dsn, Dir: filepath.Join(t.TempDir(), "data"), t: t}
	if dsn == "" {
		s.Kind, s.DSN = "sqlite", "sqlite:"+filepath.Join(s.Dir, "castellan.db")
	}
	s.settings = map[string]string{
		"CASTELLAN_DEV": "true", "CASTELLAN_DATA_DIR": s.Dir, "CASTELLAN_DATABASE_URL": s.DSN,
		"CASTELLAN_DATABASE_MAX_CONNECTIONS": "8",
		"CASTELLAN_HTTP_ADDR":                "127.0.0.1:0", "CASTELLAN_LOG_LEVEL": "debug",
		"CASTELLAN_PASSWORD_ARGON2_MEMORY_KIB": "8", "CASTELLAN_PASSWORD_ARGON2_TIME": "1",
	}
	return s
}

// Empty gives the site a database without tables, for a test of the migrations.
func (s *Site) Empty() *Site {
	s.t.Helper()
	s.empty = true
	if s.Kind == "postgres" { // the first process creates a file
		s.DSN = pgtest.Empty(s.t)
		s.settings["CASTELLAN_DATABASE_URL"] = s.DSN
	}
	return s
}

// Alone gives the site a server of PostgreSQL of its own. A long transaction delays the feeds of all databases of its
// server, because it may still commit an earlier event.
func (s *Site) Alone() *Site {
	s.t.Helper()
	if s.Kind == "sqlite" {
		return s
	}
	server, err := pgtest.Start()
	storetest.Must(s.t, err)
	s.t.Cleanup(server.Stop)
	if s.DSN, err = server.Database("alone"); err != nil {
		s.t.Fatal(err)
	}
	s.settings["CASTELLAN_DATABASE_URL"] = s.DSN
	return s
}

// For returns the site for a subtest, which receives its failures. It must not start anything.
func (s *Site) For(t testing.TB) *Site {
	of := *s
	of.t = t
	return &of
}

// Production switches development mode off, and with it the seeded accounts, the pages and the outbox that shows codes.
// On PostgreSQL the service creates no master key, so this function does, like an operator.
func (s *Site) Production() *Site {
	s.t.Helper()
	delete(s.settings, "CASTELLAN_DEV")
	if s.Kind == "postgres" {
		s.MakeMaster(filepath.Join(s.Dir, "master.key"))
	}
	return s
}

// MakeMaster writes a new master key, as the program documents it.
func (s *Site) MakeMaster(file string) {
	s.t.Helper()
	var key [32]byte
	rand.Read(key[:])
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(key[:])+"\n"), 0o600)
	}
	storetest.Must(s.t, err)
}

// Set changes settings for processes that are started from now on. Each is NAME=value, the name without its prefix; an
// empty value removes the setting.
func (s *Site) Set(settings ...string) *Site {
	for _, kv := range settings {
		name, value, _ := strings.Cut(kv, "=")
		name = "CASTELLAN_" + name
		if value == "" {
			delete(s.settings, name)
		} else {
			s.settings[name] = value
		}
	}
	return s
}

// heapPercent is the GOGC of the processes of a site. Most of them live for seconds, and the start of one would use two
// thirds more processor time with the default.
const heapPercent = "400"

// UsualHeap gives the processes the heap of a real installation, for a test that measures memory.
func (s *Site) UsualHeap() *Site {
	s.usualHeap = true
	return s
}

// environ is the whole environment of a process: of the tests' own environment it contains only search paths.
func (s *Site) environ(more []string) []string {
	all := maps.Clone(s.settings)
	for _, kv := range more {
		name, value, _ := strings.Cut(kv, "=")
		all["CASTELLAN_"+name] = value
	}
	env := []string{childEnv + "=1"}
	if !s.usualHeap && !itself {
		env = append(env, "GOGC="+heapPercent)
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}

// Output is the output of a finished command.
type Output struct {
	Code        int
	Out, ErrOut string
}

// commandTime bounds a command, including a demonstration on a busy machine.
const commandTime = 10 * time.Minute

// Command runs a command to its end, with a text on its standard input.
func (s *Site) Command(stdin string, args ...string) Output {
	s.t.Helper()
	return s.CommandWith(nil, stdin, args...)
}

// Succeeds is Command for one that must end with exit code 0.
func (s *Site) Succeeds(stdin string, args ...string) Output {
	s.t.Helper()
	got := s.Command(stdin, args...)
	if got.Code != 0 {
		s.t.Fatalf("castellan %s: exit %d: %s%s", strings.Join(args, " "), got.Code, got.Out, got.ErrOut)
	}
	return got
}

// Says is Command for a line that must end with an exit code, and say all texts: as its output, or as its error.
func (s *Site) Says(code int, line string, texts ...string) Output {
	s.t.Helper()
	got := s.Command("", strings.Fields(line)...)
	said := map[bool]string{true: got.Out, false: got.ErrOut}[code == 0]
	for _, text := range texts {
		if !strings.Contains(said, text) {
			s.t.Errorf("castellan %s says nothing of %q: %s%s", line, text, got.Out, got.ErrOut)
		}
	}
	if got.Code != code || code != 0 && got.ErrOut == "" {
		s.t.Fatalf("castellan %s: exit %d, want %d: %s%s", line, got.Code, code, got.Out, got.ErrOut)
	}
	return got
}

// ServiceKey makes the key of a service client and returns its header.
func (s *Site) ServiceKey(name string, options ...string) Headers {
	s.t.Helper()
	got := s.Succeeds("", append([]string{"service-key", "add", "--name", name}, options...)...)
	return Headers{"service-auth": strings.TrimPrefix(strings.TrimSpace(got.Out), "key: ")}
}

// CommandWith is Command with further settings, as in Start.
func (s *Site) CommandWith(settings []string, stdin string, args ...string) Output {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program(), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it prints where it waits
	cmd.WaitDelay = 5 * time.Second
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	cmd.Env = s.environ(settings)
	err := child.Run(cmd)
	if ctx.Err() != nil {
		s.t.Fatalf("castellan %s did not end (%s): %s\n%s", strings.Join(args, " "), load.Now(), out.String(),
			errOut.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("castellan %s: %v", strings.Join(args, " "), err)
	}
	return Output{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func (s *Site) program() string {
	s.t.Helper()
	if s.Program != "" {
		return s.Program
	}
	if itself {
		return os.Args[0]
	}
	return storetest.Value(castellan())(s.t)
}

// fill gives a site on SQLite its tables if it has no database: copying a migrated database is cheaper than migrating
// another one. PostgreSQL does the same (pgtest.DSN).
func (s *Site) fill() {
	s.t.Helper()
	file, is := strings.CutPrefix(s.settings["CASTELLAN_DATABASE_URL"], "sqlite:"+s.Dir+"/")
	if !is || s.empty || itself || s.Program != "" {
		return
	}
	if _, err := os.Stat(s.Dir); err == nil {
		return
	}
	text, err := migrated()
	if err == nil {
		err = os.MkdirAll(s.Dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Dir, file), text, 0o600)
	}
	storetest.Must(s.t, err)
}

// AddUser creates an account with the command line, as an operator does.
func (s *Site) AddUser(role string) Account {
	s.t.Helper()
	s.fill()
	s.users++
	a := NewAccount(s.users)
	got := s.Succeeds(a.Password+"\n", "user", "add", "--email", a.Mail, "--country-code", a.Country,
		"--phone", a.Phone, "--password-stdin", "--role", role)
	a.ID = strings.TrimSpace(got.Out)
	return a
}

// Count counts the rows of a clause after FROM: a table and, if needed, a condition whose arguments are written $1, $2
// ….
func (s *Site) Count(clause string, args ...any) int {
	s.t.Helper()
	var n int
	s.query("SELECT count(*) FROM "+clause, &n, args...)
	return n
}

// Has checks the count of a clause.
func (s *Site) Has(want int, clause string, args ...any) {
	s.t.Helper()
	storetest.Equal(s.t, s.Count(clause, args...), want, "rows in", clause, args)
}

// Text returns the single value of a query.
func (s *Site) Text(query string) (text string) {
	s.t.Helper()
	s.query(query, &text)
	return text
}

// Tables returns the tables of the database.
func (s *Site) Tables() []string {
	s.t.Helper()
	query := "SELECT string_agg(table_name, ' ') FROM information_schema.tables WHERE table_schema = 'public'"
	if strings.HasPrefix(s.DSN, "sqlite:") {
		query = "SELECT group_concat(name, ' ') FROM sqlite_master WHERE type = 'table'"
	}
	return strings.Fields(s.Text(query))
}

// Columns returns the columns of a table.
func (s *Site) Columns(table string) []string {
	s.t.Helper()
	query := "SELECT string_agg(column_name, ' ') FROM information_schema.columns " +
		"WHERE table_name = $1 AND is_generated = 'NEVER'"
	if strings.HasPrefix(s.DSN, "sqlite:") {
		query = "SELECT group_concat(name, ' ') FROM pragma_table_info($1)"
	}
	var names string
	s.query(query, &names, table)
	return strings.Fields(names)
}

// Exec changes the database directly, without the service.
func (s *Site) Exec(statement string, args ...any) {
	s.t.Helper()
	db := s.Open()
	defer db.Close()
	if _, err := db.Exec(statement, args...); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

func (s *Site) query(statement string, into any, args ...any) {
	s.t.Helper()
	db := s.Open()
	defer db.Close()
	if err := db.QueryRow(statement, args...).Scan(into); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

// Open opens the database directly, without the service. The caller closes it.
func (s *Site) Open() *sql.DB {
	s.t.Helper()
	driver, dsn := "pgx", s.DSN
	if path, ok := strings.CutPrefix(s.DSN, "sqlite:"); ok {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
	}
	return storetest.Value(sql.Open(driver, dsn))(s.t)
}

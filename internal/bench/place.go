package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite"

	"castellan/cmd/app"
	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
)

// place is a database with the service's settings for it.
type place struct {
	name    string // in the table
	dsn     string // in the service's settings
	process int    // the database's first process; 0: it has none
	environ []string
	users   []string // ids of the accounts, after the seed
	bare    bare
}

// bare makes inserts without the service: rows of a table with the shape of an outcome, as durable as the service's
// own.
type bare interface {
	insert(rows int) error
	close() error
}

const row = "(id TEXT PRIMARY KEY, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, body TEXT NOT NULL)"

// places creates a new database of each requested kind.
func (b *bench) places(settings ...string) (out []*place) {
	for _, kind := range []struct {
		name string
		make func(settings []string) *place
	}{{"sqlite", b.sqlite}, {"postgresql", b.postgresql}} {
		if b.on == "" || b.on == kind.name {
			out = append(out, kind.make(settings))
		}
	}
	if out == nil {
		must(fmt.Errorf("there is no database %q", b.on))
	}
	return out
}

func (b *bench) sqlite(settings []string) *place {
	dir := need(os.MkdirTemp(b.dir, "sqlite-"))
	p := &place{name: "SQLite", dsn: "sqlite:" + filepath.Join(dir, "service.db"), environ: slices.Clone(settings)}
	p.environ = append(p.environ, "CASTELLAN_DATA_DIR="+dir, "CASTELLAN_DATABASE_URL="+p.dsn)
	p.bare = need(newBareSQLite(filepath.Join(dir, "bare.db")))
	return p
}

func (b *bench) postgresql(settings []string) *place {
	s := b.postgres()
	dir := need(os.MkdirTemp(b.dir, "postgres-"))
	dsn := need(s.Database("bench_" + strings.ToLower(rand.Text()[:8])))
	p := &place{name: "PostgreSQL", dsn: dsn, process: s.PID(), environ: slices.Clone(settings)}
	p.environ = append(p.environ, "CASTELLAN_DATA_DIR="+dir, "CASTELLAN_DATABASE_URL="+p.dsn)
	p.bare = need(newBarePostgres(p.dsn))
	return p
}

// onEach measures a service on a new database of each kind. more is how many further accounts are copied first.
func (b *bench) onEach(settings []string, more int, on func(p *place, s *server)) {
	for _, p := range b.places(settings...) {
		defer p.bare.close()
		must(within(p.name, attempt(func() {
			s := p.serve(more)
			defer s.stop() // before the next one is measured
			on(p, s)
		})))
	}
}

// serve seeds the accounts of one round and starts the service. more is how many further accounts are copied first.
func (p *place) serve(more int) *server {
	p.seed(1)
	if more > 0 {
		p.copies(more)
	}
	return need(start(roleService, p.environ))
}

// seed migrates the database and creates the accounts of that many rounds, whose password has one hash of the
// configured cost. The account after those of the first round is an administrator.
func (p *place) seed(rounds int) {
	cfg, _, hash := hashed(p.environ)
	ctx := context.Background()
	v := need(app.Open(ctx, cfg))
	defer v.Close()
	for i := 0; i < account(rounds, 0); {
		var ws []commit.Write
		for ; i < account(rounds, 0) && len(ws) < 500; i++ {
			u := user.New(id.New(time.Now()), time.Now())
			if p.users = append(p.users, u.ID); i == people {
				u.Roles = []string{user.RoleAdmin}
			}
			u.CountryCode, u.Email, u.Name = "90", fmt.Sprintf("u%d@bench.castellan.test", i), "Bench"
			u.Phone = need(user.Canonical("90", phone(i)))
			ws = append(ws, user.Add{User: u, PasswordHash: hash})
		}
		must(v.DB.Commit(ctx, ws...))
	}
}

// cheap are the settings of a service with very cheap passwords and without limits that stop a load.
func cheap(more ...string) []string {
	return append([]string{"CASTELLAN_DEV=true", "CASTELLAN_LIMITS_ENABLED=false", "CASTELLAN_LOG_LEVEL=warn",
		"CASTELLAN_PASSWORD_ARGON2_MEMORY_KIB=8", "CASTELLAN_PASSWORD_ARGON2_TIME=1"}, more...)
}

// bareSQLite commits on one connection with the settings of the service.
type bareSQLite struct {
	db *sql.DB
	n  int
}

func newBareSQLite(file string) (*bareSQLite, error) {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+file+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE bare " + row)
	return &bareSQLite{db: db}, err
}

func (b *bareSQLite) insert(rows int) error {
	_, err := b.db.Exec(statement(&b.n, rows))
	return err
}

func (b *bareSQLite) close() error { return b.db.Close() }

type barePostgres struct {
	conn *pgx.Conn
	n    int
}

func newBarePostgres(dsn string) (*barePostgres, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(context.Background(), "CREATE TABLE bare "+row)
	return &barePostgres{conn: conn}, err
}

func (b *barePostgres) insert(rows int) error {
	_, err := b.conn.Exec(context.Background(), statement(&b.n, rows))
	return err
}

func (b *barePostgres) close() error { return b.conn.Close(context.Background()) }

var bareText = strings.Repeat("x", 300)

// statement inserts that many rows, with ids that sort by time like the real ones.
func statement(n *int, rows int) string {
	var s strings.Builder
	s.WriteString("INSERT INTO bare (id, created_at, expires_at, body) VALUES ")
	for i := range rows {
		if i > 0 {
			s.WriteString(", ")
		}
		*n++
		fmt.Fprintf(&s, "('01J%023d', 1700000000000, 1700000600000, '%s')", *n, bareText)
	}
	return s.String()
}

package apitest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
)

// Both runs a test on a migrated and started database of each kind, like persistencetest.Both, with DSN.
func Both(t *testing.T, test func(t *testing.T, db *persistence.DB)) {
	t.Helper()
	for name, dsn := range Databases {
		t.Run(name, func(t *testing.T) { test(t, persistencetest.OpenWith(t, dsn(t), persistence.Options{})) })
	}
}

// Databases are both kinds: a name, and a function that returns the address of a migrated database.
var Databases = map[string]func(t testing.TB) string{"sqlite": persistencetest.File, "postgres": DSN}

// DSN returns the address of a migrated PostgreSQL database that only this test uses. A new database costs a third of
// a second of processor time, and a test writes a few rows. So the tests of a package with Main follow one another in
// one database, which gets its first content back after each. DSN is safe for parallel tests.
func DSN(t testing.TB) string {
	t.Helper()
	if !databases.shared {
		return pgtest.DSN(t)
	}
	pgtest.Need(t)
	d := databases.take()
	if d == nil {
		d = newDatabase(t)
	}
	t.Cleanup(func() {
		if d.restore(t) {
			databases.put(d)
		}
	})
	return d.dsn
}

// databases are those that no test uses at the moment.
var databases pool

type pool struct {
	mu     sync.Mutex
	shared bool // set by Main
	free   []*database
}

func (p *pool) take() *database {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return nil
	}
	d := p.free[last]
	p.free = p.free[:last]
	return d
}

func (p *pool) put(d *database) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, d)
}

// database is a database of several tests. The schema pristine holds its first content.
type database struct {
	dsn, shape string
	drop       func()
}

// lasting is a test whose resources outlive it: drop ends them.
type lasting struct {
	testing.TB
	drop *func()
}

func (l lasting) Cleanup(end func()) { *l.drop = end }

// Errorf is called by drop, when the test is over.
func (lasting) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func newDatabase(t testing.TB) *database {
	t.Helper()
	d := &database{}
	d.dsn = pgtest.DSN(lasting{t, &d.drop})
	db := storetest.Value(persistence.Open(t.Context(), d.dsn, persistence.Options{Timeout: time.Minute}))(t)
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
		_, err := persistence.Migrate(ctx, db)
		return err
	}))
	storetest.Must(t, db.Close())
	d.shape = d.run(t, `DO $$ DECLARE t record; filled bool; BEGIN
		CREATE SCHEMA pristine;
		FOR t IN SELECT oid::regclass AS id, relname FROM pg_class
				WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
			EXECUTE format('SELECT EXISTS (SELECT FROM %s)', t.id) INTO filled;
			IF filled THEN EXECUTE format('CREATE TABLE pristine.%I AS TABLE %s', t.relname, t.id); END IF;
		END LOOP;
		CREATE TABLE pristine.sequences AS SELECT format('%I', sequencename)::regclass AS id, start_value, last_value
			FROM pg_sequences WHERE schemaname = 'public';
	END $$`)
	return d
}

// restore gives every table and sequence its first content. A database whose tables were altered is dropped: then it
// returns false.
func (d *database) restore(t testing.TB) bool {
	t.Helper()
	shape := d.run(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid();
	DO $$ DECLARE t record; BEGIN
		SET session_replication_role = replica; -- neither triggers nor foreign keys
		FOR t IN SELECT oid::regclass AS id, to_regclass(format('pristine.%I', relname)) AS content FROM pg_class WHERE
				relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0 LOOP
			EXECUTE format('DELETE FROM %s', t.id);
			IF t.content IS NOT NULL THEN
				EXECUTE format('INSERT INTO %s OVERRIDING SYSTEM VALUE TABLE %s', t.id, t.content);
			END IF;
		END LOOP;
		PERFORM setval(id, coalesce(last_value, start_value), last_value IS NOT NULL) FROM pristine.sequences;
	END $$`)
	if shape != d.shape {
		d.drop()
	}
	return shape == d.shape
}

// run runs statements on a connection of its own, and returns a hash of the names of all tables, indexes and columns.
func (d *database) run(t testing.TB, statements string) (shape string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.dsn)
	storetest.Must(t, err)
	defer conn.Close(ctx)
	_, err = conn.PgConn().Exec(ctx, statements).ReadAll()
	storetest.Must(t, err)
	storetest.Must(t, conn.QueryRow(ctx, `SELECT md5(string_agg(relname || coalesce(attname, ''), ' '
		ORDER BY relname, attnum)) FROM pg_class c LEFT JOIN pg_attribute ON attrelid = c.oid AND attnum > 0
		WHERE relnamespace = 'public'::regnamespace`).Scan(&shape))
	return shape
}

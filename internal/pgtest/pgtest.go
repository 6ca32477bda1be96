// Package pgtest gives tests and benches a real PostgreSQL without any setup. It is a temporary server made from the
// programs of the distribution's package, on a loopback port, in a temporary folder.
//
// The one idea: a test requests a database, never a server. DSN returns a new, empty database and drops it when the
// test ends. Its server is the one in CASTELLAN_TEST_POSTGRES (make test starts one for the whole run, see
// internal/pgtest/cmd/pgserve). For a package tested alone it is a server that is started on first use and ends with
// the test process.
// A machine without PostgreSQL fails the test in one clear line, so a passing run means both databases. Only make quick
// leaves PostgreSQL out (EnvDatabases).
//
// Benches and tests of crashes use Server directly (Start with Durable, Kill, Restart). Start reading at DSN.
package pgtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"castellan/domain/kit/storetest"
)

// EnvServer names the variable with the address of a running server in which tests may create and drop databases. It
// must be a URL.
const EnvServer = "CASTELLAN_TEST_POSTGRES"

// EnvTemplate names the variable with the database of that server that DSN copies. All its migrations are applied
// (pgserve creates it); a copy costs a quarter of applying them. If it is not set, DSN returns empty databases.
const EnvTemplate = "CASTELLAN_TEST_TEMPLATE"

// EnvDatabases names the variable by which make quick leaves PostgreSQL out: with the value sqlite, a test or a subtest
// that needs a PostgreSQL database is skipped. Only make quick sets it.
const EnvDatabases = "CASTELLAN_TEST_DATABASES"

// Need skips a test or a subtest that needs PostgreSQL in make quick. DSN and Empty call it; a test that calls Start
// must call it itself.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(EnvDatabases) == "sqlite" {
		t.Skip("PostgreSQL is left out: ", EnvDatabases, " is sqlite")
	}
}

// shared starts the server of this process. It ends with the process (see Server), so no TestMain is needed.
var shared = sync.OnceValues(func() (*Server, error) { return Start() })

// DSN returns the address of a new database without rows that only this test uses. It is dropped at the test's end,
// even with open connections. Its tables exist or not (EnvTemplate): a migration then has nothing or everything to do.
// DSN fails the test if there is no server. It is safe for parallel tests and packages.
func DSN(t testing.TB) string {
	t.Helper()
	return created(t, cmp.Or(os.Getenv(EnvTemplate), "template0"))
}

// Empty is DSN for a test of the migrations themselves: the database has no tables.
func Empty(t testing.TB) string {
	t.Helper()
	return created(t, "template0")
}

// created copies a template, file by file: a copy through the server's log, which a test's database does not need,
// takes twice the time.
func created(t testing.TB, template string) string {
	t.Helper()
	Need(t)
	server := os.Getenv(EnvServer)
	if server == "" {
		s := storetest.Value(shared())(t)
		server, template = s.DSN(), "template0"
	}
	// Random, because packages on one server do not coordinate.
	name := "t_" + strings.ToLower(rand.Text())
	dsn := storetest.Value(withDatabase(server, name))(t)
	// Neither template has a connection, so no connection can make the copy fail.
	if err := do(server, "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY file_copy"); err != nil {
		t.Fatalf("pgtest: create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := do(server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("pgtest: drop the database of this test: %v", err)
		}
	})
	return dsn
}

// do runs one statement on a separate connection, so that no pool and no goroutine outlives it.
func do(dsn, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

func withDatabase(dsn, name string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return "", fmt.Errorf("pgtest: %s is not a URL of the form postgres://user@host:port/database", EnvServer)
	}
	u.Path = "/" + name
	return u.String(), nil
}

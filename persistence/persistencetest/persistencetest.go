// Package persistencetest opens databases for tests of services, which need real stores and no particular database.
package persistencetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
)

// AuditKey is the key of the audit in these databases.
const AuditKey = "audit key of the test"

// SQLite returns a database with all tables that ends with the test.
func SQLite(t testing.TB) *persistence.DB {
	t.Helper()
	db := storetest.Value(persistence.Open(t.Context(), File(t), persistence.Options{}))(t)
	t.Cleanup(func() { storetest.Must(t, db.Close()) })
	persistence.Start(db, []byte(AuditKey), "test")
	return db
}

// File returns the address of a new SQLite database with all tables that ends with the test, like pgtest.DSN for
// PostgreSQL. It is a copy, which costs less than migrating another one.
func File(t testing.TB) string {
	t.Helper()
	file := storetest.Value(template())(t)
	name := filepath.Join(t.TempDir(), "test.db")
	storetest.Must(t, os.WriteFile(name, file, 0o600))
	return "sqlite:" + name
}

// template is the file of a database to which all migrations were applied, once in a process.
var template = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "persistencetest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, name := context.Background(), filepath.Join(dir, "test.db")
	db, err := persistence.Open(ctx, "sqlite:"+name, persistence.Options{})
	if err != nil {
		return nil, err
	}
	err = db.Exclusive(ctx, func(ctx context.Context) error { return storetest.Err(persistence.Migrate(ctx, db)) })
	if closed := db.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
})

// Exec runs one statement.
func Exec(t testing.TB, db *persistence.DB, statement string, args ...any) {
	t.Helper()
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		_, err := db.Conn(ctx).ExecContext(ctx, statement, args...)
		return err
	}))
}

// Count returns the number of rows of a table that fulfil all conditions.
func Count(t testing.TB, db *persistence.DB, table string, where ...string) int {
	t.Helper()
	q := db.Conn(t.Context()).NewSelect().Table(table)
	for _, w := range where {
		q = q.Where(w)
	}
	n := storetest.Value(q.Count(t.Context()))(t)
	return int(n)
}

// Acts returns the rows of the audit, oldest first, as action, actor, account, target and detail.
func Acts(t testing.TB, db *persistence.DB) (acts []string) {
	t.Helper()
	rows := storetest.Value(kit.NewAudit(db).List(t.Context(), audit.Query{}, page.Query[audit.Place]{}))(t)
	for _, r := range slices.Backward(rows.Records) {
		act := r.Action
		for _, part := range []string{r.ActorID, r.UserID, r.Target, r.Detail} {
			act += "|" + part
		}
		if r.Outcome != audit.Success {
			act += "|" + string(r.Outcome)
		}
		acts = append(acts, act)
	}
	return acts
}

// Fails checks that an operation fails while one of the tables cannot be used, and that it changes nothing then. Each
// table is taken away in turn; names are separated by spaces. In the end the operation must succeed.
func Fails(t testing.TB, db *persistence.DB, tables string, do func(ctx context.Context) error) {
	t.Helper()
	names := strings.Fields(tables)
	before := rows(t, db, names)
	for _, missing := range names {
		Exec(t, db, "ALTER TABLE "+missing+" RENAME TO broken")
		err := do(t.Context())
		Exec(t, db, "ALTER TABLE broken RENAME TO "+missing)
		if err == nil {
			t.Errorf("no error without the table %s", missing)
		}
		for name, content := range rows(t, db, names) {
			storetest.Equal(t, content, before[name], missing, name)
		}
	}
	storetest.Must(t, do(t.Context()))
}

// rows are the contents of tables.
func rows(t testing.TB, db *persistence.DB, tables []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range tables {
		var content []map[string]any
		storetest.Must(t, db.Conn(t.Context()).NewSelect().Table(name).Scan(t.Context(), &content))
		all[name] = fmt.Sprint(content)
	}
	return all
}

package persistence

import (
	"database/sql"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"castellan/domain/kit/storetest"
	"castellan/persistence/engine"
)

// migrationsBefore are the migrations of SQLite that come before one.
func migrationsBefore(t *testing.T, first string) fs.FS {
	t.Helper()
	all, err := engine.MigrationsOf(migrations, false)
	storetest.Must(t, err)
	some := fstest.MapFS{}
	for _, m := range all {
		if m.Name < first {
			some["migrations/sqlite/"+m.Name] = &fstest.MapFile{Data: []byte(m.Text)}
		}
	}
	if len(some) < 50 || len(some) == len(all) {
		t.Fatalf("%d of %d migrations come before %s", len(some), len(all), first)
	}
	return some
}

// lines are the rows of a query, one a line.
func lines(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	storetest.Must(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	storetest.Must(t, err)
	for rows.Next() {
		cells, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		storetest.Must(t, rows.Scan(into...))
		all = append(all, fmt.Sprint(cells...))
	}
	storetest.Must(t, rows.Err())
	return all
}

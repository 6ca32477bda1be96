package httpapi_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"castellan/domain/kit/storetest"
)

// moving are the tables that change although a request is refused: what counts and
// records refusals, and what the background does.
var moving = []string{
	"audit", "audit_checkpoint", "attempt_budget", "password_guard", "change", "session", "session_key", "login_history",
	"outbox", "challenge", "outcome", "job", "job_item", "seed", "device", "device_proof",
	"provider_account", "provider_snapshot", "provider_balance", "asset_day", "application_search",
}

// rows reads the rows of a table as texts, sorted.
func (l *live) rows(db *sql.DB, table string) (lines []string) {
	rows, err := db.Query(`SELECT * FROM "` + table + `"`)
	storetest.Must(l.t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	storetest.Must(l.t, err)
	for rows.Next() {
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		storetest.Must(l.t, rows.Scan(cells...))
		var line strings.Builder
		for i, c := range cells {
			if columns[i] == "folded" { // filled by the background
				continue
			}
			switch v := (*c.(*any)).(type) {
			case []byte:
				fmt.Fprintf(&line, "%s\t", v)
			default:
				fmt.Fprintf(&line, "%v\t", v)
			}
		}
		lines = append(lines, line.String())
	}
	storetest.Must(l.t, rows.Err())
	slices.Sort(lines)
	return lines
}

// tables are those of the database.
func (l *live) tables(db *sql.DB) (names []string) {
	text := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	if l.postgres() {
		text = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	}
	rows, err := db.Query(text)
	storetest.Must(l.t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		storetest.Must(l.t, rows.Scan(&name))
		names = append(names, name)
	}
	return names
}

func (l *live) postgres() bool { return !strings.HasPrefix(l.cfg.Database.URL.Reveal(), "sqlite:") }

// open is a connection beside the program's.
func (l *live) open() *sql.DB {
	l.t.Helper()
	driver, dsn := "pgx", l.cfg.Database.URL.Reveal()
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, dsn)
	storetest.Must(l.t, err)
	return db
}

// dump is the content of the tables that stand still.
func (l *live) dump() map[string]string {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	all := map[string]string{}
	for _, table := range l.tables(db) {
		if !slices.Contains(moving, table) {
			all[table] = strings.Join(l.rows(db, table), "\n")
		}
	}
	if len(all) < 20 {
		l.t.Errorf("%d tables: the dump is broken", len(all))
	}
	return all
}

// forgets checks that a text is in no table.
func (l *live) forgets(text string) {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	for _, table := range l.tables(db) {
		for _, row := range l.rows(db, table) {
			if strings.Contains(row, text) {
				l.t.Errorf("the table %s holds what the server owns, as a client sent it: %s", table, row)
			}
		}
	}
}

func (l *live) count(table string) (n int) {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	storetest.Must(l.t, db.QueryRow("SELECT count(*) FROM "+table).Scan(&n))
	return n
}

package httpapi_test

import (
	"database/sql"
	"fmt"
	"maps"
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

// moves reports whether a table is one of moving.
func moves(table string) bool { return slices.Contains(moving, table) }

// reader returns a function that reads the rows of all tables that are not skipped, sorted, by table. It sends one
// statement: one for each of a hundred tables takes ten times as long. more are further queries of a name and a text.
func (l *live) reader(db *sql.DB, skip func(table string) bool, more ...string) (read func() map[string]string) {
	l.t.Helper()
	columns := `SELECT m.name, 'CAST("' || c.name || '" AS TEXT)' FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND c.name <> 'folded'`
	if l.postgres() {
		columns = `SELECT relname, format(CASE atttypid WHEN 'bytea'::regtype THEN 'encode(%I, ''escape'')'
			ELSE 'CAST(%I AS TEXT)' END, attname) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND attnum > 0
			AND NOT attisdropped AND attname <> 'folded'`
	}
	prepare := func(text string) func() map[string][]string {
		statement, err := db.Prepare(text)
		storetest.Must(l.t, err)
		return func() map[string][]string {
			rows, err := statement.Query()
			storetest.Must(l.t, err)
			defer rows.Close()
			found := map[string][]string{}
			for rows.Next() {
				var name, value string
				storetest.Must(l.t, rows.Scan(&name, &value))
				found[name] = append(found[name], value)
			}
			storetest.Must(l.t, rows.Err())
			return found
		}
	}
	empty := map[string]string{}
	for table, cells := range prepare(columns)() { // without "folded", which the background fills
		if !skip(table) {
			empty[table] = ""
			more = append(more, fmt.Sprintf(`SELECT '%s', coalesce(%s, 'NULL') FROM "%s"`, table,
				strings.Join(cells, ", 'NULL') || ' ' || coalesce("), table))
		}
	}
	if len(empty) < 20 {
		l.t.Errorf("%d tables: the dump is broken", len(empty))
	}
	query := prepare(strings.Join(more, " UNION ALL "))
	return func() map[string]string {
		all := maps.Clone(empty)
		for table, rows := range query() {
			slices.Sort(rows)
			all[table] = strings.Join(rows, "\n")
		}
		return all
	}
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
func (l *live) dump() map[string]string { return l.contents(moves) }

func (l *live) contents(skip func(table string) bool) map[string]string {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	return l.reader(db, skip)()
}

// forgets checks that a text is in no table.
func (l *live) forgets(text string) {
	l.t.Helper()
	for table, rows := range l.contents(func(string) bool { return false }) {
		if at := strings.Index(rows, text); at >= 0 {
			l.t.Errorf("the table %s holds what the server owns, as a client sent it: %.300s", table, rows[max(0, at-200):])
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

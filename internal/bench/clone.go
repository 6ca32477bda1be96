package main

import (
	"database/sql"
	"fmt"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// clone adds copies of an account to the table of accounts, numbered from first to last. values are SQL expressions for
// columns that differ from the original. In them k is the number, as a text of seven digits; values of columns that do
// not exist are ignored. So clone does not depend on the version of the service that created the table.
func (p *place) clone(email string, first, last int, values map[string]string) {
	names := p.columns("users")
	exprs := make([]string, len(names))
	for i, name := range names {
		if exprs[i] = values[name]; exprs[i] == "" {
			exprs[i] = "u." + name
		}
	}
	p.exec(fmt.Sprintf(`INSERT INTO users (%s)
		WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT %s FROM (SELECT SUBSTR(CAST(10000000 + i AS TEXT), 2) AS k FROM n) AS m, users AS u WHERE u.email = '%s'`,
		strings.Join(names, ", "), first, last, strings.Join(exprs, ", "), email))
}

// columns returns the names of the columns of a table, without generated ones.
func (p *place) columns(table string) []string {
	query := "SELECT group_concat(name, ' ') FROM pragma_table_info($1)"
	if p.process != 0 {
		query = "SELECT string_agg(column_name, ' ') FROM information_schema.columns " +
			"WHERE table_name = $1 AND is_generated = 'NEVER'"
	}
	db := p.open()
	defer db.Close()
	var all string
	must(db.QueryRow(query, table).Scan(&all))
	return strings.Fields(all)
}

// analyze updates PostgreSQL's statistics of the accounts, as its autovacuum does. An SQLite database has no
// statistics, as the service leaves it: with SQLITE_ENABLE_STAT4 it would plan a prepared statement again for each set
// of values.
func (p *place) analyze() {
	if p.process != 0 {
		p.exec("ANALYZE users")
	}
}

// exec runs a statement beside the service.
func (p *place) exec(statement string) {
	db := p.open()
	defer db.Close()
	need(db.Exec(statement))
}

func (p *place) open() *sql.DB {
	if p.process != 0 {
		return need(sql.Open("pgx", p.dsn))
	}
	return need(sql.Open("sqlite", "file:"+strings.TrimPrefix(p.dsn, "sqlite:")))
}

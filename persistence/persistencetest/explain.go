package persistencetest

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/persistence"

	"github.com/uptrace/bun"
)

// Explain is the plan of a query. PostgreSQL is kept from reading whole tables
// and from sorting where it has a choice: with a few rows it would rather do so.
func Explain(t *testing.T, db *persistence.DB, query *bun.SelectQuery) string {
	t.Helper()
	return ExplainText(t, db, query.String())
}

// ExplainText is the plan of a query that is a text, under more settings of PostgreSQL.
func ExplainText(t *testing.T, db *persistence.DB, query string, settings ...string) string {
	t.Helper()
	ctx, pool, texts := t.Context(), "readers", []string{"EXPLAIN QUERY PLAN " + query}
	if db.Postgres() {
		pool, texts = "pool", append([]string{"SET enable_seqscan = off", "SET enable_sort = off"}, settings...)
		texts = append(texts, "EXPLAIN "+query)
	}
	conn := storetest.Value(db.Pools()[pool].Conn(ctx))(t)
	defer conn.Close()
	var plan []string
	for _, text := range texts {
		rows := storetest.Value(conn.QueryContext(ctx, text))(t)
		columns := storetest.Value(rows.Columns())(t)
		for rows.Next() {
			cells := make([]any, len(columns))
			for i := range cells {
				cells[i] = new(any)
			}
			storetest.Must(t, rows.Scan(cells...))
			if line, ok := (*cells[len(cells)-1].(*any)).(string); ok {
				plan = append(plan, line)
			}
		}
		storetest.Must(t, rows.Close())
	}
	return strings.Join(plan, "\n")
}

// WantsIndex checks that a page is read in the order of an index, without a sort.
func WantsIndex(t *testing.T, db *persistence.DB, name string, query *bun.SelectQuery, index string) {
	t.Helper()
	WantsIndexOf(t, db, name, query.String(), index)
}

// WantsIndexOf is WantsIndex of a statement.
func WantsIndexOf(t *testing.T, db *persistence.DB, name, statement, index string) {
	t.Helper()
	plan := ExplainText(t, db, statement)
	if !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort") {
		t.Errorf("%s: the plan does not use %s alone:\n%s", name, index, plan)
	}
}

package persistencetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/persistence"
)

// ExplainText is the plan of a query, under more settings of PostgreSQL. That is kept from reading whole tables and
// from sorting where it has a choice: with a few rows it would rather do so.
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

// WantsIndexOf checks that a statement reads a page in the order of an index, without a sort.
func WantsIndexOf(t *testing.T, db *persistence.DB, name, statement, index string) {
	t.Helper()
	plan := ExplainText(t, db, statement)
	if !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort") {
		t.Errorf("%s: the plan does not use %s alone:\n%s", name, index, plan)
	}
}

// Reads has the queries that the calls of a test make.
type Reads struct {
	*testing.T
	db    *persistence.DB
	mu    sync.Mutex
	asked []string
}

// WithReads runs a test on a fresh database of each kind, with its queries.
func WithReads(t *testing.T, test func(db *persistence.DB, r *Reads)) {
	t.Helper()
	r := &Reads{}
	trace := func(_ context.Context, text string) (fails bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if strings.HasPrefix(text, "SELECT") {
			r.asked = append(r.asked, text)
		}
		return false
	}
	BothWith(t, persistence.Options{Trace: trace}, func(t *testing.T, db *persistence.DB) {
		r.T, r.db, r.asked = t, db, nil
		test(db, r)
	})
}

// Plan returns the plans of the queries since its last call. err is that of the call that made them.
func (r *Reads) Plan(err error) string {
	r.Helper()
	storetest.Must(r, err)
	r.mu.Lock()
	asked := r.asked
	r.asked = nil
	r.mu.Unlock()
	var plans []string
	for _, text := range asked {
		plans = append(plans, text, ExplainText(r.T, r.db, text))
	}
	return strings.Join(plans, "\n")
}

// Index checks that the query since the last call is read in the order of an index, without a sort.
func (r *Reads) Index(index string, err error) {
	r.Helper()
	text, plan, _ := strings.Cut(r.Plan(err), "\n")
	if !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort") {
		r.Errorf("%s\nis not read by %s alone:\n%s", text, index, plan)
	}
}

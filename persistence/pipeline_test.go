package persistence

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"castellan/domain/challenge"
	"castellan/domain/commit"
	"castellan/domain/outbox"
	"castellan/domain/password"
	"castellan/internal/pgtest"
)

// A plan made while a table was small is kept while it grows, so the planner
// must not join by reading tables whole.
func TestThePipelineFindsRowsByKey(t *testing.T) {
	db := open(t, pgtest.DSN(t))
	conn, err := db.common.(*pipeline).ready(t.Context())
	must(t, err)
	for _, w := range []commit.Write{
		challenge.Update{Challenge: sample("a")},
		outbox.Settle{ID: "a"},
		password.SaveGuard{Guard: password.Guard{Key: "a", Version: 1}},
		commit.Guard{On: commit.UserCredentials, Key: "a"},
	} {
		steps, err := stepsOf(&lane{}, []*unit{{writes: []commit.Write{w}}})
		must(t, err)
		for _, c := range steps[0].calls {
			for _, text := range []string{c.all, c.sure} {
				if text == "" {
					continue
				}
				rows, err := conn.Query(t.Context(), "EXPLAIN "+text, c.arrays()...)
				must(t, err)
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				must(t, err)
				plan := strings.Join(lines, "\n")
				if strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "Index") {
					t.Errorf("%T is planned as\n%s", w, plan)
				}
			}
		}
	}
}

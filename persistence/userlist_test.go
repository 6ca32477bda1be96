package persistence

import (
	"strings"
	"testing"

	"castellan/domain/page"
	"castellan/domain/user"
	"castellan/persistence/record"
)

// Both readings of a phone number are looked for by their indexes (D-USR-02).
func TestPlanOfNumbers(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		q := user.Query{Phone: new("+5321234567"), National: new("5321234567")}
		p := record.PartOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, accountOrder, accountFilters(q))
		for name, list := range map[string]record.Table[userRow, user.User]{"by id": accountsByID, "newest first": accounts} {
			plan := explain(t, db, list.Selected(db.Conn(t.Context()).NewSelect().Model((*userRow)(nil)), p))
			phones := "sqlite_autoindex_users"
			if db.Postgres() {
				phones = "users_phone_key"
			}
			if !strings.Contains(plan, "users_national") || !strings.Contains(plan, phones) ||
				strings.Contains(plan, "SCAN users") || strings.Contains(plan, "Seq Scan") {
				t.Errorf("%s: a table is scanned:\n%s", name, plan)
			}
		}
	})
}

// Levels and statuses are counted in an index.
func TestCountsAreFoundByIndex(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		for _, column := range []string{"level", "status"} {
			if plan := explain(t, db, counted(db.Conn(t.Context()), column)); !strings.Contains(plan, "users_"+column) {
				t.Errorf("the plan does not use the index of %s:\n%s", column, plan)
			}
		}
	})
}

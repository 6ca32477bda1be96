package persistence

import (
	"strings"
	"testing"

	"castellan/domain/access/user"
	"castellan/domain/kit/page"
)

// Both readings of a phone number are looked up by an index (D-USR-02).
func TestPlanOfNumbers(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		q := user.Query{Phone: new("+5321234567"), National: new("5321234567")}
		p := partOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, accountOrder, accountFilters(q))
		for name, list := range map[string]table[userRow, user.User]{"by id": accountsByID, "newest first": accounts} {
			plan := explain(t, db, list.selected(db.Conn(t.Context()).NewSelect().Model((*userRow)(nil)), p))
			phones := "sqlite_autoindex_users"
			if db.Postgres() {
				phones = "users_phone_key"
			}
			if !strings.Contains(plan, phones) ||
				strings.Contains(plan, "SCAN users") || strings.Contains(plan, "Seq Scan") {
				t.Errorf("%s: a table is scanned:\n%s", name, plan)
			}
		}
	})
}

package account_test

import (
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// Both readings of a phone number are looked up by an index (D-USR-02).
func TestPlanOfNumbers(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		q := user.Query{Phone: new("+5321234567"), National: new("5321234567")}
		p := record.PartOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, account.AccountOrder,
			account.AccountFilters(q))
		for name, list := range map[string]record.Table[account.UserRow, user.User]{"by id": account.AccountsByID,
			"newest first": account.Accounts} {
			plan := persistencetest.Explain(t, db, list.Selected(db.Conn(t.Context()).NewSelect().Model((*account.UserRow)(nil)),
				p))
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

// Levels and statuses are counted in an index.
func TestCountsAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		for _, column := range []string{"level", "status"} {
			if plan := persistencetest.Explain(t, db, account.Counted(db.Conn(t.Context()), column)); !strings.Contains(plan,
				"users_"+column) {
				t.Errorf("the plan does not use the index of %s:\n%s", column, plan)
			}
		}
	})
}

package account_test

import (
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesOfAccountsAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		at := time.UnixMilli(5)
		people := func(q user.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, account.AccountOrder,
				account.AccountFilters(q))
			list := account.AccountsByID
			if q.NewestFirst {
				list = account.Accounts
			}
			return list.Selected(db.Conn(t.Context()).NewSelect().Model((*account.UserRow)(nil)), p)
		}
		registrations := account.Registered.Selected(db.Conn(t.Context()).NewSelect().Model((*account.UserRow)(nil)),
			record.PartOf(page.Query[user.RegisteredPlace]{After: &user.RegisteredPlace{At: at, ID: "9"}, Limit: 10},
				account.RegisteredOrder,
				account.RegisteredFilters(user.Span{From: at, To: at})))
		active := account.Visitors.Selected(db.Conn(t.Context()).NewSelect().Model((*account.UserRow)(nil)),
			record.PartOf(page.Query[user.VisitorPlace]{After: &user.VisitorPlace{Day: at, ID: "9"}, Limit: 10},
				account.VisitorOrder,
				account.VisitorFilters(at)))
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"users of an identity":  {people(user.Query{IdentityHashes: []string{"h"}}), "users_identity"},
			"users of a tax number": {people(user.Query{TaxNumber: new("1")}), "users_tax_number"},
			"users of a birth date": {people(user.Query{BirthDate: new("d")}), "users_birth_date"},
			"users of a name":       {people(user.Query{Name: new("n")}), "users"},
			"users of a status":     {people(user.Query{Status: new(user.Active)}), "users_status"},
			"users of a type":       {people(user.Query{Type: new(user.Corporate)}), "users_type"},
			"confirmed users":       {people(user.Query{KYCApproved: new(true)}), "users_kyc_approved"},
			"unconfirmed, newest":   {people(user.Query{KYCApproved: new(false), NewestFirst: true}), "users_kyc_approved"},
			"users":                 {people(user.Query{}), "users"},
			"active users":          {active, "users_last_login"},
			"registrations":         {registrations, "users_created"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}

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

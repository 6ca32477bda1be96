package persistence

import (
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/page"
	"castellan/domain/profile"
	"castellan/domain/resource"
	"castellan/domain/user"
	"castellan/persistence/record"
)

// A page of a list that grows without end is found by an index that has the order
// of the list, with a position and without: the last page costs what the first
// one does.
func TestPagesOfAccessAreFoundByIndex(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		at := time.UnixMilli(5)
		lines := func(q resource.LogQuery, after resource.LogPlace) *bun.SelectQuery {
			p := record.PartOf(page.Query[resource.LogPlace]{After: &after, Limit: 10}, logOrder, logFilters(q))
			return grantLog.Selected(db.Conn(t.Context()).NewSelect().Model((*grantLogRow)(nil)), p)
		}
		after := resource.Member{UserID: "u", RoleCode: "r", CreatedAt: at}
		held := func(q resource.MemberQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[resource.Member]{After: &after, Limit: 10}, memberOrder, memberFilters(q))
			return members.Selected(db.Conn(t.Context()).NewSelect().Model((*roleRow)(nil)), p)
		}
		people := func(q user.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, accountOrder, accountFilters(q))
			list := accountsByID
			if q.NewestFirst {
				list = accounts
			}
			return list.Selected(db.Conn(t.Context()).NewSelect().Model((*userRow)(nil)), p)
		}
		registrations := registered.Selected(db.Conn(t.Context()).NewSelect().Model((*userRow)(nil)),
			record.PartOf(page.Query[user.RegisteredPlace]{After: &user.RegisteredPlace{At: at, ID: "9"}, Limit: 10},
				registeredOrder,
				registeredFilters(user.Span{From: at, To: at})))
		active := visitors.Selected(db.Conn(t.Context()).NewSelect().Model((*userRow)(nil)),
			record.PartOf(page.Query[user.VisitorPlace]{After: &user.VisitorPlace{Day: at, ID: "9"}, Limit: 10}, visitorOrder,
				visitorFilters(at)))
		mails := func(q profile.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[profile.Place]{After: &profile.Place{At: at, ID: 9}, Limit: 10}, mailChangeOrder,
				mailChangeFilters(q))
			return mailChanges.Selected(db.Conn(t.Context()).NewSelect().Model((*mailChangeRow)(nil)), p)
		}
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
			"log of a role": {lines(resource.LogQuery{RoleID: new(int64(1))}, resource.LogPlace{ID: 9}),
				"role_resource_permission_log_role"},
			"members":           {held(resource.MemberQuery{}), "user_role_created"},
			"members of a role": {held(resource.MemberQuery{RoleCode: "r"}), "user_role_by_role"},
			"addresses of one":  {mails(profile.Query{UserID: "u", From: at, To: at}), "email_change_user"},
		} {
			wantsIndex(t, db, name, c.query, c.index)
		}
	})
}

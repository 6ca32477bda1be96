package access_test

import (
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/access/profile"
	"castellan/domain/access/resource"
	"castellan/domain/access/session"
	"castellan/domain/access/user"
	"castellan/domain/kit/page"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesOfAccessAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		at := time.UnixMilli(5)
		lines := func(q resource.LogQuery, after resource.LogPlace) *bun.SelectQuery {
			p := record.PartOf(page.Query[resource.LogPlace]{After: &after, Limit: 10}, access.LogOrder, access.LogFilters(q))
			return access.GrantLog.Selected(db.Conn(t.Context()).NewSelect().Model((*access.GrantLogRow)(nil)), p)
		}
		after := resource.Member{UserID: "u", RoleCode: "r", CreatedAt: at}
		held := func(q resource.MemberQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[resource.Member]{After: &after, Limit: 10}, access.MemberOrder,
				access.MemberFilters(q))
			return access.Members.Selected(db.Conn(t.Context()).NewSelect().Model((*access.RoleRow)(nil)), p)
		}
		people := func(q user.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[user.Place]{After: &user.Place{ID: "9"}, Limit: 10}, access.AccountOrder,
				access.AccountFilters(q))
			list := access.AccountsByID
			if q.NewestFirst {
				list = access.Accounts
			}
			return list.Selected(db.Conn(t.Context()).NewSelect().Model((*access.UserRow)(nil)), p)
		}
		registrations := access.Registered.Selected(db.Conn(t.Context()).NewSelect().Model((*access.UserRow)(nil)),
			record.PartOf(page.Query[user.RegisteredPlace]{After: &user.RegisteredPlace{At: at, ID: "9"}, Limit: 10},
				access.RegisteredOrder,
				access.RegisteredFilters(user.Span{From: at, To: at})))
		active := access.Visitors.Selected(db.Conn(t.Context()).NewSelect().Model((*access.UserRow)(nil)),
			record.PartOf(page.Query[user.VisitorPlace]{After: &user.VisitorPlace{Day: at, ID: "9"}, Limit: 10},
				access.VisitorOrder,
				access.VisitorFilters(at)))
		mails := func(q profile.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[profile.Place]{After: &profile.Place{At: at, ID: 9}, Limit: 10},
				access.MailChangeOrder,
				access.MailChangeFilters(q))
			return access.MailChanges.Selected(db.Conn(t.Context()).NewSelect().Model((*access.MailChangeRow)(nil)), p)
		}
		refusals := func(after *session.LoginPlace) *bun.SelectQuery {
			p := record.PartOf(page.Query[session.LoginPlace]{After: after, Limit: 10}, access.LoginOrder,
				access.RefusedFilters())
			return access.RefusedLogins.Selected(db.Conn(t.Context()).NewSelect().Model((*access.RefusedLoginRow)(nil)), p)
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
			"refused logins":    {refusals(&session.LoginPlace{ID: "9"}), "login_history_refused"},
			"last refusals":     {refusals(nil), "login_history_refused"},
			"addresses of one":  {mails(profile.Query{UserID: "u", From: at, To: at}), "email_change_user"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}

package permit_test

import (
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/permit/resource"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesOfRolesAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		lines := func(q resource.LogQuery, after resource.LogPlace) *bun.SelectQuery {
			p := record.PartOf(page.Query[resource.LogPlace]{After: &after, Limit: 10}, permit.LogOrder, permit.LogFilters(q))
			return permit.GrantLog.Selected(db.Conn(t.Context()).NewSelect().Model((*permit.GrantLogRow)(nil)), p)
		}
		after := resource.Member{UserID: "u", RoleCode: "r", CreatedAt: time.UnixMilli(5)}
		held := func(q resource.MemberQuery) *bun.SelectQuery {
			p := record.PartOf(page.Query[resource.Member]{After: &after, Limit: 10}, permit.MemberOrder,
				permit.MemberFilters(q))
			return permit.Members.Selected(db.Conn(t.Context()).NewSelect().Model((*account.RoleRow)(nil)), p)
		}
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"log of a role": {lines(resource.LogQuery{RoleID: new(int64(1))}, resource.LogPlace{ID: 9}),
				"role_resource_permission_log_role"},
			"members":           {held(resource.MemberQuery{}), "user_role_created"},
			"members of a role": {held(resource.MemberQuery{RoleCode: "r"}), "user_role_by_role"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}

package resource_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	"castellan/persistence/account"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

// The roles of one account are one page that ends with the role user. The roles of all accounts come in pages without
// the role user.
func TestMembers(t *testing.T) {
	db := persistencetest.SQLite(t)
	at := time.UnixMilli(1_700_000_000_000).UTC()
	for i, id := range []string{"01HF0000000000000000000001", "01HF0000000000000000000002"} {
		u := user.New(id, at)
		u.Phone = fmt.Sprint("+90532000000", i)
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
	}
	first, second := "01HF0000000000000000000001", "01HF0000000000000000000002"
	store := permit.NewResources(db)
	a := resource.Admin{Store: store, Accounts: account.NewUsers(db),
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return at }}}
	for _, code := range []string{"clerk", "boss"} {
		_, err := a.AddRole(t.Context(), audit.Operator, code, code)
		storetest.Must(t, err)
	}
	for i, g := range [][2]string{{first, "clerk"}, {first, "boss"}, {second, "clerk"}} {
		storetest.Must(t, db.Commit(t.Context(), user.Grant{UserID: g[0], Role: g[1],
			At: at.Add(time.Duration(i) * time.Second)}))
	}
	for _, c := range []struct {
		q     resource.MemberQuery
		limit int
		want  string
	}{
		{resource.MemberQuery{UserID: first}, 1, "boss clerk USER "},
		{resource.MemberQuery{UserID: first, RoleCode: "boss"}, 1, "boss "},
		{resource.MemberQuery{UserID: first, RoleCode: user.RoleUser}, 1, "USER "},
		{resource.MemberQuery{UserID: second}, 1, "clerk USER "},
		{resource.MemberQuery{UserID: "nobody"}, 1, ""},
		{resource.MemberQuery{}, 10, "clerk boss clerk "},
		{resource.MemberQuery{}, 1, "clerk "},
		{resource.MemberQuery{RoleCode: "boss"}, 10, "boss "},
	} {
		got, err := a.Members(t.Context(), c.q, page.Query[resource.Member]{Limit: c.limit})
		storetest.Must(t, err)
		codes := ""
		for _, m := range got.Records {
			if m.RoleCode == user.RoleUser {
				m.RoleCode = "USER"
			}
			codes += m.RoleCode + " "
		}
		if codes != c.want {
			t.Errorf("%+v, %d: %q, want %q", c.q, c.limit, codes, c.want)
		}
		if c.q.UserID != "" && got.Total != len(got.Records) {
			t.Errorf("%+v: a total of %d", c.q, got.Total)
		}
	}
}

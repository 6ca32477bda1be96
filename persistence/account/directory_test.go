package account_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

func TestUserDirectory(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) user.Directory { return account.NewUsers(db) },
		storetest.Cases[user.Directory]{
			"Find": findAccounts,
		}, persistencetest.AccountTables...)
}

// addPeople adds accounts 1 to 5. The even ones differ from the odd ones, and the fifth has no optional values.
// Each day has two of them.
func addPeople(t *testing.T, c commit.Committer) {
	t.Helper()
	for i := 1; i <= 5; i++ {
		add := usertest.Sample(i)
		add.CreatedAt = usertest.Now.Add(time.Duration(i) * 12 * time.Hour)
		add.IdentityHash, add.TaxNumber = fmt.Sprint("h", i%2), fmt.Sprint("t", i%2)
		add.BirthDate = fmt.Sprint("2000-01-0", i%2)
		if i%2 == 0 {
			add.Name, add.Surname, add.Type, add.Status = "IŞIK", "100%_İ!", user.Corporate, user.Blocked
			add.KYCConfirm = []string{user.ManuelApproved, user.OCROrNFCApproved}[i/2-1]
		}
		if i%2 == 1 {
			add.Level = 2
		}
		if i == 5 {
			add.IdentityHash, add.TaxNumber, add.BirthDate = "", "", ""
		}
		storetest.Must(t, c.Commit(t.Context(), add))
	}
}

// numbersOf returns the positions of the accounts in people.
func numbersOf[T any](records []T, id func(T) string) string {
	var out []string
	for _, r := range records {
		out = append(out, strings.TrimLeft(strings.TrimPrefix(id(r), "01USER"), "0"))
	}
	return strings.Join(out, " ")
}

func idOf(u user.User) string { return u.ID }

func findAccounts(t *testing.T, s user.Directory, c commit.Committer) {
	addPeople(t, c)
	two := usertest.Sample(2)
	for _, f := range []struct {
		query user.Query
		want  string
	}{
		{user.Query{}, "1 2 3 4 5"},
		{user.Query{NewestFirst: true}, "5 4 3 2 1"},
		{user.Query{ID: &two.ID}, "2"},
		{user.Query{ID: new("nobody")}, ""},
		{user.Query{Phone: &two.Phone}, "2"},
		{user.Query{National: new("5320000002")}, "2"},
		{user.Query{Phone: new("+905320000003"), National: new("5320000002")}, "2 3"},
		{user.Query{Phone: &two.Phone, National: new("905320000002"), NewestFirst: true}, "2"},
		{user.Query{National: new("905320000002")}, ""},
		{user.Query{National: new("532000000")}, ""},
		{user.Query{National: &two.Phone}, ""},
		{user.Query{Phone: new("+905320000003")}, "3"},
		{user.Query{National: new("")}, ""},
		{user.Query{Email: &two.Email}, "2"},
		{user.Query{IdentityHashes: []string{"h1"}}, "1 3"},
		{user.Query{IdentityHashes: []string{"h1", "h0"}, NewestFirst: true}, "4 3 2 1"},
		{user.Query{IdentityHashes: []string{""}}, ""},
		{user.Query{TaxNumber: new("t0")}, "2 4"},
		{user.Query{TaxNumber: new("")}, ""},
		{user.Query{BirthDate: new("2000-01-01")}, "1 3"},
		{user.Query{KYCApproved: new(true)}, "2 4"},
		{user.Query{KYCApproved: new(false)}, "1 3 5"},
		{user.Query{Type: new(user.Corporate)}, "2 4"},
		{user.Query{Status: new(user.Active)}, "1 3 5"},
		{user.Query{Status: new(user.Active), TaxNumber: new("t0")}, ""},
		{user.Query{Name: new("ŞE o'n")}, "1 3 5"},
		{user.Query{Name: new("ışık")}, "2 4"},
		{user.Query{Name: new("işik 100%_i!")}, "2 4"},
		{user.Query{Name: new("%")}, "2 4"},
		{user.Query{Name: new("a_ş")}, ""},
	} {
		got := storetest.Value(s.Find(t.Context(), f.query, page.Query[user.Place]{}))(t)
		storetest.Equal(t, numbersOf(got.Records, idOf), f.want, f.query)
		var paged []user.User
		for q := (page.Query[user.Place]{Limit: 2, Count: true}); ; {
			got := storetest.Value(s.Find(t.Context(), f.query, q))(t)
			if paged = append(paged, got.Records...); got.Total != len(strings.Fields(f.want)) {
				t.Errorf("%+v: counted %d", f.query, got.Total)
			}
			if !got.More {
				break
			}
			q.After = new(paged[len(paged)-1].Mark())
		}
		storetest.Equal(t, numbersOf(paged, idOf), f.want, f.query)
	}
}

package account_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

// searched returns the numbers of the accounts that a search finds, in pages of two.
func searched(t *testing.T, s account.Users, text string) string {
	t.Helper()
	q, ok := user.ParseSearch(text)
	if !ok {
		t.Fatalf("%q is no search", text)
	}
	var found []string
	for p := (page.Query[user.Place]{Limit: 2, Count: true}); ; {
		got := storetest.Value(s.Find(t.Context(), user.Query{Search: &q}, p))(t)
		uncounted := p
		uncounted.Count = false
		again := storetest.Value(s.Find(t.Context(), user.Query{Search: &q}, uncounted))(t)
		storetest.Same(t, again.Records, got.Records)
		storetest.Equal(t, again.More, got.More, text)
		for _, u := range got.Records {
			found = append(found, strings.TrimLeft(u.ID[len(u.ID)-4:], "0"))
		}
		if !got.More {
			storetest.Equal(t, got.Total, len(found), text)
			return strings.Join(found, " ")
		}
		p.After = new(got.Records[len(got.Records)-1].Mark())
	}
}

func person(n int, name, surname, mail, phone string) user.Add {
	a := usertest.Sample(n)
	a.Name, a.Surname, a.Email, a.Phone = name, surname, mail, phone
	return a
}

// Every account is found by the same texts: one that waits for the index, one in it, and one that 0.9 changed.
func TestSearchOfAccounts(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, s := t.Context(), account.NewUsers(db)
		storetest.Must(t, db.Commit(ctx, person(1, "Ayşe", "Demir", "ayse@demo.test", "+905320001234"),
			person(2, "Ayşe Nur", "Öztürk", "nur@demo.test", "+905330001234"),
			person(3, "Søren", "O'Neil", "soren_1@other.test", "+4915112345678"), person(4, "", "", "x@y.test", "")))
		check := func() {
			t.Helper()
			for text, want := range map[string]string{"ayse": "1 2", "demir ayşe": "1", "ÖZTÜRK": "2", "ayse@demo": "1",
				"532 000": "1", "0001234": "1 2", "ayse 533": "2", "soren": "3", "o'neil": "3", "neil": "3", "test": "1 2 3 4",
				"y": "4", "demo": "1 2", "yse": "", "999": "", "soren_1": "3", "soren_2": ""} {
				storetest.Equal(t, searched(t, s, text), want, text)
			}
		}
		check()
		for _, want := range []int{3, 1, 0} {
			storetest.Equal(t, storetest.Value(s.FoldWaiting(ctx, 3))(t), want)
		}
		check()
		for part, want := range map[string]int{"se nur": 1, "ŞE": 2, "ozt": 1, "Öz": 1, "ø": 2, "%": 0} {
			found := storetest.Value(s.Find(ctx, user.Query{Name: &part}, page.Query[user.Place]{}))(t)
			storetest.Equal(t, len(found.Records), want, part)
		}
		persistencetest.Exec(t, db, "UPDATE users SET name = 'Zeki', phone = '+905440001234' WHERE id = ?",
			usertest.Sample(1).ID)
		for range 2 {
			for text, want := range map[string]string{"zeki": "1", "ayse": "1 2", "ayse@demo": "1", "544": "1", "532": ""} {
				storetest.Equal(t, searched(t, s, text), want, text)
			}
			storetest.Must(t, storetest.Err(s.FoldWaiting(ctx, 10)))
		}
	})
}

// A search with many results reads the accounts in the order of the list.
func TestSearchWithManyResults(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		const many = 23
		defer account.SetMostFound(20)()
		ctx, s := t.Context(), account.NewUsers(db)
		var all []commit.Write
		for n := 1; n <= many; n++ {
			all = append(all, person(n, "Ayşe", fmt.Sprintf("K%d", n), fmt.Sprintf("k%d@demo.test", n),
				fmt.Sprintf("+90532%07d", n)))
		}
		for batch := range slices.Chunk(all, 500) {
			storetest.Must(t, db.Commit(ctx, batch...))
		}
		for n := 1; n > 0; {
			n = storetest.Value(s.FoldWaiting(ctx, 1000))(t)
		}
		storetest.Must(t, db.Commit(ctx, person(many+1, "Ayşe", "Son", "son@demo.test", "+905310000000")))
		q, _ := user.ParseSearch("ayse demo")
		for _, newest := range []bool{false, true} {
			got, err := s.Find(ctx, user.Query{Search: &q, NewestFirst: newest}, page.Query[user.Place]{Limit: 3, Count: true})
			storetest.Must(t, err)
			first := usertest.Sample(1).ID
			if newest {
				first = usertest.Sample(many + 1).ID
			}
			if len(got.Records) != 3 || !got.More || got.Total != many+1 || got.Records[0].ID != first {
				t.Errorf("newest %v: %d of %d, first %s", newest, len(got.Records), got.Total, got.Records[0].ID)
			}
		}
		storetest.Equal(t, searched(t, s, "k23 ayse"), "23", "a rare number")
	})
}

package account_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/password/legacy"
	"castellan/domain/account/user"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

// hashes are stored hashes with their kinds; the last ones count for none.
var hashes = []struct{ stored, kind string }{
	{"$imported$bcrypt$r=10$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY", "bcrypt$r=10+"},
	{"$imported$bcrypt$r=10$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY", "bcrypt$r=10+"},
	{"$imported$digest$h=md5,o=sp$c2FsdA$n=16$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$x",
		"digest$h=md5,o=sp+m=64,t=1,p=1"},
	{"$imported$argon2id$m=128,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEy", "argon2id$m=128,t=1,p=1+"},
	{"$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$x", "+m=64,t=1,p=1"},
	{"", ""}, {"$imported$", ""}, {"$imported$x", ""}, {"$argon2id$v=19$", ""}, {"x", ""},
}

// counted is a Counter over a database, with accounts of each hash that were imported at an instant.
func counted(t *testing.T, db *persistence.DB, imported, now time.Time) (*password.Counter, []string) {
	t.Helper()
	users := make([]string, len(hashes))
	for i, h := range hashes {
		u := user.New(id.New(imported.Add(time.Duration(i)*time.Millisecond)), imported)
		u.Email, users[i] = fmt.Sprintf("u%d@example.test", i), u.ID
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u, PasswordHash: h.stored}))
	}
	hasher, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1}})
	storetest.Must(t, err)
	return &password.Counter{Store: account.NewHashKinds(db), Commit: db, Hasher: hasher, Keep: 180 * 24 * time.Hour,
		Now: func() time.Time { return now }}, users
}

func kinds(t *testing.T, s password.KindStore) map[string][2]int64 {
	t.Helper()
	list := storetest.Value(s.Portions(t.Context(), 99))(t)
	got := map[string][2]int64{}
	for _, p := range list {
		got[p.Kind.String()] = [2]int64{p.Accounts, p.Peak}
	}
	return got
}

// The first start counts the kinds of all hashes. Later counts are an hour apart, keep the peak, and imports add to
// them. The seed and the first start stay.
func TestCensus(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		now := time.UnixMilli(1_700_000_000_000).UTC()
		c, users := counted(t, db, now, now)
		storetest.Must(t, c.Load(t.Context()))
		storetest.Must(t, c.Load(t.Context()))
		want := map[string][2]int64{}
		for _, h := range hashes[:5] {
			want[h.kind] = [2]int64{want[h.kind][0] + 1, want[h.kind][1] + 1}
		}
		storetest.Same(t, kinds(t, c.Store), want)
		first := storetest.Value(c.Store.Census(t.Context()))(t)
		if first.Version != 1 || len(first.Seed) != 32 || !first.Since.Equal(now) || !first.Counted.Equal(now) {
			t.Errorf("%+v", first)
		}
		bcrypt := password.Kind{Inner: legacy.Recipe{Alg: legacy.Bcrypt, Cost: 10}}
		storetest.Must(t, db.Commit(t.Context(), password.UseKind{Kind: bcrypt, Accounts: 7},
			user.Rehash{UserID: users[0], Old: hashes[0].stored, New: hashes[4].stored}))
		want["bcrypt$r=10+"] = [2]int64{9, 9}
		for _, after := range []time.Duration{0, time.Hour - 1, time.Hour} {
			storetest.Same(t, kinds(t, c.Store), want)
			c.Now = func() time.Time { return now.Add(after) }
			storetest.Must(t, c.Run(t.Context()))
		}
		want["bcrypt$r=10+"], want["+m=64,t=1,p=1"] = [2]int64{1, 9}, [2]int64{2, 2}
		storetest.Same(t, kinds(t, c.Store), want)
		again := storetest.Value(c.Store.Census(t.Context()))(t)
		if again.Version != 2 || string(again.Seed) != string(first.Seed) || !again.Since.Equal(now) ||
			!again.Counted.Equal(now.Add(time.Hour)) {
			t.Errorf("%+v", again)
		}
	})
}

// An imported hash that was not used expires Keep after the later of its import and the first start that counts. Its
// account must reset the password, and no other account changes.
func TestExpiry(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		start := time.UnixMilli(1_700_000_000_000).UTC()
		c, users := counted(t, db, start.Add(-1000*24*time.Hour), start)
		storetest.Must(t, c.Load(t.Context()))
		expired := func(after time.Duration) (n int) {
			t.Helper()
			c.Now = func() time.Time { return start.Add(after) }
			storetest.Must(t, c.Run(t.Context()))
			for i, h := range hashes {
				stored := storetest.Value(account.NewUsers(db).Secret(t.Context(), users[i]))(t)
				u := storetest.Value(account.NewUsers(db).Get(t.Context(), users[i]))(t)
				switch {
				case u.MustReset && stored.Hash == "" && password.Imported(h.stored):
					n++
				case u.MustReset || stored.Hash != h.stored:
					t.Errorf("%s became %s, must reset %v", h.stored, stored.Hash, u.MustReset)
				}
			}
			return n
		}
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{time.Hour, 0}, {c.Keep - time.Minute, 0}, {c.Keep + time.Hour, 6}, {c.Keep + 9*time.Hour, 6}} {
			storetest.Equal(t, expired(step.after), step.want, step.after)
		}
		var audits int
		err := db.Conn(t.Context()).NewSelect().Table("audit").ColumnExpr("COUNT(*)").Where("action = ?",
			password.ActionExpire).Scan(t.Context(), &audits)
		storetest.Must(t, err)
		storetest.Equal(t, audits, 1)
		late := user.New(id.New(start.Add(time.Hour)), start)
		storetest.Must(t, db.Commit(context.WithoutCancel(t.Context()), user.Add{User: late,
			PasswordHash: hashes[0].stored}))
		census := storetest.Value(c.Store.Census(t.Context()))(t)
		for days, want := range map[int]int64{179: 0, 181: 1} {
			before := census.Deadline(start.Add(time.Duration(days)*24*time.Hour), c.Keep)
			storetest.Equal(t, storetest.Value(c.Store.Imported(t.Context(), before))(t), want, days)
		}
	})
}

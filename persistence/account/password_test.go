package account_test

import (
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

func TestPasswordGuardStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) password.GuardStore { return account.NewPasswordGuards(db) },
		storetest.Cases[password.GuardStore]{
			"RoundTrip":         guardRoundTrip,
			"FenceUnderRace":    guardFenceUnderRace,
			"FirstRowUnderRace": guardFirstRowUnderRace,
			"LimitUnderRace":    guardLimitUnderRace,
			"Clear":             guardClear,
		}, "password_guard")
}

// A guard that cannot be read is an error. It is not cleared.
func TestDamagedGuard(t *testing.T) {
	db := persistencetest.SQLite(t)
	storetest.Must(t, db.Commit(t.Context(), password.SaveGuard{Guard: password.Guard{Key: "u1"}}))
	persistencetest.Exec(t, db, "UPDATE password_guard SET body = 'x'")
	storetest.Wants(t, db.Commit(t.Context(), password.ClearGuard{Key: "u1"}), fault.Internal)
	g, err := account.NewPasswordGuards(db).Guard(t.Context(), "u1")
	storetest.Wants(t, err, fault.Internal, g)
	storetest.Equal(t, len(g.Good), 0, g)
}

var now = time.UnixMilli(1_700_000_000_000).UTC()

func loadGuard(t *testing.T, s password.GuardStore, key string) password.Guard {
	t.Helper()
	return storetest.Value(s.Guard(t.Context(), key))(t)
}

func saveGuard(g password.Guard) password.SaveGuard {
	return password.SaveGuard{Guard: g, Until: g.Until(password.DefaultGuardRules())}
}

func guardRoundTrip(t *testing.T, s password.GuardStore, c commit.Committer) {
	ctx, r := t.Context(), password.DefaultGuardRules()
	g := loadGuard(t, s, "?'key")
	if g.Key != "?'key" || g.Version != 0 || len(g.Tries)+len(g.Good) != 0 {
		t.Fatalf("nothing was saved, yet %+v", g)
	}
	for i, prefix := range []string{"203.0.113.9/32", "2001:db8:1:2::/64", ""} {
		next := storetest.Value(g.Charge(now.Add(time.Duration(i)), r, prefix))(t)
		if i == 1 {
			next = next.Refund(now, r, prefix)
		}
		storetest.Must(t, c.Commit(ctx, saveGuard(next)))
		got := loadGuard(t, s, "?'key")
		next.Version = g.Version + 1
		storetest.Same(t, got, next)
		g = got
	}
	storetest.Equal(t, loadGuard(t, s, "other").Version, 0, "another account")
}

// The row holds exactly the acknowledged writes.
func guardFenceUnderRace(t *testing.T, s password.GuardStore, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, saveGuard(loadGuard(t, s, "u"))))
	won := storetest.RaceOfFences(t, 100, func(i int) error {
		g, err := s.Guard(ctx, "u")
		if err != nil {
			return err
		}
		g.Tries = append(g.Tries, password.Try{At: int64(i), Prefix: "p"})
		return c.Commit(ctx, saveGuard(g))
	})
	if g := loadGuard(t, s, "u"); won == 0 || len(g.Tries) != won || g.Version != int64(1+won) {
		t.Errorf("%d writes, %d tries, version %d", won, len(g.Tries), g.Version)
	}
}

func guardFirstRowUnderRace(t *testing.T, s password.GuardStore, c commit.Committer) {
	won := storetest.RaceOfFences(t, 20, func(i int) error {
		g := password.Guard{Key: "u", Tries: []password.Try{{At: int64(i), Prefix: "p"}}}
		return c.Commit(t.Context(), saveGuard(g))
	})
	if g := loadGuard(t, s, "u"); won != 1 || len(g.Tries) != 1 || g.Version != 1 {
		t.Errorf("%d first rows, %+v", won, g)
	}
}

// Nodes that share only the rows judge ten wrong tries and no more.
func guardLimitUnderRace(t *testing.T, s password.GuardStore, c commit.Committer) {
	r := password.DefaultGuardRules()
	var nodes []*password.Guards
	for range 4 {
		nodes = append(nodes, password.NewGuards(s, c, r, func() time.Time { return now }))
	}
	judged := storetest.Race(t, 60, fault.RateLimited, func(i int) error {
		a, err := nodes[i%4].Charge(t.Context(), "u", "p")
		if err == nil {
			a.Wrong()
		}
		return err
	})
	if counted := len(loadGuard(t, s, "u").Tries); judged != 10 || counted != 10 {
		t.Errorf("%d judged, %d counted", judged, counted)
	}
}

func guardClear(t *testing.T, s password.GuardStore, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, password.ClearGuard{Key: "unknown"}))
	storetest.Equal(t, loadGuard(t, s, "unknown").Version, 0, "without a row")
	g := password.Guard{Key: "u", Tries: []password.Try{{At: 1, Prefix: "p"}}, Good: []password.Good{{Prefix: "q", At: 1}}}
	storetest.Must(t, c.Commit(ctx, saveGuard(g), saveGuard(password.Guard{Key: "v", Tries: g.Tries})))
	stale := loadGuard(t, s, "u")
	storetest.Must(t, c.Commit(ctx, password.ClearGuard{Key: "u"}))
	if g := loadGuard(t, s, "u"); len(g.Tries) != 0 || len(g.Good) != 1 || g.Good[0].Prefix != "q" || g.Version != 2 {
		t.Errorf("after clearing %+v", g)
	}
	storetest.Is(t, c.Commit(ctx, saveGuard(stale)), commit.ErrFenced)
	storetest.Equal(t, len(loadGuard(t, s, "v").Tries), 1, "another account")
	for i, key := range []string{"u", "fresh"} { // with and without a row
		storetest.Must(t, c.Commit(ctx, password.ResetBy(key, "here", now)))
		if g := loadGuard(t, s, key); len(g.Tries) != 0 || len(g.Good) != 1 || g.Good[0].Prefix != "here" ||
			g.Version != int64(3-2*i) {
			t.Errorf("%s again: %+v", key, g)
		}
	}
	storetest.Must(t, s.Purge(ctx, now.Add(30*24*time.Hour)))
	storetest.Equal(t, len(loadGuard(t, s, "fresh").Good), 1, "a prefix that is known")
	storetest.Must(t, s.Purge(ctx, now.Add(30*24*time.Hour+time.Second)))
	storetest.Equal(t, loadGuard(t, s, "fresh").Version, 0, "after 30 days")
}

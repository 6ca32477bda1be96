package session_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/session"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/engine"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

// A node of the release before writes a session without history and a line of its own. The login is listed once, before
// and after the purge of the session.
func TestHistoryOfEarlierRelease(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "test.db"),
		"postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			ctx, now := t.Context(), usertest.Now
			db := persistencetest.OpenWith(t, dsn, persistence.Options{})
			store, one := sessionstore.NewSessions(db), usertest.Sample(1)
			line := session.Login{ID: id.New(now), UserID: one.ID, At: now, IP: "192.0.2.1", Success: true}
			storetest.Must(t, db.Commit(ctx, one, session.Remember{Login: line}))
			storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
				_, err := db.Conn(ctx).NewRaw("INSERT INTO session (id, user_id, created_at, last_seen_at, expires_at, "+
					"ended_at, ip, country, brand, model, description, device_id, sv, amr) "+
					"VALUES (?, ?, ?, ?, ?, 0, '192.0.2.1', '', '', '', '', '', 1, 'pwd')", id.New(now), one.ID,
					now.UnixMilli(), now.UnixMilli(), now.UnixMilli()).Exec(ctx)
				return err
			}))
			for range 2 {
				got := storetest.Value(store.Logins(ctx, one.ID, page.Query[session.LoginPlace]{}))(t)
				storetest.Same(t, got.Records, []session.Login{line}, line)
				storetest.Must(t, store.Purge(ctx, now.Add(time.Minute), now.Add(-time.Hour)))
			}
		})
	}
}

// A count of refused logins whose minute cannot be read is an error.
func TestDamagedRefusedLogins(t *testing.T) {
	db := persistencetest.SQLite(t)
	store := sessionstore.NewSessions(db)
	at := usertest.Now.Truncate(time.Minute)
	storetest.Must(t, db.Commit(t.Context(), session.Refused{Site: "s", Minute: at, Count: 2}))
	persistencetest.Exec(t, db, "INSERT INTO refused_login (id, count) VALUES ('0000-99 s', 1)")
	var got []session.Refused
	err := db.InTx(t.Context(), func(ctx context.Context) (err error) {
		got, err = store.TakeRefused(ctx, at.Add(time.Minute), 10)
		return err
	})
	if err == nil || got != nil || !strings.HasPrefix(err.Error(), "refused login: ") {
		t.Errorf("%+v, %v", got, err)
	}
}

// A purge of many rows goes on until they are gone.
func TestPurgeTakesAsManyBatchesAsItNeeds(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		const old, young = 2*engine.PurgeBatch + 1, 3
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			for i := 0; i < old+young; i += 100 {
				var ws []commit.Write
				for j := i; j < min(i+100, old+young); j++ {
					at := usertest.Now
					if j >= old {
						at = at.Add(time.Hour)
					}
					ws = append(ws, session.Remember{Login: session.Login{ID: fmt.Sprintf("%026d", j), UserID: "u",
						At: at}})
				}
				if err := db.Commit(ctx, ws...); err != nil {
					return err
				}
			}
			return nil
		}))
		store := sessionstore.NewSessions(db)
		storetest.Must(t, store.Purge(ctx, time.Time{}, usertest.Now.Add(time.Minute)))
		storetest.Equal(t, len(storetest.Value(store.Logins(ctx, "u", page.Query[session.LoginPlace]{}))(t).Records), young)
	})
}

func loginHistory(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	for i, l := range []session.Login{
		{UserID: one, IP: "192.0.2.1", Success: true, Country: "TR", Brand: "b", Model: "m", Description: "d'"},
		{UserID: one, IP: "192.0.2.2"}, {UserID: two, IP: "192.0.2.1"}, {UserID: "", IP: "192.0.2.1"},
	} {
		l.ID, l.At = fmt.Sprint("l", i), now.Add(time.Duration(i)*time.Second)
		if l.Success { // its session is the line
			storetest.Must(t, c.Commit(ctx, added(session.Session{ID: l.ID, UserID: l.UserID, CreatedAt: l.At, IP: l.IP,
				Country: l.Country, Brand: l.Brand, Model: l.Model, Description: l.Description, SV: 1})))
			continue
		}
		storetest.Must(t, c.Commit(ctx, session.Remember{Login: l}))
	}
	pagetest.Check(t, s.Logins, one, []session.Login{
		{ID: "l1", UserID: one, At: now.Add(time.Second), IP: "192.0.2.2"},
		{ID: "l0", UserID: one, At: now, IP: "192.0.2.1", Country: "TR", Brand: "b", Model: "m", Description: "d'",
			Success: true}})
	refused := persistencetest.Whole(t, func(l *session.Login) { l.IP, l.Success = "192.0.2.3", false })
	storetest.Must(t, c.Commit(ctx, session.RememberRefused{Login: refused}))
	if got, err := s.LoginsFrom(ctx, "192.0.2.3", 2); err != nil || len(got) != 1 || got[0] != refused {
		t.Errorf("refused: %+v, %v, want %+v", got, err, refused)
	}
	for limit, want := range map[int]string{2: "[l3 l2]", 9: "[l3 l2 l0]"} {
		from := storetest.Value(s.LoginsFrom(ctx, "192.0.2.1", limit))(t)
		got := []string{}
		for _, l := range from {
			got = append(got, l.ID)
		}
		storetest.Equal(t, fmt.Sprint(got), want, limit)
	}
}

// Refused logins of all users are listed, with and without a cause. Completed logins are not, neither as sessions nor
// as lines of earlier releases or of purged sessions.
func refusedLogins(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	line := func(n int, userID string, success bool) session.Login {
		at := now.Add(time.Duration(n) * time.Second)
		return session.Login{ID: id.New(at), UserID: userID, At: at, IP: "192.0.2.1", Country: "TR", Brand: "b",
			Model: "m", Description: "d", Success: success}
	}
	pagetest.Check(t, s.RefusedLogins, struct{}{}, nil)
	first, second, last := line(1, one, false), line(3, "", false), line(5, two, false)
	first.Refusal = session.Refusal{Reason: session.WrongPassword, Standing: password.Standing{Tries: 10, Limit: 10,
		LockedUntil: now.Add(time.Hour)}}
	last.Refusal = session.Refusal{Reason: session.Inactive, Standing: password.Standing{Tries: 1, Limit: 10}}
	gone, lives := sampleSession(1, one), sampleSession(2, one)
	gone.ID, lives.ID = id.New(now.Add(4*time.Second)), id.New(now.Add(6*time.Second))
	gone.EndedAt, gone.ExpiresAt, lives.ExpiresAt = now, now, now.Add(time.Hour)
	storetest.Must(t, c.Commit(ctx, session.RememberRefused{Login: last}, session.Remember{Login: line(2, one, true)},
		session.RememberRefused{Login: first}, session.Remember{Login: second}, added(gone), added(lives)))
	for range 2 {
		pagetest.Check(t, s.RefusedLogins, struct{}{}, []session.Login{last, second, first})
		storetest.Must(t, s.Purge(ctx, now.Add(time.Minute), now.Add(-time.Hour)))
	}
	storetest.Must(t, s.Purge(ctx, now, now.Add(2*time.Second)))
	pagetest.Check(t, s.RefusedLogins, struct{}{}, []session.Login{last, second})
}

// The line of a purged session stays in the history as it was, until the history is purged.
func lineOfPurgedSession(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	gone, lives := sampleSession(1, one), sampleSession(2, one)
	gone.ID, lives.ID = id.New(now), id.New(now.Add(time.Second))
	gone.EndedAt, gone.ExpiresAt, lives.ExpiresAt = now, now, now.Add(time.Hour)
	storetest.Must(t, c.Commit(ctx, added(gone), added(lives)))
	read := func() []session.Login {
		t.Helper()
		l := storetest.Value(s.Logins(ctx, one, page.Query[session.LoginPlace]{Count: true}))(t)
		from := storetest.Value(s.LoginsFrom(ctx, gone.IP, 10))(t)
		storetest.Same(t, from, l.Records, from, l)
		storetest.Equal(t, l.Total, len(from), from, l)
		return l.Records
	}
	before := read()
	if len(before) != 2 || before[1].ID != gone.ID || !before[1].Success || before[1].Model != gone.Model {
		t.Fatalf("before the purge: %+v", before)
	}
	for range 2 {
		storetest.Must(t, s.Purge(ctx, now.Add(time.Minute), now.Add(-time.Hour)))
		storetest.Same(t, read(), before)
	}
	storetest.Same(t, sessionIDs(t, s, one, now), []string{lives.ID}, "sessions left")
	storetest.Must(t, s.Purge(ctx, now.Add(time.Minute), now.Add(time.Minute)))
	storetest.Same(t, read(), before[:1], "after the purge of the history")
}

func takenRefusals(t *testing.T, s session.Store, c commit.Committer, before time.Time,
	limit int) (all []session.Refused) {
	t.Helper()
	storetest.Must(t, c.InTx(t.Context(), func(ctx context.Context) (err error) {
		all, err = s.TakeRefused(ctx, before, limit)
		return err
	}))
	return all
}

// Refusals add up by site and minute, whichever node adds them, and are taken once.
func refusals(t *testing.T, s session.Store, c commit.Committer) {
	ctx, minute := t.Context(), now.Truncate(time.Minute).UTC()
	add := func(site string, at time.Time) {
		storetest.Must(t, c.Commit(ctx, session.Refused{Site: site, Minute: at, Count: 1}))
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { add("a/32", minute) })
	}
	wg.Wait()
	add("b/56", minute)
	add("a/32", minute.Add(time.Minute))
	take := func(before time.Time, limit int) []string {
		all := takenRefusals(t, s, c, before, limit)
		var out []string
		for _, r := range all {
			out = append(out, fmt.Sprint(r.Site, " ", r.Minute.Sub(minute), " ", r.Count))
		}
		return out
	}
	if got := take(minute, 10); len(got) != 0 {
		t.Errorf("of a minute that begins now %v", got)
	}
	storetest.Same(t, take(minute.Add(time.Minute), 1), []string{"a/32 0s 20"})
	storetest.Same(t, take(minute.Add(time.Minute), 10), []string{"b/56 0s 1"})
	add("a/32", minute) // too late for its minute: it is not lost
	storetest.Same(t, take(minute.Add(time.Minute+1), 10), []string{"a/32 0s 1", "a/32 1m0s 1"})
}

// When nodes take at the same time, each refusal goes to one of them.
func refusalsUnderRace(t *testing.T, s session.Store, c commit.Committer) {
	minute := now.Truncate(time.Minute)
	for i := range 40 {
		storetest.Must(t, c.Commit(t.Context(), session.Refused{Site: fmt.Sprint(i), Minute: minute, Count: 1}))
	}
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				all := takenRefusals(t, s, c, minute.Add(time.Minute), 7)
				if len(all) == 0 {
					return
				}
				mu.Lock()
				for _, r := range all {
					got[r.Site]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// Others were about to take it, and then saw nothing.
	for _, r := range takenRefusals(t, s, c, minute.Add(time.Minute), 100) {
		got[r.Site]++
	}
	for i := range 40 {
		storetest.Equal(t, got[fmt.Sprint(i)], 1, i)
	}
}

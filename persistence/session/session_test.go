package session_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/session/session"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

// The births of one process and the change of another: no order of two commits
// lets a session survive (D-AUTH-11).
func TestBirthsOfAnotherProcess(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "test.db"),
		"postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			a, b := persistencetest.OpenWith(t, dsn, persistence.Options{}), persistencetest.OpenWith(t, dsn,
				persistence.Options{})
			storetest.Must(t, a.Commit(t.Context(), usertest.Sample(1)))
			raceBirths(t, sessionstore.NewSessions(b), a, b)
		})
	}
}

func TestSessionStore(t *testing.T) {
	persistencetest.RunBoth(t, func(t *testing.T, open storetest.Open[session.Store]) {
		storetest.Run(t, usertest.WithTwo(open), storetest.Cases[session.Store]{
			"RoundTrip":       sessionRoundTrip,
			"OnlyTheLiving":   activeSessions,
			"EndOnce":         sessionEndOnce,
			"EndAllUnderRace": endAllSessionsUnderRace,
			"BornUnderRace": func(t *testing.T, s session.Store, c commit.Committer) {
				raceBirths(t, s, c, c)
			},
			"Seen":             sessionSeen,
			"Refused":          refusals,
			"RefusedUnderRace": refusalsUnderRace,
			"Renewed":          sessionRenewed,
			"RenewedUnderRace": sessionRenewedUnderRace,
			"Revoked":          sessionRevoked,
			"Logins":           loginHistory,
			"RefusedLogins":    refusedLogins,
			"Purge":            sessionPurge,
			"LineOfPurged":     lineOfPurgedSession,
		})
	}, func(db *persistence.DB) session.Store { return sessionstore.NewSessions(db) }, persistencetest.AccountTables...)
}

var now = usertest.Now

var one, two = usertest.Sample(1).ID, usertest.Sample(2).ID

func sampleSession(n int, userID string) session.Session {
	at := now.Add(time.Duration(n) * time.Second)
	return session.Session{ID: fmt.Sprintf("s%d", n), UserID: userID, CreatedAt: at, LastSeenAt: at,
		ExpiresAt: now.Add(30 * time.Minute), IP: "2001:db8::1",
		Country: "TR", Brand: "Acme'", Model: "X", Description: "Ayşe's phone ?", DeviceID: "dev-1", SV: 1,
		AMR: []string{"pwd", "otp", "mfa"}}
}

// added is the write of a session of an unchanged account.
func added(s session.Session) session.Add { return session.Add{Session: s, CV: 1} }

func sessionIDs(t *testing.T, s session.Store, userID string, at time.Time) []string {
	t.Helper()
	list := storetest.Value(s.List(t.Context(), userID, at, 100))(t)
	n := storetest.Value(s.Count(t.Context(), userID, at))(t)
	storetest.Equal(t, n, len(list))
	out := []string{}
	for _, x := range list {
		out = append(out, x.ID)
	}
	return out
}

func sessionRoundTrip(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	want := persistencetest.Whole(t, func(s *session.Session) {
		s.ID, s.UserID, s.ExpiresAt, s.SV, s.AMR = "s1", one, now.Add(time.Minute), 1, []string{"pwd", "otp"}
		s.EndedAt, s.Thumbprint = time.Time{}, "" // it is active, and the key is in a table of its own
	})
	storetest.Must(t, c.Commit(ctx, added(want)))
	got := storetest.Value(s.Get(ctx, one, "s1", now))(t)
	storetest.Same(t, got, want)
	list := storetest.Value(s.List(ctx, one, now, 10))(t)
	storetest.Same(t, list, []session.Session{want})
	for _, who := range [][2]string{{two, "s1"}, {one, "s2"}, {"", "s1"}, {one, ""}} {
		storetest.Wants(t, storetest.Err(s.Get(ctx, who[0], who[1], now)), fault.RecordNotFound, who[1], who[0])
	}
	storetest.Wants(t, c.Commit(ctx, added(want)), fault.RecordAlreadyExist, "an id twice")
}

func activeSessions(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	ended, expired, older := sampleSession(3, one), sampleSession(4, one), sampleSession(5, one)
	ended.EndedAt, expired.ExpiresAt, older.SV = now, now.Add(time.Minute), 0
	for _, x := range []session.Session{sampleSession(1, one), sampleSession(2, one), ended, expired, older,
		sampleSession(6, two)} {
		storetest.Must(t, c.Commit(ctx, added(x)))
	}
	storetest.Same(t, sessionIDs(t, s, one, now.Add(time.Minute)), []string{"s2", "s1"}, "living, newest first")
	got := sessionIDs(t, s, one, now.Add(time.Minute-time.Millisecond))
	storetest.Same(t, got, []string{"s4", "s2", "s1"}, "a moment before one expires")
	if list, _ := s.List(ctx, one, now, 1); len(list) != 1 || list[0].ID != "s4" {
		t.Errorf("a limit of one: %+v", list)
	}
	if got := sessionIDs(t, s, "nobody", now); len(got) != 0 {
		t.Errorf("an unknown user has %v", got)
	}
}

func sessionEndOnce(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, added(sampleSession(1, one)), added(sampleSession(2, one)),
		added(sampleSession(3, two))))
	storetest.Must(t, c.Commit(ctx, session.End{SessionID: "s1", UserID: one, At: now},
		session.End{SessionID: "s3", UserID: one, At: now},
		session.End{SessionID: "none", UserID: one, At: now}))
	storetest.Must(t, c.Commit(ctx, session.End{SessionID: "s1", UserID: one, At: now.Add(time.Minute)}))
	storetest.Same(t, sessionIDs(t, s, one, now), []string{"s2"}, "what is left")
	storetest.Same(t, sessionIDs(t, s, two, now), []string{"s3"}, "another user's session was ended")
	all := storetest.Value(s.Revoked(ctx, now))(t)
	if len(all) != 1 || all[0].SessionID != "s1" || !all[0].At.Equal(now) {
		t.Errorf("a session ends once: %+v", all)
	}
}

// However many callers end all sessions at once, the result is one version that no session has.
func endAllSessionsUnderRace(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, added(sampleSession(1, one)), added(sampleSession(2, two))))
	u := usertest.Sample(1).User
	won := storetest.RaceOfFences(t, 20, func(int) error { return c.Commit(ctx, session.EndAll(u, now)...) })
	storetest.Equal(t, won, 1)
	if a, b := sessionIDs(t, s, one, now), sessionIDs(t, s, two, now); len(a) != 0 || len(b) != 1 {
		t.Errorf("the user's %v, another's %v", a, b)
	}
	all := storetest.Value(s.Revoked(ctx, now))(t)
	if len(all) != 1 || all[0].SessionID != "" || all[0].UserID != one || all[0].SV != 2 || !all[0].At.Equal(now) {
		t.Errorf("revocations %+v", all)
	}
	next := sampleSession(3, one)
	next.SV = 2
	storetest.Is(t, c.Commit(ctx, added(next)), commit.ErrFenced, "a session of credentials that hold no more")
	storetest.Must(t, c.Commit(ctx, session.Add{Session: next, CV: 2}))
	storetest.Same(t, sessionIDs(t, s, one, now), []string{"s3"}, "after the next login")
}

func sessionSeen(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, added(sampleSession(1, one)), added(sampleSession(2, one)),
		added(sampleSession(3, one))))
	later := now.Add(10 * time.Minute)
	storetest.Must(t, c.Commit(ctx, session.Seen{SessionID: "s2", At: later},
		session.Seen{SessionID: "s1", At: later.Add(time.Second)}, session.Seen{SessionID: "none", At: later}))
	storetest.Must(t, c.Commit(ctx, session.Seen{SessionID: "s1", At: now}))
	for id, want := range map[string]time.Time{"s1": later.Add(time.Second), "s2": later,
		"s3": sampleSession(3, one).LastSeenAt} {
		x := storetest.Value(s.Get(ctx, one, id, now))(t)
		if !x.LastSeenAt.Equal(want) {
			t.Errorf("%s was last seen at %v, want %v", id, x.LastSeenAt, want)
		}
	}
}

func sessionRevoked(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	for i := range 3 {
		storetest.Must(t, c.Commit(ctx, added(sampleSession(i, one))))
		storetest.Must(t, c.Commit(ctx, session.End{SessionID: fmt.Sprint("s", i), UserID: one,
			At: now.Add(time.Duration(i) * time.Minute)}))
	}
	storetest.Must(t, c.Commit(ctx, session.EndAll(usertest.Sample(2).User, now.Add(time.Minute))...))
	for since, want := range map[time.Duration]string{0: "[s0 s1 s2 v2]", time.Minute: "[s1 s2 v2]",
		time.Minute + time.Millisecond: "[s2]", time.Hour: "[]"} {
		all := storetest.Value(s.Revoked(ctx, now.Add(since)))(t)
		got := []string{}
		for _, r := range all {
			if r.SessionID == "" && r.UserID == two {
				got = append(got, fmt.Sprint("v", r.SV))
			} else if r.UserID == one {
				got = append(got, r.SessionID)
			}
		}
		slices.Sort(got)
		storetest.Equal(t, fmt.Sprint(got), want, since)
	}
}

func sessionPurge(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	old, long, young := sampleSession(1, one), sampleSession(2, one), sampleSession(3, one)
	old.ID, long.ID, young.ID = id.New(now), id.New(now), id.New(now.Add(time.Hour))
	old.ExpiresAt = now
	first, last := id.New(now), id.New(now.Add(time.Hour))
	storetest.Must(t, c.Commit(ctx, added(old), added(long), added(young),
		session.Bind{SessionID: old.ID, Thumbprint: "k1"}, session.Bind{SessionID: long.ID, Thumbprint: "k2"},
		session.Remember{Login: session.Login{ID: first, UserID: one, At: now}},
		session.Remember{Login: session.Login{ID: last, UserID: one, At: now.Add(time.Hour)}}))
	storetest.Must(t, s.Purge(ctx, now.Add(time.Minute), now.Add(time.Minute)))
	if got := sessionIDs(t, s, one, now.Add(-time.Minute)); len(got) != 2 || slices.Contains(got, old.ID) {
		t.Errorf("sessions left: %v", got)
	}
	storetest.Equal(t, storetest.Value(s.Bound(ctx, one, long.ID, now))(t).Thumbprint, "k2")
	// The key of a purged session is gone: its id is free again.
	storetest.Must(t, c.Commit(ctx, session.Bind{SessionID: old.ID, Thumbprint: "k1"}))
	// The line of a session lives as long as the session.
	lines := func() (ids []string) {
		t.Helper()
		l := storetest.Value(s.Logins(ctx, one, page.Query[session.LoginPlace]{}))(t)
		for _, l := range l.Records {
			ids = append(ids, l.ID)
		}
		return ids
	}
	want := []string{last, young.ID, long.ID}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(b, a) })
	storetest.Same(t, lines(), want, "history left")
}

// birthRounds is the number of rounds of raceBirths. Without the fence of session.Add or without
// session.NoOtherSessions, a few suffice to fail.
const birthRounds = 60

// raceBirths races new sessions against a change of the password that ends the active ones: none survives (D-AUTH-11).
// births and changes may belong to different processes. The account is the first sample.
func raceBirths(t *testing.T, s session.Store, births, changes commit.Committer) {
	ctx := t.Context()
	cv, born, refused := int64(1), 0, 0
	for round := range birthRounds {
		var wg sync.WaitGroup
		begin := make(chan struct{})
		made := make([]error, 3)
		for i := range made {
			wg.Go(func() {
				<-begin
				one := sampleSession(1, one)
				one.ID = fmt.Sprintf("r%d.%d", round, i)
				made[i] = births.Commit(ctx, session.Add{Session: one, CV: cv},
					user.LoggedIn{UserID: one.UserID, At: one.CreatedAt.AddDate(0, 0, round)})
			})
		}
		wg.Go(func() {
			<-begin
			storetest.Must(t, changedPassword(t, s, changes, cv))
		})
		close(begin)
		wg.Wait()
		for _, err := range made {
			switch {
			case err == nil:
				born++
			case errors.Is(err, commit.ErrFenced):
				refused++
			default:
				t.Fatal(err)
			}
		}
		cv++
		if left := sessionIDs(t, s, one, now); len(left) > 0 {
			t.Fatalf("round %d: %v survived the change", round, left)
		}
	}
	t.Logf("%d were born and ended, %d were not born", born, refused)
}

// changedPassword replaces the password like package replace, and retries until it succeeds.
func changedPassword(t *testing.T, s session.Store, c commit.Committer, cv int64) error {
	for {
		living, err := s.List(t.Context(), one, now, 1000)
		if err != nil {
			return err
		}
		only := session.NoOtherSessions{UserID: one, At: now}
		writes := []commit.Write{user.SetPassword{UserID: one, CV: cv, Hash: fmt.Sprint("hash ", cv)}}
		for _, l := range living {
			only.IDs = append(only.IDs, l.ID)
			writes = append(writes, session.End{SessionID: l.ID, UserID: one, At: now})
		}
		if err := c.Commit(t.Context(), append(writes, only)...); !errors.Is(err, commit.ErrFenced) {
			return err
		}
	}
}

// addBound adds a session with a key.
func addBound(t *testing.T, c commit.Committer, s session.Session) {
	t.Helper()
	storetest.Must(t, c.Commit(t.Context(), added(s), session.Bind{SessionID: s.ID, Thumbprint: "key of " + s.ID}))
}

func renewal(sessionID, userID string, at time.Time) session.Renewed {
	return session.Renewed{SessionID: sessionID, UserID: userID, Thumbprint: "key of " + sessionID, At: at,
		Until: at.Add(time.Hour)}
}

// Only an active session of the user with this key is renewed; that records its use and its expiry.
func sessionRenewed(t *testing.T, s session.Store, c commit.Committer) {
	for n, owner := range []string{one, one, two} {
		addBound(t, c, sampleSession(n, owner))
	}
	storetest.Must(t, c.Commit(t.Context(), added(sampleSession(3, one))))
	storetest.Must(t, c.Commit(t.Context(), session.End{SessionID: "s1", UserID: one, At: now}))
	at := now.Add(20 * time.Minute)
	storetest.Must(t, c.Commit(t.Context(), renewal("s0", one, at)))
	got, err := s.Bound(t.Context(), one, "s0", at.Add(59*time.Minute))
	if err != nil || got.Thumbprint != "key of s0" || !got.LastSeenAt.Equal(at) ||
		!got.ExpiresAt.Equal(at.Add(time.Hour)) {
		t.Errorf("%+v, %v", got, err)
	}
	storetest.Equal(t, storetest.Value(s.Bound(t.Context(), one, "s3", now))(t).Thumbprint, "")
	other, idle, late := renewal("s0", one, at), renewal("s0", one, at), renewal("s0", one, at.Add(time.Hour))
	other.Thumbprint, idle.UsedAfter = "key of s2", at
	for name, w := range map[string]session.Renewed{
		"ended": renewal("s1", one, at), "of another": renewal("s2", one, at),
		"without a key": renewal("s3", one, at), "unknown": renewal("s9", one, at),
		"another key": other, "idle": idle, "expired": late,
	} {
		storetest.Is(t, c.Commit(t.Context(), w), commit.ErrFenced, name)
	}
	idle.UsedAfter = at.Add(-time.Millisecond)
	storetest.Must(t, c.Commit(t.Context(), idle))
	addBound(t, c, sampleSession(4, one))
	storetest.Must(t, c.Commit(t.Context(), session.Unbind{SessionID: "s4"}))
	storetest.Is(t, c.Commit(t.Context(), renewal("s4", one, at)), commit.ErrFenced, "after its key was removed")
	storetest.Equal(t, storetest.Value(s.Bound(t.Context(), one, "s4", now))(t).Thumbprint, "")
	storetest.Wants(t, storetest.Err(s.Bound(t.Context(), two, "s0", now)), fault.RecordNotFound)
	storetest.Must(t, c.Commit(t.Context(), user.EndSessions{UserID: one, SV: 1, At: now}))
	storetest.Is(t, c.Commit(t.Context(), renewal("s0", one, at)), commit.ErrFenced, "after the end of all")
	storetest.Wants(t, storetest.Err(s.Bound(t.Context(), one, "s0", at)), fault.RecordNotFound)
}

// Of renewals that race with one proof, one commits, with an end it is before or after.
func sessionRenewedUnderRace(t *testing.T, s session.Store, c commit.Committer) {
	addBound(t, c, sampleSession(0, one))
	at := now.Add(time.Minute)
	proof := device.See{ID: "p1", At: at, Until: at.Add(10 * time.Minute)}
	if gone, err := s.Proved(t.Context(), []commit.Write{proof}, at); gone || err != nil {
		t.Fatalf("%v, %v", gone, err)
	}
	used := fault.New(fault.DPoPInvalid, "used")
	storetest.OneWins(t, 12, fault.DPoPInvalid, func(int) error {
		err := c.Commit(t.Context(), proof, renewal("s0", one, at))
		if errors.Is(err, commit.ErrFenced) {
			return used
		}
		return err
	})
	if gone, err := s.Proved(t.Context(), []commit.Write{proof}, at); !gone || err != nil {
		t.Errorf("%v, %v", gone, err)
	}
	if gone, err := s.Proved(t.Context(), []commit.Write{proof}, proof.Until); gone || err != nil {
		t.Errorf("a proof is remembered for ever: %v, %v", gone, err)
	}
}

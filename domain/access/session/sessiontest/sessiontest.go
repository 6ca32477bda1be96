// Package sessiontest is the contract of session.Store as a test. The persistence package runs it on both databases.
package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/access/password"
	"castellan/domain/access/session"
	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
)

var now = usertest.Now

// Run checks an implementation of session.Store and the writes of the package.
func Run(t *testing.T, open storetest.Open[session.Store]) {
	beside := func(t *testing.T) (session.Store, commit.Committer) {
		s, c := open(t)
		storetest.Must(t, c.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2)))
		return s, c
	}
	storetest.Run(t, beside, storetest.Cases[session.Store]{
		"RoundTrip":       roundTrip,
		"OnlyTheLiving":   onlyTheLiving,
		"EndOnce":         endOnce,
		"EndAllUnderRace": endAllUnderRace,
		"BornUnderRace": func(t *testing.T, s session.Store, c commit.Committer) {
			Births(t, s, c, c)
		},
		"Seen":             seen,
		"Refused":          refused,
		"RefusedUnderRace": refusedUnderRace,
		"Extend":           extend,
		"Renewed":          renewed,
		"RenewedUnderRace": renewedUnderRace,
		"Revoked":          revoked,
		"Logins":           logins,
		"RefusedLogins":    refusedLogins,
		"Purge":            purge,
		"LineOfPurged":     lineOfPurged,
	})
}

var one, two = usertest.Sample(1).ID, usertest.Sample(2).ID

func sample(n int, userID string) session.Session {
	at := now.Add(time.Duration(n) * time.Second)
	return session.Session{ID: fmt.Sprintf("s%d", n), UserID: userID, CreatedAt: at, LastSeenAt: at,
		ExpiresAt: now.Add(30 * time.Minute), IP: "2001:db8::1",
		Country: "TR", Brand: "Acme'", Model: "X", Description: "Ayşe's phone ?", DeviceID: "dev-1", SV: 1,
		AMR: []string{"pwd", "otp", "mfa"}}
}

// added is the write of a session of an unchanged account.
func added(s session.Session) session.Add { return session.Add{Session: s, CV: 1} }

func ids(t *testing.T, s session.Store, userID string, at time.Time) []string {
	t.Helper()
	list, err := s.List(t.Context(), userID, at, 100)
	storetest.Must(t, err)
	n, err := s.Count(t.Context(), userID, at)
	storetest.Must(t, err)
	if n != len(list) {
		t.Errorf("%d are counted and %d listed", n, len(list))
	}
	out := []string{}
	for _, x := range list {
		out = append(out, x.ID)
	}
	return out
}

func roundTrip(t *testing.T, s session.Store, c commit.Committer) {
	ctx, want := t.Context(), sample(1, one)
	storetest.Must(t, c.Commit(ctx, added(want)))
	got, err := s.Get(ctx, one, "s1", now)
	storetest.Must(t, err)
	list, err := s.List(ctx, one, now, 10)
	storetest.Must(t, err)
	if len(list) != 1 || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) ||
		fmt.Sprintf("%+v", list[0]) != fmt.Sprintf("%+v", want) {
		t.Errorf("read back\n%+v\n%+v, want\n%+v", got, list, want)
	}
	for _, who := range [][2]string{{two, "s1"}, {one, "s2"}, {"", "s1"}, {one, ""}} {
		if _, err := s.Get(ctx, who[0], who[1], now); fault.CodeOf(err) != fault.RecordNotFound {
			t.Errorf("session %q of %q: %v", who[1], who[0], err)
		}
	}
	if err := c.Commit(ctx, added(want)); fault.CodeOf(err) != fault.RecordAlreadyExist {
		t.Errorf("an id twice: %v", err)
	}
}

func onlyTheLiving(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	ended, expired, older := sample(3, one), sample(4, one), sample(5, one)
	ended.EndedAt, expired.ExpiresAt, older.SV = now, now.Add(time.Minute), 0
	for _, x := range []session.Session{sample(1, one), sample(2, one), ended, expired, older, sample(6, two)} {
		storetest.Must(t, c.Commit(ctx, added(x)))
	}
	if got := ids(t, s, one, now.Add(time.Minute)); !slices.Equal(got, []string{"s2", "s1"}) {
		t.Errorf("living, newest first: %v", got)
	}
	if got := ids(t, s, one, now.Add(time.Minute-time.Millisecond)); !slices.Equal(got, []string{"s4", "s2", "s1"}) {
		t.Errorf("a moment before one expires: %v", got)
	}
	if list, _ := s.List(ctx, one, now, 1); len(list) != 1 || list[0].ID != "s4" {
		t.Errorf("a limit of one: %+v", list)
	}
	if got := ids(t, s, "nobody", now); len(got) != 0 {
		t.Errorf("an unknown user has %v", got)
	}
}

func endOnce(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, added(sample(1, one)), added(sample(2, one)),
		added(sample(3, two))))
	storetest.Must(t, c.Commit(ctx, session.End{SessionID: "s1", UserID: one, At: now},
		session.End{SessionID: "s3", UserID: one, At: now},
		session.End{SessionID: "none", UserID: one, At: now}))
	storetest.Must(t, c.Commit(ctx, session.End{SessionID: "s1", UserID: one, At: now.Add(time.Minute)}))
	if got := ids(t, s, one, now); !slices.Equal(got, []string{"s2"}) {
		t.Errorf("what is left: %v", got)
	}
	if got := ids(t, s, two, now); !slices.Equal(got, []string{"s3"}) {
		t.Errorf("another user's session was ended: %v", got)
	}
	all, err := s.Revoked(ctx, now)
	storetest.Must(t, err)
	if len(all) != 1 || all[0].SessionID != "s1" || !all[0].At.Equal(now) {
		t.Errorf("a session ends once: %+v", all)
	}
}

// However many callers end all sessions at once, the result is one version that no session has.
func endAllUnderRace(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, added(sample(1, one)), added(sample(2, two))))
	u := usertest.Sample(1).User
	var wg sync.WaitGroup
	var won atomic.Int32
	for range 20 {
		wg.Go(func() {
			if err := c.Commit(ctx, session.EndAll(u, now)...); err == nil {
				won.Add(1)
			} else if !errors.Is(err, commit.ErrFenced) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of equal ends were made", won.Load())
	}
	if a, b := ids(t, s, one, now), ids(t, s, two, now); len(a) != 0 || len(b) != 1 {
		t.Errorf("the user's %v, another's %v", a, b)
	}
	all, err := s.Revoked(ctx, now)
	storetest.Must(t, err)
	if len(all) != 1 || all[0].SessionID != "" || all[0].UserID != one || all[0].SV != 2 || !all[0].At.Equal(now) {
		t.Errorf("revocations %+v", all)
	}
	next := sample(3, one)
	next.SV = 2
	if err := c.Commit(ctx, added(next)); !errors.Is(err, commit.ErrFenced) {
		t.Errorf("a session of credentials that hold no more: %v", err)
	}
	storetest.Must(t, c.Commit(ctx, session.Add{Session: next, CV: 2}))
	if got := ids(t, s, one, now); !slices.Equal(got, []string{"s3"}) {
		t.Errorf("after the next login: %v", got)
	}
}

func seen(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, added(sample(1, one)), added(sample(2, one)),
		added(sample(3, one))))
	later := now.Add(10 * time.Minute)
	storetest.Must(t, c.Commit(ctx, session.Seen{SessionID: "s2", At: later},
		session.Seen{SessionID: "s1", At: later.Add(time.Second)}, session.Seen{SessionID: "none", At: later}))
	storetest.Must(t, c.Commit(ctx, session.Seen{SessionID: "s1", At: now}))
	for id, want := range map[string]time.Time{"s1": later.Add(time.Second), "s2": later,
		"s3": sample(3, one).LastSeenAt} {
		x, err := s.Get(ctx, one, id, now)
		storetest.Must(t, err)
		if !x.LastSeenAt.Equal(want) {
			t.Errorf("%s was last seen at %v, want %v", id, x.LastSeenAt, want)
		}
	}
}

func revoked(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	for i := range 3 {
		storetest.Must(t, c.Commit(ctx, added(sample(i, one))))
		storetest.Must(t, c.Commit(ctx, session.End{SessionID: fmt.Sprint("s", i), UserID: one,
			At: now.Add(time.Duration(i) * time.Minute)}))
	}
	storetest.Must(t, c.Commit(ctx, session.EndAll(usertest.Sample(2).User, now.Add(time.Minute))...))
	for since, want := range map[time.Duration]string{0: "[s0 s1 s2 v2]", time.Minute: "[s1 s2 v2]",
		time.Minute + time.Millisecond: "[s2]", time.Hour: "[]"} {
		all, err := s.Revoked(ctx, now.Add(since))
		storetest.Must(t, err)
		got := []string{}
		for _, r := range all {
			if r.SessionID == "" && r.UserID == two {
				got = append(got, fmt.Sprint("v", r.SV))
			} else if r.UserID == one {
				got = append(got, r.SessionID)
			}
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("since %v: %v, want %s", since, got, want)
		}
	}
}

func logins(t *testing.T, s session.Store, c commit.Committer) {
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
	refused := session.Login{ID: "l4", UserID: "three", At: now, IP: "192.0.2.3", Refusal: session.Refusal{
		Reason: session.WrongPassword, Standing: password.Standing{Tries: 10, Limit: 10, LockedUntil: now.Add(time.Hour)}}}
	storetest.Must(t, c.Commit(ctx, session.RememberRefused{Login: refused}))
	if got, err := s.LoginsFrom(ctx, "192.0.2.3", 2); err != nil || len(got) != 1 || got[0] != refused {
		t.Errorf("refused: %+v, %v, want %+v", got, err, refused)
	}
	for limit, want := range map[int]string{2: "[l3 l2]", 9: "[l3 l2 l0]"} {
		from, err := s.LoginsFrom(ctx, "192.0.2.1", limit)
		storetest.Must(t, err)
		got := []string{}
		for _, l := range from {
			got = append(got, l.ID)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("by address, at most %d: %v, want %s", limit, got, want)
		}
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
	gone, lives := sample(1, one), sample(2, one)
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

func purge(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	old, long, young := sample(1, one), sample(2, one), sample(3, one)
	old.ID, long.ID, young.ID = id.New(now), id.New(now), id.New(now.Add(time.Hour))
	old.ExpiresAt = now
	first, last := id.New(now), id.New(now.Add(time.Hour))
	storetest.Must(t, c.Commit(ctx, added(old), added(long), added(young),
		session.Bind{SessionID: old.ID, Thumbprint: "k1"}, session.Bind{SessionID: long.ID, Thumbprint: "k2"},
		session.Remember{Login: session.Login{ID: first, UserID: one, At: now}},
		session.Remember{Login: session.Login{ID: last, UserID: one, At: now.Add(time.Hour)}}))
	storetest.Must(t, s.Purge(ctx, now.Add(time.Minute), now.Add(time.Minute)))
	if got := ids(t, s, one, now.Add(-time.Minute)); len(got) != 2 || slices.Contains(got, old.ID) {
		t.Errorf("sessions left: %v", got)
	}
	if got, err := s.Bound(ctx, one, long.ID, now); err != nil || got.Thumbprint != "k2" {
		t.Errorf("a key was purged before its session: %+v, %v", got, err)
	}
	// The key of a purged session is gone: its id is free again.
	storetest.Must(t, c.Commit(ctx, session.Bind{SessionID: old.ID, Thumbprint: "k1"}))
	// The line of a session lives as long as the session.
	lines := func() (ids []string) {
		t.Helper()
		l, err := s.Logins(ctx, one, page.Query[session.LoginPlace]{})
		storetest.Must(t, err)
		for _, l := range l.Records {
			ids = append(ids, l.ID)
		}
		return ids
	}
	want := []string{last, young.ID, long.ID}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(b, a) })
	if got := lines(); !slices.Equal(got, want) {
		t.Errorf("history left: %v, want %v", got, want)
	}
}

// The line of a purged session stays in the history as it was, until the history is purged.
func lineOfPurged(t *testing.T, s session.Store, c commit.Committer) {
	ctx := t.Context()
	gone, lives := sample(1, one), sample(2, one)
	gone.ID, lives.ID = id.New(now), id.New(now.Add(time.Second))
	gone.EndedAt, gone.ExpiresAt, lives.ExpiresAt = now, now, now.Add(time.Hour)
	storetest.Must(t, c.Commit(ctx, added(gone), added(lives)))
	read := func() []session.Login {
		t.Helper()
		l, err := s.Logins(ctx, one, page.Query[session.LoginPlace]{Count: true})
		storetest.Must(t, err)
		from, err := s.LoginsFrom(ctx, gone.IP, 10)
		storetest.Must(t, err)
		if !slices.Equal(from, l.Records) || l.Total != len(from) {
			t.Errorf("by address: %+v, of the account %+v", from, l)
		}
		return l.Records
	}
	before := read()
	if len(before) != 2 || before[1].ID != gone.ID || !before[1].Success || before[1].Model != gone.Model {
		t.Fatalf("before the purge: %+v", before)
	}
	for range 2 {
		storetest.Must(t, s.Purge(ctx, now.Add(time.Minute), now.Add(-time.Hour)))
		if after := read(); !slices.Equal(after, before) {
			t.Errorf("after the purge:\n%+v, want\n%+v", after, before)
		}
	}
	if got := ids(t, s, one, now); !slices.Equal(got, []string{lives.ID}) {
		t.Errorf("sessions left: %v", got)
	}
	storetest.Must(t, s.Purge(ctx, now.Add(time.Minute), now.Add(time.Minute)))
	if after := read(); !slices.Equal(after, before[:1]) {
		t.Errorf("after the purge of the history: %+v", after)
	}
}

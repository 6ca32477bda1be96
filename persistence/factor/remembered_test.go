package factor_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

func TestRememberedStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) remembered.Store { return factor.NewRemembered(db) },
		storetest.Cases[remembered.Store]{
			"RoundTrip":   rememberedRoundTrip,
			"Use":         rememberedUse,
			"Credentials": rememberedCredentials,
			"Remove":      rememberedRemove,
			"Races":       rememberedRaces,
			"Purge":       rememberedPurge,
		}, "users", "remembered")
}

var start = time.UnixMilli(1_700_000_000_123).UTC()

func twoAccounts(t *testing.T, c commit.Committer) (one, two string) {
	t.Helper()
	storetest.Must(t, c.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2)))
	return usertest.Sample(1).ID, usertest.Sample(2).ID
}

func rememberedClient(n int, userID, key, action string) remembered.Client {
	at := start.Add(time.Duration(n) * time.Minute)
	return remembered.Client{ID: id.New(at), UserID: userID, Thumbprint: key, Action: action, Method: challenge.SMS, CV: 1,
		CreatedAt: at, LastUsedAt: at, ExpiresAt: at.AddDate(0, 0, 30), IP: "2001:db8::1", Description: "Firefox 'ğ'"}
}

func listedClients(t *testing.T, s remembered.Store, userID string, now time.Time, want ...remembered.Client) {
	t.Helper()
	storetest.Same(t, storetest.Value(s.List(t.Context(), userID, now, 100))(t), append([]remembered.Client{}, want...))
}

func rememberedRoundTrip(t *testing.T, s remembered.Store, c commit.Committer) {
	one, two := twoAccounts(t, c)
	a := persistencetest.Whole(t, func(c *remembered.Client) {
		c.ID, c.UserID, c.Thumbprint, c.Action, c.CV = id.New(start), one, "k1", "LOGIN", 1
		c.ExpiresAt = start.Add(time.Hour)
	})
	b, other := rememberedClient(2, one, "k1", "EXPORT"), rememberedClient(3, two, "k1", "LOGIN")
	storetest.Must(t, c.Commit(t.Context(), remembered.Add{Client: a}, remembered.Add{Client: b},
		remembered.Add{Client: other}))
	for _, want := range []remembered.Client{a, b, other} {
		storetest.Equal(t, storetest.Value(s.Find(t.Context(), want.UserID, want.Thumbprint, want.Action))(t), want)
	}
	for _, of := range [][3]string{{one, "k2", "LOGIN"}, {two, "k1", "EXPORT"}, {"u9", "k1", "LOGIN"}} {
		_, err := s.Find(t.Context(), of[0], of[1], of[2])
		storetest.Wants(t, err, fault.RecordNotFound)
	}
	listedClients(t, s, one, start, b, a)
	listedClients(t, s, one, a.ExpiresAt, b)
	listedClients(t, s, two, start, other)
	if got, err := s.Of(t.Context(), "LOGIN", start, 100); err != nil || !slices.Equal(got,
		[]remembered.Client{other, a}) {
		t.Errorf("%+v, %v", got, err)
	}
	storetest.Same(t, storetest.Value(s.List(t.Context(), one, start, 1))(t), []remembered.Client{b})
}

func rememberedUse(t *testing.T, s remembered.Store, c commit.Committer) {
	one, two := twoAccounts(t, c)
	a := rememberedClient(1, one, "k1", "LOGIN")
	storetest.Must(t, c.Commit(t.Context(), remembered.Add{Client: a}))
	right := remembered.Used{ID: a.ID, UserID: one, Thumbprint: "k1", At: start.Add(time.Hour)}
	storetest.Must(t, c.Commit(t.Context(), right))
	a.LastUsedAt = right.At
	listedClients(t, s, one, start, a)
	for name, change := range map[string]func(u *remembered.Used){
		"another account": func(u *remembered.Used) { u.UserID = two },
		"another key":     func(u *remembered.Used) { u.Thumbprint = "k2" },
		"unknown":         func(u *remembered.Used) { u.ID = "x" },
		"expired":         func(u *remembered.Used) { u.At = a.ExpiresAt },
	} {
		wrong := right
		change(&wrong)
		storetest.Is(t, c.Commit(t.Context(), wrong), commit.ErrFenced, name)
	}
	last := right
	last.At = a.ExpiresAt.Add(-time.Millisecond)
	storetest.Must(t, c.Commit(t.Context(), last))
}

func rememberedCredentials(t *testing.T, s remembered.Store, c commit.Committer) {
	one, two := twoAccounts(t, c)
	a, b := rememberedClient(1, one, "k1", "LOGIN"), rememberedClient(2, two, "k1", "LOGIN")
	storetest.Must(t, c.Commit(t.Context(), remembered.Add{Client: a}, remembered.Add{Client: b}))
	storetest.Must(t, c.Commit(t.Context(), user.Touch{UserID: one}))
	listedClients(t, s, one, start)
	listedClients(t, s, two, start, b)
	storetest.Same(t, storetest.Value(s.Of(t.Context(), "LOGIN", start, 100))(t), []remembered.Client{b})
	storetest.Equal(t, storetest.Value(s.RemoveAll(t.Context(), one, start))(t), 0)
}

func rememberedRemove(t *testing.T, s remembered.Store, c commit.Committer) {
	one, two := twoAccounts(t, c)
	a, b := rememberedClient(1, one, "k1", "LOGIN"), rememberedClient(2, one, "k2", "LOGIN")
	gone, other := rememberedClient(3, one, "k3", "LOGIN"), rememberedClient(4, two, "k1", "LOGIN")
	gone.ExpiresAt = start
	for _, one := range []remembered.Client{a, b, gone, other} {
		storetest.Must(t, c.Commit(t.Context(), remembered.Add{Client: one}))
	}
	storetest.Wants(t, s.Remove(t.Context(), two, a.ID), fault.RecordNotFound)
	storetest.Must(t, s.Remove(t.Context(), one, a.ID))
	storetest.Wants(t, s.Remove(t.Context(), one, a.ID), fault.RecordNotFound)
	used := remembered.Used{ID: a.ID, UserID: one, Thumbprint: "k1", At: start}
	storetest.Is(t, c.Commit(t.Context(), used), commit.ErrFenced, "a removed client is used")
	storetest.Equal(t, storetest.Value(s.RemoveAll(t.Context(), one, start))(t), 1)
	storetest.Equal(t, storetest.Value(s.RemoveAll(t.Context(), one, start))(t), 0, "again")
	listedClients(t, s, one, start)
	listedClients(t, s, two, start, other)
}

// Of concurrent ends one succeeds, and a use commits before the end or not at all. Concurrent completions of one client
// leave one row.
func rememberedRaces(t *testing.T, s remembered.Store, c commit.Committer) {
	one, _ := twoAccounts(t, c)
	a := rememberedClient(1, one, "k1", "LOGIN")
	storetest.Must(t, c.Commit(t.Context(), remembered.Add{Client: a}))
	storetest.OneWins(t, 8, fault.RecordNotFound, func(i int) error {
		if i%2 == 0 {
			return s.Remove(t.Context(), one, a.ID)
		}
		err := c.Commit(t.Context(), remembered.Used{ID: a.ID, UserID: one, Thumbprint: "k1", At: start})
		if err == nil || errors.Is(err, commit.ErrFenced) {
			return fault.New(fault.RecordNotFound, "not an end")
		}
		return err
	})
	storetest.Race(t, 8, fault.Unavailable, func(i int) error {
		return c.Commit(t.Context(), remembered.Add{Client: rememberedClient(i, one, "k1", "LOGIN")},
			remembered.Add{Client: rememberedClient(i, one, fmt.Sprint("k", 100+i), "LOGIN")})
	})
	storetest.Equal(t, len(storetest.Value(s.List(t.Context(), one, start, 100))(t)), 9)
}

func rememberedPurge(t *testing.T, s remembered.Store, c commit.Committer) {
	one, two := twoAccounts(t, c)
	young, old := rememberedClient(2, one, "k1", "LOGIN"), rememberedClient(1, one, "k2", "LOGIN")
	stale := rememberedClient(3, two, "k1", "LOGIN")
	old.ExpiresAt = start
	for _, one := range []remembered.Client{young, old, stale} {
		storetest.Must(t, c.Commit(t.Context(), remembered.Add{Client: one}))
	}
	storetest.Must(t, c.Commit(t.Context(), user.Touch{UserID: two}))
	storetest.Must(t, s.Purge(t.Context(), start.Add(time.Second)))
	for _, gone := range []remembered.Client{old, stale} {
		_, err := s.Find(t.Context(), gone.UserID, gone.Thumbprint, "LOGIN")
		storetest.Wants(t, err, fault.RecordNotFound)
	}
	listedClients(t, s, one, start, young)
}

package passkey_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/storetest"
)

var (
	now = time.UnixMilli(1_700_000_000_000)
	day = 24 * time.Hour
)

func trusted(id string, since, restarted time.Time) passkey.Credential {
	return passkey.Credential{DeviceID: id, Trust: passkey.Trust{Since: since, Restarted: restarted}}
}

// A passkey counts for phishingResistant from the end of its time, and from that of a change without a passkey. Factors
// are changed by those whose own time is over.
func TestPasskeysForNeeds(t *testing.T) {
	var never time.Time
	at, early := now.Add(-day), now.Add(-day+time.Millisecond)
	for name, c := range map[string]struct {
		have                []passkey.Credential
		resistant, changing string
	}{
		"settled at once":      {[]passkey.Credential{trusted("a", never, never)}, "a", "a"},
		"at the end":           {[]passkey.Credential{trusted("a", at, never)}, "a", "a"},
		"a millisecond before": {[]passkey.Credential{trusted("a", early, never)}, "", ""},
		"one of two":           {[]passkey.Credential{trusted("a", early, never), trusted("b", never, never)}, "b", "b"},
		"restarted":            {[]passkey.Credential{trusted("a", never, early), trusted("b", now, early)}, "", "a"},
		"restarted a day ago":  {[]passkey.Credential{trusted("a", never, at), trusted("b", now, at)}, "a", "a"},
		"none settled":         {[]passkey.Credential{trusted("a", now, never), trusted("b", now, never)}, "", ""},
		"none in the account":  {nil, "", ""},
	} {
		for need, want := range map[passkey.Need]string{passkey.Resistant: c.resistant, passkey.Changing: c.changing} {
			var got strings.Builder
			for _, one := range passkey.For(need, c.have, now, day) {
				got.WriteString(one.DeviceID)
			}
			if got.String() != want {
				t.Errorf("%s, need %d: %q, want %q", name, need, got.String(), want)
			}
		}
		if got := passkey.For(passkey.Any, c.have, now, day); len(got) != len(c.have) {
			t.Errorf("%s: %d of any", name, len(got))
		}
		if got := passkey.For(passkey.Resistant, c.have, now, 0); len(got) != len(c.have) {
			t.Errorf("%s: %d count without a time to settle", name, len(got))
		}
	}
}

// A new passkey settles, unless it is the first of an account that has just signed up. Approved by another one, it is
// trusted like that, and it never counts before the others do.
func TestTrustOfNewPasskey(t *testing.T) {
	since, restarted := now.Add(-time.Minute), now.Add(-time.Second)
	have := []passkey.Credential{trusted("old", time.Time{}, restarted), trusted("new", since, time.Time{})}
	for name, c := range map[string]struct {
		age       time.Duration
		have      []passkey.Credential
		by        string
		recovered bool
		want      passkey.Trust
	}{
		"first within the hour":    {time.Hour - time.Millisecond, nil, "", false, passkey.Trust{}},
		"first after an hour":      {time.Hour, nil, "", false, passkey.Trust{Since: now}},
		"first by a recovery code": {0, nil, "", true, passkey.Trust{Since: now}},
		"second of a new account":  {0, have[1:], "", false, passkey.Trust{Since: now}},
		"by a settled one":         {day, have, "old", false, passkey.Trust{Restarted: restarted}},
		"by one that settles":      {day, have, "new", false, passkey.Trust{Since: since, Restarted: restarted}},
		"by one that is gone":      {day, have, "gone", false, passkey.Trust{Since: now, Restarted: restarted}},
		"by a recovery code, too":  {day, have, "old", true, passkey.Trust{Since: now, Restarted: restarted}},
	} {
		storetest.Equal(t, passkey.Joining(now, now.Add(-c.age), c.have, c.by, c.recovered), c.want, name)
	}
}

// A passkey that begins to be synchronised or backed up settles again; one that ceases to does not.
func TestFlagsOfBackup(t *testing.T) {
	p, now, before := party(t), time.UnixMilli(2e12), time.UnixMilli(1e12)
	for _, c := range []struct {
		eligible, backedUp bool // before
		set                byte
		changed, again     bool
	}{
		{false, false, 0, false, false},
		{true, true, passkeytest.Eligible | passkeytest.BackedUp, false, false},
		{false, false, passkeytest.Eligible, true, true},
		{false, false, passkeytest.Eligible | passkeytest.BackedUp, true, true},
		{true, false, passkeytest.Eligible | passkeytest.BackedUp, true, true},
		{true, true, passkeytest.Eligible, true, false},
		{true, true, 0, true, false},
	} {
		a, cred := registered(t, p, nil)
		cred.Eligible, cred.BackedUp, cred.Since = c.eligible, c.backedUp, before
		a.Flags = a.Flags&^(passkeytest.Eligible|passkeytest.BackedUp) | c.set
		got, err := p.Parse(a.Get(t, p.Request(first, nil)))
		if err == nil {
			err = got.By(cred)
		}
		w, changed := got.Moves(cred, now)
		want := passkey.Moved{UserID: cred.UserID, DeviceID: cred.DeviceID, Eligible: c.set&passkeytest.Eligible != 0,
			BackedUp: c.set&passkeytest.BackedUp != 0, Since: before}
		if c.again {
			want.Since = now
		}
		if err != nil || changed != c.changed || w != want {
			t.Errorf("%+v: %+v, changed %t, %v", c, w, changed, err)
		}
	}
}

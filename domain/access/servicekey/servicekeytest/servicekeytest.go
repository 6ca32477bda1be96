// Package servicekeytest is the contract of servicekey.Store as a test. The persistence package runs it on both
// databases.
package servicekeytest

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"castellan/domain/access/servicekey"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
)

// Run checks an implementation of servicekey.Store.
func Run(t *testing.T, open storetest.Open[servicekey.Store]) {
	storetest.Run(t, open, storetest.Cases[servicekey.Store]{
		"RoundTrip":  roundTrip,
		"UniqueName": uniqueName,
		"Change":     changes,
		"Remove":     remove,
	})
}

var start = time.UnixMilli(1_700_000_000_123).UTC()

func sample(name string) servicekey.Key {
	return servicekey.Key{Name: name, Role: "wallet", Hash: keyring.Sum{Key: "key-1", Sum: []byte(name + "\x00\xff")},
		CreatedAt: start}
}

func listed(t *testing.T, s servicekey.Store, want ...servicekey.Key) {
	t.Helper()
	got, err := s.List(t.Context())
	if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("listed %+v, %v; want %+v", got, err, want)
	}
}

func roundTrip(t *testing.T, s servicekey.Store, _ commit.Committer) {
	listed(t, s)
	a, b := sample("a"), sample("b")
	a.Networks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::1/128")}
	a.Role, a.Actions, a.Callback = "", []string{"PAYOUT", "API_KEY"}, "https://shop.example/in"
	a.OldHash, a.OldUntil, a.RotatedAt = keyring.Sum{Key: "key-0", Sum: []byte{0}}, start.Add(time.Hour), start
	for _, k := range []servicekey.Key{b, a} {
		storetest.Must(t, s.Add(t.Context(), k))
	}
	listed(t, s, a, b)
}

func uniqueName(t *testing.T, s servicekey.Store, _ commit.Committer) {
	won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(int) error { return s.Add(t.Context(), sample("a")) })
	if won != 1 {
		t.Errorf("%d of 8 were added", won)
	}
	listed(t, s, sample("a"))
}

func changes(t *testing.T, s servicekey.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), sample("a")))
	storetest.Must(t, s.Add(t.Context(), sample("b")))
	next := sample("a")
	next.OldHash, next.OldUntil, next.RotatedAt = next.Hash, start.Add(time.Hour), start
	next.Hash = keyring.Sum{Key: "key-2", Sum: []byte("next")}
	storetest.Must(t, s.Change(t.Context(), "a", func(k servicekey.Key) (servicekey.Key, error) {
		if !reflect.DeepEqual(k, sample("a")) {
			t.Errorf("given %+v", k)
		}
		return next, nil
	}))
	listed(t, s, next, sample("b"))
	refuse := func(k servicekey.Key) (servicekey.Key, error) { return k, fault.New(fault.InvalidState, "no") }
	if err := s.Change(t.Context(), "a", refuse); fault.CodeOf(err) != fault.InvalidState {
		t.Errorf("an error of the function: %v", err)
	}
	if err := s.Change(t.Context(), "c", refuse); fault.CodeOf(err) != fault.RecordNotFound {
		t.Errorf("a key that does not exist: %v", err)
	}
	listed(t, s, next, sample("b"))
}

func remove(t *testing.T, s servicekey.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), sample("a")))
	storetest.Must(t, s.Add(t.Context(), sample("b")))
	won := storetest.Race(t, 8, fault.RecordNotFound, func(int) error { return s.Remove(t.Context(), "a") })
	if won != 1 {
		t.Errorf("removed %d times", won)
	}
	listed(t, s, sample("b"))
	storetest.Must(t, s.Add(t.Context(), sample("a")))
}

package keyringtest

import (
	"bytes"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
)

// Run tests a store against the contract of keyring.Store.
func Run(t *testing.T, open storetest.Open[keyring.Store]) {
	storetest.Run(t, open, storetest.Cases[keyring.Store]{
		"round trip":             roundTrip,
		"taken id or seq":        taken,
		"rotate":                 rotate,
		"rewrap":                 rewrap,
		"one master":             oneMaster,
		"race of first starts":   raceFirst,
		"race of rotations":      raceRotations,
		"race of master and key": raceMaster,
	})
}

var start = time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC)

func record(id string, p keyring.Purpose, seq int64) keyring.Record {
	return keyring.Record{ID: id, Purpose: p, Seq: seq, CreatedAt: start, NotBefore: start.Add(keyring.Notice),
		Wrapped: []byte{0, 1, 0xfe, 0xff, '\'', '?'}, MasterID: "m1"}
}

func keys(t *testing.T, s keyring.Store) []keyring.Record {
	t.Helper()
	rs := storetest.Value(s.Keys(t.Context()))(t)
	return rs
}

func same(t *testing.T, s keyring.Store, want ...keyring.Record) {
	t.Helper()
	got := keys(t, s)
	if len(got) != len(want) {
		t.Fatalf("got %d keys, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		g, w := got[i], want[i]
		equal := g.CreatedAt.Equal(w.CreatedAt) && g.NotBefore.Equal(w.NotBefore) && g.RetiredAt.Equal(w.RetiredAt) &&
			bytes.Equal(g.Wrapped, w.Wrapped)
		g.CreatedAt, g.NotBefore, g.RetiredAt, g.Wrapped = w.CreatedAt, w.NotBefore, w.RetiredAt, w.Wrapped
		if !equal || !reflect.DeepEqual(g, w) {
			t.Fatalf("key %d:\n got %+v\nwant %+v", i, got[i], w)
		}
	}
}

func roundTrip(t *testing.T, s keyring.Store, _ commit.Committer) {
	same(t, s)
	a, b, c := record("a", keyring.Signing, 2), record("b", keyring.Signing, 1), record("c", keyring.Auditing, 1)
	b.RetiredAt = start.Add(time.Hour)
	storetest.Must(t, s.Add(t.Context(), a, b, c))
	same(t, s, c, b, a) // by purpose and seq
}

func taken(t *testing.T, s keyring.Store, _ commit.Committer) {
	a := record("a", keyring.Signing, 1)
	storetest.Must(t, s.Add(t.Context(), a))
	b := record("b", keyring.Sealing, 1)
	storetest.Wants(t, s.Add(t.Context(), b, record("a", keyring.Hashing, 1)), fault.RecordAlreadyExist)
	storetest.Wants(t, s.Add(t.Context(), b, record("c", keyring.Signing, 1)), fault.RecordAlreadyExist)
	same(t, s, a) // all or none
}

func rotate(t *testing.T, s keyring.Store, _ commit.Committer) {
	a, b := record("a", keyring.Signing, 1), record("b", keyring.Signing, 2)
	storetest.Must(t, s.Add(t.Context(), a))
	a.RetiredAt = start.Add(time.Hour)
	storetest.Wants(t, s.Rotate(t.Context(), b, a, record("zz", keyring.Signing, 9)), fault.RecordNotFound)
	storetest.Wants(t, s.Rotate(t.Context(), record("b", keyring.Signing, 1), a), fault.RecordAlreadyExist)
	same(t, s, record("a", keyring.Signing, 1))
	storetest.Must(t, s.Rotate(t.Context(), b, a))
	same(t, s, a, b)
}

func rewrap(t *testing.T, s keyring.Store, _ commit.Committer) {
	a, b := record("a", keyring.Auditing, 1), record("b", keyring.Signing, 1)
	storetest.Must(t, s.Add(t.Context(), a, b))
	next := func(r keyring.Record) keyring.Record {
		r.Wrapped, r.MasterID = []byte("again "+r.ID), "m2"
		return r
	}
	both := []keyring.Record{next(a), next(b)}
	storetest.Wants(t, s.Rewrap(t.Context(), "m1", both[:1]), fault.InvalidState) // not all keys
	storetest.Wants(t, s.Rewrap(t.Context(), "m0", both), fault.InvalidState)     // not their master key
	three := append(both, next(record("c", keyring.Sealing, 1)))
	storetest.Wants(t, s.Rewrap(t.Context(), "m1", three), fault.InvalidState)
	same(t, s, a, b)
	storetest.Must(t, s.Rewrap(t.Context(), "m1", []keyring.Record{next(a), next(b)}))
	same(t, s, next(a), next(b))
}

func oneMaster(t *testing.T, s keyring.Store, _ commit.Committer) {
	a := record("a", keyring.Signing, 1)
	storetest.Must(t, s.Add(t.Context(), a))
	other := record("b", keyring.Signing, 2)
	other.MasterID = "m2"
	storetest.Wants(t, s.Add(t.Context(), other), fault.InvalidState)
	storetest.Wants(t, s.Rotate(t.Context(), other, a), fault.InvalidState)
	same(t, s, a)
}

// raceFirst starts several processes at once on an empty store, without the setup lock: they end with one master key
// and one set of keys.
func raceFirst(t *testing.T, s keyring.Store, _ commit.Committer) {
	file := filepath.Join(t.TempDir(), "keys", "master.key")
	var keepers [8]*keyring.Keeper
	won := storetest.Race(t, len(keepers), "", func(i int) (err error) {
		keepers[i], err = keyring.Open(t.Context(), s, file, true, time.Now)
		return err
	})
	count := map[keyring.Purpose]int{}
	for _, r := range keys(t, s) {
		count[r.Purpose]++
	}
	if !reflect.DeepEqual(count, map[keyring.Purpose]int{keyring.Signing: 1, keyring.Sealing: 1, keyring.Hashing: 1,
		keyring.Auditing: 1}) {
		t.Fatalf("keys by purpose: %v", count)
	}
	if won != len(keepers) {
		t.Fatalf("%d of %d processes have their keys", won, len(keepers))
	}
	sealed := keepers[0].Ring().Seal([]byte("plain"), []byte("row"))
	for i, k := range keepers {
		if plain, err := k.Ring().Open(sealed, []byte("row")); err != nil || string(plain) != "plain" {
			t.Errorf("process %d opens %q, %v", i, plain, err)
		}
	}
}

// raceRotations rotates in several processes at once: exactly one succeeds.
func raceRotations(t *testing.T, s keyring.Store, _ commit.Committer) {
	file := filepath.Join(t.TempDir(), "master.key")
	var keepers [6]*keyring.Keeper
	for i := range keepers {
		keepers[i] = storetest.Value(keyring.Open(t.Context(), s, file, true, time.Now))(t)
	}
	done := storetest.Race(t, len(keepers), fault.InvalidState,
		func(i int) error {
			return storetest.Err(keepers[i].Rotate(t.Context(), keyring.Signing, time.Hour, false))
		})
	live := 0
	for _, r := range keys(t, s) {
		if r.Purpose == keyring.Signing && r.RetiredAt.IsZero() {
			live++
		}
	}
	if n := len(keys(t, s)); done != 1 || n != 5 || live != 1 {
		t.Errorf("%d rotations done, %d keys, %d signing keys not retired; want 1, 5, 1", done, n, live)
	}
}

// raceMaster changes the master key while others make keys: whichever wins, every key can still be opened.
func raceMaster(t *testing.T, s keyring.Store, _ commit.Committer) {
	file := filepath.Join(t.TempDir(), "master.key")
	var keepers [6]*keyring.Keeper
	for i := range keepers {
		keepers[i] = storetest.Value(keyring.Open(t.Context(), s, file, true, time.Now))(t)
	}
	var made atomic.Int64
	storetest.Race(t, len(keepers), fault.InvalidState, func(i int) error {
		if i == 0 {
			_, err := keepers[i].RotateMaster(t.Context())
			return err
		}
		_, err := keepers[i].Rotate(t.Context(), keyring.Sealing, 0, false)
		if err == nil {
			made.Add(1)
		}
		return err
	})
	storetest.Equal(t, len(keys(t, s)), 4+int(made.Load()), made.Load())
	_, err := keyring.Open(t.Context(), s, file, false, time.Now)
	storetest.Must(t, err)
}

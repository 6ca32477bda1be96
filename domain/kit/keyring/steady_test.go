package keyring_test

import (
	"crypto/ecdsa"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

func replace(t *testing.T, k *keyring.Keeper, p keyring.Purpose) keyring.Rotation {
	t.Helper()
	done := storetest.Value(k.Replace(t.Context(), p, keyring.HashGrace))(t)
	reload(t, k)
	return done
}

// A long-lived identifier does not change with one or two rotations. When its key is replaced as leaked it changes
// once, at once, and is found under both keys until the old one ends. Nothing verifies with the old key afterwards.
func TestReplaceHashing(t *testing.T) {
	c, s, file := newClock(), &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key")
	k := c.open(t, s, file)
	r := k.Ring()
	steady, vapid := r.StableHash("d", "x"), r.VAPIDs()[0]
	var codes []keyring.Sum
	for range 3 {
		codes = append(codes, r.Hash("otp", "1"))
		storetest.Value(k.Rotate(t.Context(), keyring.Hashing, life, false))(t)
		reload(t, k)
		c.add(keyring.Notice)
		if r.StableHash("d", "x") != steady || r.Former("d", "x") != nil || !slices.EqualFunc(r.VAPIDs(),
			[]*ecdsa.PrivateKey{vapid}, func(a, b *ecdsa.PrivateKey) bool { return a.Equal(b) }) {
			t.Fatal("a rotation moved what is steady")
		}
	}
	done := replace(t, k, keyring.Hashing)
	if len(done.Ended) != 4 || !done.From.Equal(c.Now().Add(keyring.Notice)) ||
		!done.Until.Equal(done.From.Add(keyring.HashGrace)) {
		t.Errorf("%+v", done)
	}
	c.add(keyring.Notice - time.Millisecond)
	storetest.Equal(t, r.StableHash("d", "x"), steady, "the new key comes before its time")
	coming := r.Former("d", "x")
	c.add(time.Millisecond)
	fresh := r.StableHash("d", "x")
	if fresh == steady || !slices.Contains(coming, fresh) || !slices.Contains(r.Former("d", "x"), steady) {
		t.Error("the two are not known beside each other, on both sides of the change")
	}
	if v := r.VAPIDs(); len(v) != 2 || v[0].Equal(vapid) || !v[1].Equal(vapid) {
		t.Error("the key of Web Push")
	}
	matches := func() (n int) {
		for _, code := range codes {
			if r.Matches(code, "otp", "1") {
				n++
			}
		}
		return n
	}
	c.add(keyring.HashGrace - time.Millisecond)
	if matches() != 3 || len(r.StableHashes("d", "x")) != 2 || len(r.Hashes("d", "x")) != 5 {
		t.Errorf("before the end: %d codes match, %d and %d sums", matches(), len(r.StableHashes("d", "x")),
			len(r.Hashes("d", "x")))
	}
	c.add(time.Millisecond)
	if matches() != 0 || r.Former("d", "x") != nil || len(r.Hashes("d", "x")) != 1 || r.StableHash("d", "x") != fresh ||
		len(r.VAPIDs()) != 1 {
		t.Error("an ended key goes on")
	}
	for _, code := range codes {
		if _, ok := r.HashWith(code.Key, "otp", "1"); ok {
			t.Error("an ended key hashes")
		}
	}
	if again := c.open(t, s, file).Ring(); again.StableHash("d", "x") != fresh {
		t.Error("another process has another steady key")
	}
}

// If a successor leaks too before its predecessor has ended, the newest key takes over, and all earlier identifiers
// stay findable for their time.
func TestReplaceTwice(t *testing.T) {
	c := newClock()
	k := c.open(t, &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key"))
	r := k.Ring()
	first := r.StableHash("d")
	replace(t, k, keyring.Hashing)
	c.add(time.Hour)
	second := r.StableHash("d")
	done := replace(t, k, keyring.Hashing)
	storetest.Equal(t, len(done.Ended), 1, done)
	storetest.Equal(t, r.StableHash("d"), second, done)
	c.add(keyring.Notice)
	third := r.StableHash("d")
	if former := r.Former("d"); third == second || len(former) != 2 || !slices.Contains(former, first) ||
		!slices.Contains(former, second) {
		t.Errorf("former %v", former)
	}
	c.add(keyring.HashGrace - time.Hour)
	if former := r.Former("d"); !slices.Equal(former, []string{second}) || r.StableHash("d") != third {
		t.Errorf("former %v", former)
	}
}

func TestReplaceSigning(t *testing.T) {
	c := newClock()
	k := c.open(t, &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key"))
	first, _ := k.Ring().Signer(c.Now())
	one := storetest.Value(k.Rotate(t.Context(), keyring.Signing, life, false))(t)
	reload(t, k)
	c.add(keyring.Notice)
	done := replace(t, k, keyring.Signing)
	if !slices.Contains(done.Ended, first) || !slices.Contains(done.Ended, one.ID) {
		t.Errorf("%+v", done)
	}
	state(t, c, k.Ring(), one.ID, done.ID, one.ID, first)
	c.add(keyring.Notice)
	state(t, c, k.Ring(), done.ID, done.ID)
	for _, kid := range []string{first, one.ID} {
		if _, ok := k.Ring().Verifier(kid); ok {
			t.Errorf("%s verifies", kid)
		}
	}
}

func TestReplaceRefuses(t *testing.T) {
	k := keyringtest.Keeper(t, nil)
	for _, p := range []keyring.Purpose{keyring.Sealing, keyring.Auditing, "master"} {
		storetest.Wants(t, storetest.Err(k.Replace(t.Context(), p, keyring.HashGrace)), fault.InvalidField, p)
	}
	storetest.Wants(t, storetest.Err(k.Replace(t.Context(), keyring.Hashing, keyring.HashGrace-1)), fault.InvalidField)
}

// An operator reads what each key does.
func TestServes(t *testing.T) {
	c := newClock()
	k := c.open(t, &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key"))
	old := k.Ring().Hash("d").Key
	done := replace(t, k, keyring.Hashing)
	for _, want := range []struct{ old, fresh string }{
		{"hashes codes; steady", "published, not in use yet"},
		{"replaced; counts and verifies older values", "hashes codes; steady"},
		{"expired", "hashes codes; steady"},
	} {
		got := k.Ring().Serves(c.Now())
		if got[old] != want.old || got[done.ID] != want.fresh || len(got) != 5 {
			t.Errorf("%v, want %v", got, fmt.Sprint(want))
		}
		c.add(keyring.Notice)
		if got[old] != "hashes codes; steady" {
			c.add(keyring.HashGrace)
		}
	}
}

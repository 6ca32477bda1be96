package keyring_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

func TestMemory(t *testing.T) {
	keyringtest.Run(t, func(*testing.T) (keyring.Store, commit.Committer) { return &keyringtest.Memory{}, nil })
}

func TestSeal(t *testing.T) {
	r := keyringtest.Ring(t, nil)
	plain, ad := []byte("a secret"), []byte("row/1")
	sealed := r.Seal(plain, ad)
	if got, err := r.Open(sealed, ad); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("opened %q, %v", got, err)
	}
	if bytes.Contains(sealed, plain) || bytes.Equal(sealed, r.Seal(plain, ad)) {
		t.Error("a sealed value shows its content or repeats")
	}
	storetest.Equal(t, r.Stale(sealed), false, "a fresh value is stale")
	storetest.Is(t, storetest.Err(r.Open(sealed, []byte("row/2"))), keyring.ErrOpen, "with the data of another row")
	for n := range sealed {
		storetest.Is(t, storetest.Err(r.Open(sealed[:n], ad)), keyring.ErrOpen, n)
		for bit := range 8 {
			bad := bytes.Clone(sealed)
			bad[n] ^= 1 << bit
			storetest.Is(t, storetest.Err(r.Open(bad, ad)), keyring.ErrOpen, n, bit)
		}
	}
	// A key serves one purpose: the id of the signing key cannot open a value.
	kid, _ := r.Signer(time.Now())
	storetest.Is(t, storetest.Err(r.Open(append([]byte(kid), sealed[keyring.IDLen:]...), ad)), keyring.ErrOpen)
	storetest.Equal(t, len(storetest.Value(r.Open(r.Seal(nil, nil), nil))(t)), 0, "the empty value")
}

func TestHash(t *testing.T) {
	r := keyringtest.Ring(t, nil)
	a := r.Hash("otp", "challenge", "method", "123456")
	if !r.Matches(a, "otp", "challenge", "method", "123456") {
		t.Error("a hash does not match what it was made of")
	}
	// Equal bytes split, ordered or scoped differently are different values.
	for _, other := range [][]string{
		{"otp", "challenge", "method", "123457"}, {"otp", "challenge", "method123456"},
		{"otp", "challengemethod", "", "123456"},
		{"otp", "challenge", "method", "123456", ""}, {"otpchallenge", "method", "123456"},
		{"ot", "pchallenge", "method", "123456"},
		{"otp", "method", "challenge", "123456"}, {"otp"}, {""},
	} {
		storetest.Equal(t, r.Matches(a, other[0], other[1:]...), false, other, "has the hash of another")
	}
	if r.Matches(keyring.Sum{Key: a.Key, Sum: a.Sum[:31]}, "otp", "challenge", "method", "123456") ||
		r.Matches(keyring.Sum{}, "otp") {
		t.Error("a cut or an empty hash matches")
	}
	if _, ok := r.HashWith("../../etc/passwd", "otp"); ok {
		t.Error("a hash under a key that does not exist")
	}
	if r2 := keyringtest.Ring(t, nil); bytes.Equal(r2.Hash("otp", "1").Sum, r.Hash("otp", "1").Sum) {
		t.Error("two services hash alike")
	}
	long := strings.Repeat("x", 1<<16)
	if b := r.Hash("d", long); !r.Matches(b, "d", long) || r.Matches(b, "d", long[1:]) {
		t.Error("a long value")
	}
}

// The hash states of a key are shared: the input of one caller must never reach another.
func TestConcurrentUse(t *testing.T) {
	k := keyringtest.Keeper(t, nil)
	r := k.Ring()
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			part := strings.Repeat(string(rune('a'+i)), i*7)
			first := r.Hash("d", part)
			for n := range 200 {
				if !r.Matches(first, "d", part) {
					t.Error("a hash changed")
					return
				}
				if plain, err := r.Open(r.Seal([]byte(part), nil), nil); err != nil || string(plain) != part {
					t.Errorf("opened %q, %v", plain, err)
					return
				}
				kid, private := r.Signer(time.Now())
				if public, ok := r.Verifier(kid); !ok || !public.Equal(private.Public()) {
					t.Error("the signer's public key is another")
				}
				if n%50 == 0 {
					storetest.Is(t, k.Reload(t.Context()), nil)
				}
				r.JWKS()
			}
		})
	}
	done.Wait()
}

func TestJWKS(t *testing.T) {
	r := keyringtest.Ring(t, nil)
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(r.JWKS(), &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("%s: %v", r.JWKS(), err)
	}
	kid, private := r.Signer(time.Now())
	got := set.Keys[0]
	if got["kty"] != "OKP" || got["crv"] != "Ed25519" || got["alg"] != "EdDSA" || got["use"] != "sig" ||
		got["kid"] != kid || len(got) != 6 {
		t.Errorf("key %v", got)
	}
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + got["x"] + `"}`)) // RFC 7638
	if all := r.Thumbprints(); len(all) != 1 || !bytes.Equal(rawURL(t, all[kid]), sum[:]) {
		t.Errorf("thumbprints %v", all)
	}
	storetest.Equal(t, string(rawURL(t, got["x"])), string(private.Public().(ed25519.PublicKey)), "x")
}

func TestUnknownKeyRereadsOnceASecond(t *testing.T) {
	c := newClock()
	s := &keyringtest.Memory{}
	k := c.open(t, s, t.TempDir()+"/master.key")
	reads := func(do func()) int {
		before := s.Reads()
		do()
		return s.Reads() - before
	}
	r := k.Ring()
	unknown := strings.Repeat("a", keyring.IDLen)
	ask := func() {
		if _, ok := r.Verifier(unknown); ok {
			t.Error("a key for an unknown id")
		}
		if _, ok := r.HashWith(unknown, "d"); ok {
			t.Error("a hash for an unknown id")
		}
		storetest.Is(t, storetest.Err(r.Open([]byte(unknown+strings.Repeat("x", 40)), nil)), keyring.ErrOpen)
	}
	storetest.Equal(t, reads(ask), 1)
	c.add(999 * time.Millisecond)
	storetest.Equal(t, reads(ask), 0)
	c.add(time.Millisecond)
	storetest.Equal(t, reads(ask), 1)
	c.add(time.Minute)
	for _, id := range []string{"", "short", strings.Repeat("A", keyring.IDLen), "../../master.key",
		strings.Repeat("a", keyring.IDLen+1), "aaaaaaaaaaaaaaa\x00"} {
		storetest.Equal(t, reads(func() { r.Verifier(id) }), 0, id)
	}
	// An error of the store is returned if the method can return one.
	s.Fail(errors.New("store is down"))
	if _, err := r.Open([]byte(unknown+strings.Repeat("x", 40)), nil); !errors.Is(err, keyring.ErrOpen) ||
		!strings.Contains(err.Error(), "store is down") {
		t.Error(err)
	}
	storetest.Value(r.Open(r.Seal(nil, nil), nil))(t)
}

// A new key of another node is found before its note arrives.
func TestUnknownKeyIsFound(t *testing.T) {
	c := newClock()
	s, file := &keyringtest.Memory{}, t.TempDir()+"/master.key"
	a, b := c.open(t, s, file), c.open(t, s, file)
	old := a.Ring().Seal([]byte("plain"), nil)
	storetest.Value(a.Rotate(t.Context(), keyring.Sealing, 0, false))(t)
	reload(t, a)
	sealed := a.Ring().Seal([]byte("plain"), nil)
	if bytes.Equal(sealed[:keyring.IDLen], old[:keyring.IDLen]) || !a.Ring().Stale(old) || a.Ring().Stale(sealed) {
		t.Fatal("the new key does not seal")
	}
	for _, v := range [][]byte{sealed, old} {
		storetest.Equal(t, string(storetest.Value(b.Ring().Open(v, nil))(t)), "plain")
	}
}

func TestHashesUnderEveryKey(t *testing.T) {
	c := newClock()
	k := c.open(t, &keyringtest.Memory{}, t.TempDir()+"/master.key")
	r := k.Ring()
	old := r.Hash("d", "v")
	done := storetest.Value(k.Rotate(t.Context(), keyring.Hashing, 0, false))(t)
	reload(t, k)
	c.add(keyring.Notice - time.Millisecond)
	storetest.Equal(t, r.Hash("d", "v").Key, old.Key, "a hashing key is used before every node knows it")
	c.add(time.Millisecond)
	now := r.Hash("d", "v")
	if now.Key != done.ID || bytes.Equal(now.Sum, old.Sum) {
		t.Error("the new hashing key is not used after its notice")
	}
	sums := r.Hashes("d", "v")
	if !slices.EqualFunc(sums, []keyring.Sum{now, old}, func(a, b keyring.Sum) bool {
		return a.Key == b.Key && bytes.Equal(a.Sum, b.Sum)
	}) {
		t.Errorf("sums %v", sums)
	}
	c.add(10 * 365 * 24 * time.Hour)
	storetest.Equal(t, r.Matches(old, "d", "v"), true, "an old hash no longer matches")
}

// Subscriptions are bound to the key: every node has the same key, before and after other nodes rotate, and no other
// deployment has it.
func TestVAPIDOutlivesRotation(t *testing.T) {
	store, file := &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key")
	open := func() *keyring.Keeper {
		k := storetest.Value(keyring.Open(t.Context(), store, file, true, time.Now))(t)
		return k
	}
	k := open()
	first := k.Ring().VAPIDs()[0]
	for range 2 {
		storetest.Value(k.Rotate(t.Context(), keyring.Hashing, time.Hour, false))(t)
	}
	storetest.Must(t, k.Reload(t.Context()))
	if !k.Ring().VAPIDs()[0].Equal(first) || !open().Ring().VAPIDs()[0].Equal(first) {
		t.Error("the key changed with a rotation")
	}
	storetest.Equal(t, keyringtest.Ring(t, nil).VAPIDs()[0].Equal(first), false, "two deployments have one key")
}

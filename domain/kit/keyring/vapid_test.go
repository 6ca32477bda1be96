package keyring_test

import (
	"path/filepath"
	"testing"
	"time"

	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

// Subscriptions are bound to the key: every node has the same key, before and after other nodes rotate, and no other
// deployment has it.
func TestVAPIDOutlivesRotation(t *testing.T) {
	store, file := &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key")
	open := func() *keyring.Keeper {
		k, err := keyring.Open(t.Context(), store, file, true, time.Now)
		storetest.Must(t, err)
		return k
	}
	k := open()
	first := k.Ring().VAPIDs()[0]
	for range 2 {
		if _, err := k.Rotate(t.Context(), keyring.Hashing, time.Hour, false); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Must(t, k.Reload(t.Context()))
	if !k.Ring().VAPIDs()[0].Equal(first) || !open().Ring().VAPIDs()[0].Equal(first) {
		t.Error("the key changed with a rotation")
	}
	if keyringtest.Ring(t, nil).VAPIDs()[0].Equal(first) {
		t.Error("two deployments have one key")
	}
}

package keyring_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

const life = 30 * time.Minute

// fixedStore reads given rows and lets tests observe or fail the writes.
type fixedStore struct {
	keyringtest.Memory
	records []keyring.Record
	read    func()       // runs once, after the next Keys
	before  func() error // of Rewrap
	after   func() error
}

func (s *fixedStore) Keys(ctx context.Context) ([]keyring.Record, error) {
	if s.records != nil {
		return s.records, nil
	}
	rs, err := s.Memory.Keys(ctx)
	if then := s.read; then != nil {
		s.read = nil
		then()
	}
	return rs, err
}

func (s *fixedStore) Rewrap(ctx context.Context, from string, rs []keyring.Record) error {
	if s.before != nil {
		if err := s.before(); err != nil {
			return err
		}
	}
	err := s.Memory.Rewrap(ctx, from, rs)
	if err == nil && s.after != nil {
		err = s.after()
	}
	return err
}

func published(t *testing.T, r *keyring.Ring) (kids []string) {
	t.Helper()
	var set struct{ Keys []struct{ Kid string } }
	storetest.Must(t, json.Unmarshal(r.JWKS(), &set))
	for _, k := range set.Keys {
		kids = append(kids, k.Kid)
	}
	return kids
}

// state checks the signing keys of a ring at the time of its clock.
func state(t *testing.T, c *clock, r *keyring.Ring, signs string, verify ...string) {
	t.Helper()
	if kid, private := r.Signer(c.Now()); kid != signs {
		t.Errorf("%s signs, want %s", kid, signs)
	} else if public, ok := r.Verifier(kid); !ok || !public.Equal(private.Public()) {
		t.Errorf("what %s signs does not verify", kid)
	}
	storetest.Same(t, published(t, r), verify)
	for _, kid := range verify {
		if _, ok := r.Verifier(kid); !ok {
			t.Errorf("%s does not verify", kid)
		}
	}
}

func TestRotateSigning(t *testing.T) {
	c, s, file := newClock(), &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key")
	k, other := c.open(t, s, file), c.open(t, s, file)
	first, _ := k.Ring().Signer(c.Now())
	start := c.Now()
	done := storetest.Value(k.Rotate(t.Context(), keyring.Signing, life, false))(t)
	second := done.ID
	if done.Retiring != first || !done.From.Equal(start.Add(keyring.Notice)) || !done.Until.Equal(done.From.Add(life)) ||
		done.Ended != nil {
		t.Errorf("rotation %+v", done)
	}
	reload(t, k, other)
	for _, r := range []*keyring.Ring{k.Ring(), other.Ring()} {
		state(t, c, r, first, second, first) // published at once
	}
	c.add(keyring.Notice - time.Millisecond)
	state(t, c, k.Ring(), first, second, first)
	c.add(time.Millisecond)
	state(t, c, k.Ring(), second, second, first)

	refused := func() {
		t.Helper()
		storetest.Wants(t, storetest.Err(other.Rotate(t.Context(), keyring.Signing, life, false)), fault.InvalidState)
	}
	refused()
	c.add(life - time.Millisecond)
	refused()
	state(t, c, k.Ring(), second, second, first)
	c.add(time.Millisecond) // the last token of the first key has ended
	state(t, c, k.Ring(), second, second)
	if _, ok := k.Ring().Verifier(first); ok {
		t.Error("an ended key verifies")
	}
	storetest.Value(other.Rotate(t.Context(), keyring.Signing, life, false))(t)
}

func TestRotateSigningByForce(t *testing.T) {
	c := newClock()
	k := c.open(t, &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key"))
	first, _ := k.Ring().Signer(c.Now())
	rotate := func() keyring.Rotation {
		t.Helper()
		done := storetest.Value(k.Rotate(t.Context(), keyring.Signing, life, true))(t)
		reload(t, k)
		return done
	}
	one := rotate() // nothing to force yet: same as without force
	if one.Ended != nil {
		t.Errorf("ended %v", one.Ended)
	}
	state(t, c, k.Ring(), first, one.ID, first)
	// A second time before the new key has come into use: it must sign early, since the only other key has ended.
	c.add(time.Second)
	two := rotate()
	storetest.Same(t, two.Ended, []string{first}, two)
	storetest.Equal(t, two.Retiring, one.ID, two)
	state(t, c, k.Ring(), one.ID, two.ID, one.ID)
	if _, ok := k.Ring().Verifier(first); ok {
		t.Error("the ended key verifies")
	}
	c.add(keyring.Notice)
	state(t, c, k.Ring(), two.ID, two.ID, one.ID)
	c.add(life)
	state(t, c, k.Ring(), two.ID, two.ID)
}

// A node whose clock is behind signs with a key that the others know.
func TestSignerOfASlowClock(t *testing.T) {
	c := newClock()
	r := c.open(t, &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key")).Ring()
	now, _ := r.Signer(c.Now())
	if early, _ := r.Signer(c.Now().Add(-time.Hour)); early != now {
		t.Errorf("%s signs, want %s", early, now)
	}
}

func TestRotateSealing(t *testing.T) {
	c := newClock()
	k := c.open(t, &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key"))
	for range 3 { // nothing blocks the next rotation
		done := storetest.Value(k.Rotate(t.Context(), keyring.Sealing, life, false))(t)
		if !done.From.Equal(c.Now()) || done.Retiring != "" || !done.Until.IsZero() {
			t.Errorf("rotation %+v", done)
		}
		reload(t, k)
		if sealed := k.Ring().Seal(nil, nil); string(sealed[:keyring.IDLen]) != done.ID {
			t.Error("the new key does not seal at once")
		}
	}
}

func TestRotateRefusesOthers(t *testing.T) {
	k := keyringtest.Keeper(t, nil)
	for _, p := range []keyring.Purpose{keyring.Auditing, "", "master"} {
		storetest.Wants(t, storetest.Err(k.Rotate(t.Context(), p, life, true)), fault.InvalidField, p)
	}
}

func TestRotateMaster(t *testing.T) {
	c, s, file := newClock(), &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key")
	k, other := c.open(t, s, file), c.open(t, s, file)
	sealed, sum := k.Ring().Seal([]byte("x"), nil), k.Ring().Hash("d", "v")
	before := records(t, s)
	id := storetest.Value(k.RotateMaster(t.Context()))(t)
	after := records(t, s)
	for i, r := range after {
		if r.MasterID != id || r.ID != before[i].ID || string(r.Wrapped) == string(before[i].Wrapped) {
			t.Errorf("row %+v", r)
		}
	}
	if m, err := keyring.ReadMaster(file); err != nil || m.ID() != id || mode(t, file) != 0o600 {
		t.Errorf("master %v, %v", m, err)
	}
	storetest.Equal(t, storetest.Value(keyring.ReadMaster(file+"."+before[0].MasterID))(t).ID(), before[0].MasterID)
	storetest.Is(t, storetest.Err(os.Stat(file+".new")), os.ErrNotExist, "a prepared key stayed")
	reload(t, k, other)
	for _, k := range []*keyring.Keeper{k, other, c.open(t, s, file)} {
		if _, err := k.Ring().Open(sealed, nil); err != nil || !k.Ring().Matches(sum, "d", "v") {
			t.Errorf("after the rotation: %v", err)
		}
		storetest.Value(k.Rotate(t.Context(), keyring.Sealing, 0, false))(t)
	}
	reload(t, k, other)
	if _, err := other.RotateMaster(t.Context()); err != nil { // and once more
		t.Fatal(err)
	}
	c.open(t, s, file)
}

// A node without the new file continues to work until a new key needs the file.
func TestNodeWithoutTheNewMaster(t *testing.T) {
	c, s, dir := newClock(), &keyringtest.Memory{}, t.TempDir()
	file, remote := filepath.Join(dir, "a", "master.key"), filepath.Join(dir, "b", "master.key")
	k := c.open(t, s, file)
	copyFile(t, file, remote)
	node := c.open(t, s, remote)
	storetest.Value(k.RotateMaster(t.Context()))(t)
	reload(t, node)
	storetest.Value(k.Rotate(t.Context(), keyring.Sealing, 0, false))(t)
	sealed := node.Ring().Seal(nil, nil)
	storetest.Fails(t, node.Reload(t.Context()), "", "a key opened without its master key")
	storetest.Value(node.Ring().Open(sealed, nil))(t)
	copyFile(t, file, remote+".new")
	storetest.Must(t, os.Chmod(remote+".new", 0o644))
	storetest.Fails(t, node.Reload(t.Context()), "chmod 600", "with an open prepared file")
	storetest.Must(t, os.Chmod(remote+".new", 0o600))
	reload(t, node)
	storetest.Equal(t, storetest.Value(keyring.ReadMaster(remote))(t).ID(), records(t, s)[0].MasterID)
}

// A copy of the current key in the file of a prepared rotation is deleted; otherwise the next rotation would use it.
func TestLeftoverOfARotation(t *testing.T) {
	c, s, file := newClock(), &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key")
	k := c.open(t, s, file)
	before := records(t, s)[0].MasterID
	copyFile(t, file, file+".new")
	c.open(t, s, file)
	storetest.Equal(t, len(storetest.Value(os.ReadDir(filepath.Dir(file)))(t)), 1)
	copyFile(t, file, file+".new")
	if id, err := k.RotateMaster(t.Context()); err != nil || id == before {
		t.Errorf("master %s, %v", id, err)
	}
}

// The rows and the file are read one after the other: a rotation between the two reads is not a wrong master key.
func TestMasterRotatedMeanwhile(t *testing.T) {
	c, s, file := newClock(), &fixedStore{}, filepath.Join(t.TempDir(), "master.key")
	k, other := c.open(t, s, file), c.open(t, s, file)
	meanwhile := func() {
		storetest.Value(other.RotateMaster(t.Context()))(t)
	}
	s.read = meanwhile
	c.open(t, s, file)
	s.read = meanwhile
	storetest.Value(k.Rotate(t.Context(), keyring.Sealing, 0, false))(t)
	s.read = meanwhile
	reload(t, k)
	s.read = meanwhile
	storetest.Value(k.RotateMaster(t.Context()))(t)
}

// Wherever a rotation of the master key is interrupted, the next start works.
func TestRotateMasterCutShort(t *testing.T) {
	crash := errors.New("power is gone")
	for name, test := range map[string]struct {
		store   *fixedStore
		rotated bool
	}{
		"before the rows": {&fixedStore{before: func() error { return crash }}, false},
		"after the rows":  {&fixedStore{after: func() error { return crash }}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, s, file := newClock(), test.store, filepath.Join(t.TempDir(), "master.key")
			k := c.open(t, s, file)
			old := records(t, s)[0].MasterID
			sealed := k.Ring().Seal([]byte("x"), nil)
			storetest.Is(t, storetest.Err(k.RotateMaster(t.Context())), crash)
			prepared := storetest.Value(keyring.ReadMaster(file + ".new"))(t)
			again := c.open(t, s, file)
			storetest.Value(again.Ring().Open(sealed, nil))(t)
			want := old
			if test.rotated {
				want = prepared.ID()
			}
			storetest.Equal(t, storetest.Value(keyring.ReadMaster(file))(t).ID(), want)
			s.before, s.after = nil, nil
			id := storetest.Value(again.RotateMaster(t.Context()))(t)
			if !test.rotated && id != prepared.ID() {
				t.Error("the prepared key was not taken")
			}
			c.open(t, s, file)
		})
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text := storetest.Value(os.ReadFile(from))(t)
	storetest.Must(t, os.MkdirAll(filepath.Dir(to), 0o700))
	storetest.Must(t, os.WriteFile(to, text, 0o600))
}

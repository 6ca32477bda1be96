// Package devicetest is the contract of device.Store as a test. The persistence package runs it on both databases.
// Other tests use Signer to create devices.
package devicetest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/access/device"
	"castellan/domain/access/user"
	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// Signer creates a private key for an algorithm, and its public part.
func Signer(t testing.TB, alg string) (crypto.Signer, device.Key) {
	t.Helper()
	var k crypto.Signer
	var err error
	if alg == device.ES256 {
		k, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		_, k, err = ed25519.GenerateKey(rand.Reader)
	}
	public, ok := device.PublicKey(k)
	if err != nil || !ok {
		t.Fatal(alg, err)
	}
	return k, public
}

// Stores holds an empty store and the account store beside it.
type Stores struct {
	device.Store
	Users user.Store
}

type stores struct {
	Stores
	commit.Committer
}

// Run checks an implementation of device.Store, the writes of the package and user.SetPush.
func Run(t *testing.T, open storetest.Open[Stores]) {
	with := func(t *testing.T) (stores, commit.Committer) {
		s, c := open(t)
		storetest.Must(t, c.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2)))
		return stores{s, c}, c
	}
	storetest.Run(t, with, storetest.Cases[stores]{
		"AddAndRead":    addAndRead,
		"MuteOneTarget": muteOneTarget,
		"OneKeyOnce":    oneKeyOnce,
		"AddUnderRace":  addUnderRace,
		"UseIsFenced":   useIsFenced,
		"SeenOnce":      seenOnce,
		"SeenUnderRace": seenUnderRace,
	})
}

func userID(n int) string { return usertest.Sample(n).ID }

func sample(t *testing.T, n int, id, alg string) device.Device {
	_, k := Signer(t, alg)
	return device.Device{ID: id, UserID: userID(n), Key: k, Brand: "Brand ?", Model: "Módel 'x'",
		Description: "d" + id, Platform: "android",
		Target: []byte("sealed " + id), Status: device.Active, CreatedAt: usertest.Now}
}

func addAndRead(t *testing.T, s stores, _ commit.Committer) {
	ctx := t.Context()
	a, b, c := sample(t, 1, "d1", device.ES256), sample(t, 1, "d2", device.EdDSA), sample(t, 2, "d3", device.ES256)
	b.CreatedAt, b.Target = b.CreatedAt.Add(time.Second), nil
	b.LastUsedAt = b.CreatedAt.Add(time.Minute)
	if _, err := s.Get(ctx, "d1"); fault.CodeOf(err) != fault.RecordNotFound {
		t.Errorf("before: %v", err)
	}
	storetest.Must(t, s.Commit(ctx, user.SetPush{UserID: userID(1), CV: 1, Owned: true}, device.Add{Device: a},
		device.Add{Device: b}, device.Add{Device: c}))
	if got, err := s.List(ctx, userID(1)); err != nil || !reflect.DeepEqual(got, []device.Device{b, a}) {
		t.Errorf("listed %+v, %v", got, err)
	}
	if got, err := s.Get(ctx, "d3"); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v", got, err)
	}
	for n, owned := range map[int]bool{1: true, 2: false} {
		u, err := s.Users.Get(ctx, userID(n))
		if err != nil || u.Push != owned || u.Account().Push != owned || (u.CV == 2) != owned {
			t.Errorf("user %d: %+v, %v", n, u, err)
		}
	}
	storetest.Must(t, s.Commit(ctx, device.Remove{UserID: userID(2), ID: "d1"})) // another's
	storetest.Must(t, s.Commit(ctx, device.Remove{UserID: userID(1), ID: "d2"}))
	if got, err := s.List(ctx, userID(1)); err != nil || len(got) != 1 || got[0].ID != "d1" {
		t.Errorf("after the removals: %+v, %v", got, err)
	}
}

func muteOneTarget(t *testing.T, s stores, _ commit.Committer) {
	ctx := t.Context()
	a, b := sample(t, 1, "d1", device.ES256), sample(t, 1, "d2", device.EdDSA)
	storetest.Must(t, s.Commit(ctx, device.Add{Device: a}, device.Add{Device: b}))
	storetest.Must(t, s.Commit(ctx, device.Mute{ID: "d1", Target: append([]byte("another"), a.Target...)},
		device.Mute{ID: "nobody", Target: a.Target}))
	if got, err := s.Get(ctx, "d1"); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("muted at another target: %+v, %v", got, err)
	}
	storetest.Must(t, s.Commit(ctx, device.Mute{ID: "d1", Target: a.Target}))
	storetest.Must(t, s.Commit(ctx, device.Mute{ID: "d1", Target: a.Target}))
	quiet := a
	quiet.Target = nil
	for id, want := range map[string]device.Device{"d1": quiet, "d2": b} {
		if got, err := s.Get(ctx, id); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}

func oneKeyOnce(t *testing.T, s stores, _ commit.Committer) {
	ctx := t.Context()
	d := sample(t, 1, "d1", device.EdDSA)
	storetest.Must(t, s.Commit(ctx, device.Add{Device: d}))
	d.ID = "d2"
	if err := s.Commit(ctx, device.Add{Device: d}); fault.CodeOf(err) != fault.RecordAlreadyExist {
		t.Errorf("one key twice: %v", err)
	}
	d.UserID = userID(2) // two accounts on one phone
	storetest.Must(t, s.Commit(ctx, device.Add{Device: d}))
}

// race runs 20 callers, half of them in transactions of their own, and counts those whose unit committed; the others
// must be fenced out.
func race(t *testing.T, s stores, unit func(i int) []commit.Write) int64 {
	t.Helper()
	var wg sync.WaitGroup
	var made atomic.Int64
	for i := range 20 {
		wg.Go(func() {
			write := func(ctx context.Context) error { return s.Commit(ctx, unit(i)...) }
			err := error(nil)
			if i%2 == 0 {
				err = write(t.Context())
			} else {
				err = s.InTx(t.Context(), write)
			}
			if err == nil {
				made.Add(1)
			} else if !errors.Is(err, commit.ErrFenced) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return made.Load()
}

func addUnderRace(t *testing.T, s stores, _ commit.Committer) {
	devices := make([]device.Device, 20)
	for i := range devices {
		devices[i] = sample(t, 1, fmt.Sprint("d", i), device.EdDSA)
	}
	made := race(t, s, func(i int) []commit.Write {
		return []commit.Write{user.SetPush{UserID: userID(1), CV: 1, Owned: true}, device.Add{Device: devices[i]}}
	})
	if got, err := s.List(t.Context(), userID(1)); made != 1 || err != nil || len(got) != 1 {
		t.Errorf("%d made, %d listed, %v", made, len(got), err)
	}
}

func useIsFenced(t *testing.T, s stores, _ commit.Committer) {
	ctx, at := t.Context(), usertest.Now.Add(time.Hour)
	d, off := sample(t, 1, "d1", device.ES256), sample(t, 1, "d2", device.ES256)
	off.Status = "BLOCKED"
	storetest.Must(t, s.Commit(ctx, device.Add{Device: d}, device.Add{Device: off}))
	storetest.Must(t, s.Commit(ctx, device.Use{UserID: userID(1), ID: "d1", At: at}))
	storetest.Must(t, s.Commit(ctx, device.Use{UserID: userID(1), ID: "d1", At: at})) // repeated use is not fenced
	if got, err := s.Get(ctx, "d1"); err != nil || !got.LastUsedAt.Equal(at) {
		t.Errorf("%+v, %v", got, err)
	}
	storetest.Must(t, s.Commit(ctx, device.Remove{UserID: userID(1), ID: "d1"}))
	for _, w := range []device.Use{{UserID: userID(1), ID: "d1", At: at}, {UserID: userID(2), ID: "d2", At: at},
		{UserID: userID(1), ID: "d2", At: at}} {
		if err := s.Commit(ctx, w); !errors.Is(err, commit.ErrFenced) {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

func seenOnce(t *testing.T, s stores, _ commit.Committer) {
	ctx, now := t.Context(), usertest.Now
	see := func(id string, at time.Time) error {
		return s.Commit(ctx, device.See{ID: id, At: at, Until: at.Add(10 * time.Minute)})
	}
	for _, c := range []struct {
		id    string
		after time.Duration
		new   bool
	}{
		{"a", 0, true}, {"a", 0, false}, {"b", 0, true}, {"a", 10*time.Minute - time.Millisecond, false},
		{"a", 10 * time.Minute, true}, {"a", 10*time.Minute + 1, false},
	} {
		if err := see(c.id, now.Add(c.after)); c.new && err != nil || !c.new && !errors.Is(err, commit.ErrFenced) {
			t.Errorf("%s after %v: %v", c.id, c.after, err)
		}
	}
	storetest.Must(t, s.Purge(ctx, now.Add(10*time.Minute))) // b, not a
	if err := see("a", now.Add(11*time.Minute)); !errors.Is(err, commit.ErrFenced) {
		t.Errorf("a was purged: %v", err)
	}
	storetest.Must(t, see("b", now))
}

func seenUnderRace(t *testing.T, s stores, _ commit.Committer) {
	for _, id := range []string{"a", "b"} {
		if made := race(t, s, func(int) []commit.Write {
			return []commit.Write{device.See{ID: id, At: usertest.Now, Until: usertest.Now.Add(time.Minute)}}
		}); made != 1 {
			t.Errorf("%s was seen for the first time %d times", id, made)
		}
	}
}

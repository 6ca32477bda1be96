package proof_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

func TestDeviceStore(t *testing.T) {
	persistencetest.RunBoth(t, func(t *testing.T, open storetest.Open[deviceStores]) {
		storetest.Run(t, usertest.WithTwo(open), storetest.Cases[deviceStores]{
			"AddAndRead":   deviceAddAndRead,
			"OneKeyOnce":   deviceOneKeyOnce,
			"AddUnderRace": deviceAddUnderRace,
			"UseIsFenced":  deviceUseIsFenced,
			"SeenOnce":     proofSeenOnce,
		})
	}, func(db *persistence.DB) deviceStores {
		return deviceStores{proof.NewDevices(db), account.NewUsers(db), db}
	}, "users", "device", "device_proof")
}

// A device whose key cannot be read is an error.
func TestDamagedDevice(t *testing.T) {
	db, ctx := persistencetest.SQLite(t), t.Context()
	_, key := devicetest.Signer(t, device.ES256)
	storetest.Must(t, db.Commit(ctx, device.Add{Device: device.Device{ID: "d1", UserID: "u1", Key: key,
		Status: device.Active, CreatedAt: usertest.Now}}))
	storetest.Must(t, storetest.Err(proof.NewDevices(db).Get(ctx, "d1")))
	persistencetest.Exec(t, db, "UPDATE device SET public_key = 'x'")
	storetest.Wants(t, storetest.Err(proof.NewDevices(db).Get(ctx, "d1")), fault.Internal)
}

// deviceStores are devices with their accounts.
type deviceStores struct {
	device.Store
	Users user.Store
	commit.Committer
}

func sampleDevice(t *testing.T, n int, id, alg string) device.Device {
	_, k := devicetest.Signer(t, alg)
	return device.Device{ID: id, UserID: userID(n), Key: k, Brand: "Brand ?", Model: "Módel 'x'",
		Description: "d" + id, Platform: "android",
		Target: []byte("sealed " + id), Status: device.Active, CreatedAt: usertest.Now}
}

func deviceAddAndRead(t *testing.T, s deviceStores, _ commit.Committer) {
	ctx := t.Context()
	a, b := sampleDevice(t, 1, "d1", device.ES256), sampleDevice(t, 1, "d2", device.EdDSA)
	c := sampleDevice(t, 2, "d3", device.ES256)
	b = persistencetest.Whole(t, func(d *device.Device) { d.ID, d.UserID, d.Key = b.ID, b.UserID, b.Key })
	a.Target = nil
	storetest.Wants(t, storetest.Err(s.Get(ctx, "d1")), fault.RecordNotFound, "before")
	storetest.Must(t, s.Commit(ctx, user.SetPush{UserID: userID(1), CV: 1, Owned: true}, device.Add{Device: a},
		device.Add{Device: b}, device.Add{Device: c}))
	storetest.Same(t, storetest.Value(s.List(ctx, userID(1)))(t), []device.Device{b, a})
	storetest.Same(t, storetest.Value(s.Get(ctx, "d3"))(t), c)
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

func deviceOneKeyOnce(t *testing.T, s deviceStores, _ commit.Committer) {
	ctx := t.Context()
	d := sampleDevice(t, 1, "d1", device.EdDSA)
	storetest.Must(t, s.Commit(ctx, device.Add{Device: d}))
	d.ID = "d2"
	storetest.Wants(t, s.Commit(ctx, device.Add{Device: d}), fault.RecordAlreadyExist, "one key twice")
	d.UserID = userID(2) // two accounts on one phone
	storetest.Must(t, s.Commit(ctx, device.Add{Device: d}))
}

func deviceAddUnderRace(t *testing.T, s deviceStores, _ commit.Committer) {
	devices := make([]device.Device, 20)
	for i := range devices {
		devices[i] = sampleDevice(t, 1, fmt.Sprint("d", i), device.EdDSA)
	}
	race(t, s, func(i int) []commit.Write {
		return []commit.Write{user.SetPush{UserID: userID(1), CV: 1, Owned: true}, device.Add{Device: devices[i]}}
	})
	storetest.Equal(t, len(storetest.Value(s.List(t.Context(), userID(1)))(t)), 1)
}

func deviceUseIsFenced(t *testing.T, s deviceStores, _ commit.Committer) {
	ctx, at := t.Context(), usertest.Now.Add(time.Hour)
	d, off := sampleDevice(t, 1, "d1", device.ES256), sampleDevice(t, 1, "d2", device.ES256)
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
		storetest.Is(t, s.Commit(ctx, w), commit.ErrFenced, w)
	}
}

func proofSeenOnce(t *testing.T, s deviceStores, _ commit.Committer) {
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
	storetest.Is(t, see("a", now.Add(11*time.Minute)), commit.ErrFenced, "a was purged")
	storetest.Must(t, see("b", now))
}

package keyring_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

// guarded is a store whose operations may fail: reads after some, and additions.
type guarded struct {
	keyringtest.Memory
	reads int // that succeed; negative: all
	add   error
	none  bool // an addition reports success and adds nothing
}

var errDown = fault.New(fault.Unavailable, "down")

func (s *guarded) Keys(ctx context.Context) ([]keyring.Record, error) {
	if s.reads == 0 {
		return nil, errDown
	}
	s.reads--
	return s.Memory.Keys(ctx)
}

func (s *guarded) Add(ctx context.Context, records ...keyring.Record) error {
	if s.add != nil || s.none {
		return s.add
	}
	return s.Memory.Add(ctx, records...)
}

// A start reports every failure of the store. The loser of the race to make the keys goes on with those of the winner.
func TestStartWithoutStore(t *testing.T) {
	for name, c := range map[string]struct {
		store *guarded
		want  fault.Code
		says  string
	}{
		"first read":  {&guarded{}, fault.Unavailable, "open keys: "},
		"second read": {&guarded{reads: 1}, fault.Unavailable, "open keys: "},
		"addition":    {&guarded{reads: -1, add: errDown}, fault.Unavailable, "open keys: "},
		"other addition": {&guarded{reads: -1, add: fault.New(fault.RecordNotFound, "x")}, fault.RecordNotFound,
			"open keys: "},
		"no keys": {&guarded{reads: -1, none: true}, fault.Internal, "open keys: the store has no keys"},
		"lost race": {&guarded{reads: -1, add: fault.New(fault.RecordAlreadyExist, "x")}, fault.Internal,
			"open keys: the store has no keys"},
		"other master": {&guarded{reads: -1, add: fault.New(fault.InvalidState, "x")}, fault.Internal,
			"open keys: the store has no keys"},
	} {
		k, err := keyring.Open(t.Context(), c.store, filepath.Join(t.TempDir(), "master.key"), true, newClock().Now)
		if k != nil || fault.CodeOf(err) != c.want || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, whole := newClock(), &keyringtest.Memory{}
	file := filepath.Join(t.TempDir(), "master.key")
	c.open(t, whole, file)
	raced := &fixedStore{Memory: keyringtest.Memory{}}
	raced.read = func() { // another process makes the keys after the first read
		storetest.Must(t, raced.Add(t.Context(), records(t, whole)...))
	}
	if k, err := keyring.Open(t.Context(), raced, file, false, c.Now); err != nil || len(records(t, raced)) != 4 ||
		string(k.Ring().Audit()) != string(c.open(t, whole, file).Ring().Audit()) {
		t.Errorf("%v, %d keys", err, len(records(t, raced)))
	}
}

// Rotations report a store that cannot be read or written, and keep the keys.
func TestRotationsWithoutStore(t *testing.T) {
	c, s := newClock(), &guarded{reads: -1}
	file := filepath.Join(t.TempDir(), "master.key")
	k := c.open(t, s, file)
	before := records(t, s)
	s.Fail(errDown) // of changes and reads
	for name, rotate := range map[string]func() error{
		"rotate":  func() error { return storetest.Err(k.Rotate(t.Context(), keyring.Signing, life, false)) },
		"replace": func() error { return storetest.Err(k.Replace(t.Context(), keyring.Signing, 0)) },
		"master":  func() error { return storetest.Err(k.RotateMaster(t.Context())) },
	} {
		if err := rotate(); fault.CodeOf(err) != fault.Unavailable || !strings.HasPrefix(err.Error(), "rotate ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Fail(nil)
	storetest.Is(t, storetest.Err(os.Stat(file+".new")), os.ErrNotExist, "a prepared key")
	if after := records(t, s); len(after) != len(before) || after[0].MasterID != before[0].MasterID {
		t.Errorf("%+v", after)
	}
	// A prepared file that cannot be read stops a rotation of the master key.
	storetest.Must(t, os.WriteFile(file+".new", []byte("x"), 0o600))
	if id, err := k.RotateMaster(t.Context()); err == nil || id != "" || !strings.HasPrefix(err.Error(),
		"rotate master key: ") {
		t.Errorf("%s, %v", id, err)
	}
}

// The rotation of the master key reports a file that does not take its place. The keys are wrapped by it already.
func TestMasterStaysPrepared(t *testing.T) {
	c, s, file := newClock(), &fixedStore{}, filepath.Join(t.TempDir(), "master.key")
	k := c.open(t, s, file)
	s.after = func() error { return os.WriteFile(file, []byte("x"), 0o600) } // damaged meanwhile
	id, err := k.RotateMaster(t.Context())
	if err == nil || !strings.Contains(err.Error(), "master key "+id+" is in use but still in "+file+".new: move it to "+
		file) {
		t.Fatalf("%s, %v", id, err)
	}
	storetest.Equal(t, string(storetest.Value(os.ReadFile(file))(t)), "x", "the damaged file was replaced")
	storetest.Equal(t, records(t, s)[0].MasterID, id)
	// A start finds the prepared file, and later the one that was moved by hand.
	c.open(t, s, file)
	storetest.Must(t, os.Rename(file+".new", file))
	c.open(t, s, file)
}

// A file that cannot be read is named, with the key that needs it.
func TestUnreadableMaster(t *testing.T) {
	c, s, dir := newClock(), &keyringtest.Memory{}, t.TempDir()
	file := filepath.Join(dir, "master.key")
	c.open(t, s, file)
	first := records(t, s)[0]
	storetest.Must(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err := keyring.Open(t.Context(), s, file, true, c.Now)
	needs := "key " + first.ID + " (" + string(first.Purpose) + ") is wrapped by master key " + first.MasterID + ": "
	if err == nil || !strings.Contains(err.Error(), needs) || !strings.Contains(err.Error(), "not a master key") {
		t.Errorf("%v, want %s", err, needs)
	}
	if _, err := keyring.ReadMaster(dir); err == nil || !strings.HasSuffix(err.Error(), dir+" is not a file") {
		t.Errorf("a folder: %v", err)
	}
	for name, in := range map[string]string{"below a file": filepath.Join(file, "master.key"),
		"below a file, deeper": filepath.Join(file, "a", "master.key")} {
		if _, err := keyring.CreateMaster(in); err == nil || !strings.HasPrefix(err.Error(), "create master key: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	storetest.Equal(t, len(storetest.Value(os.ReadDir(dir))(t)), 1)
}

// The notice of a new key is 10 seconds. A hashing key that was replaced stays for at least 25 hours.
func TestTimesOfKeys(t *testing.T) {
	c := newClock()
	k := c.open(t, &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key"))
	done, err := k.Rotate(t.Context(), keyring.Signing, time.Minute, false)
	if err != nil || done.From.Sub(c.Now()) != 10*time.Second || done.Until.Sub(c.Now()) != 70*time.Second {
		t.Errorf("%+v, %v", done, err)
	}
	const wantGrace = 25 * time.Hour
	storetest.Wants(t, storetest.Err(k.Replace(t.Context(), keyring.Hashing, wantGrace-1)), fault.InvalidField)
	done, err = k.Replace(t.Context(), keyring.Hashing, wantGrace)
	if err != nil || done.From.Sub(c.Now()) != 10*time.Second || done.Until.Sub(c.Now()) != wantGrace+10*time.Second ||
		len(done.Ended) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	for _, p := range []keyring.Purpose{keyring.Sealing, keyring.Auditing} {
		storetest.Wants(t, storetest.Err(k.Replace(t.Context(), p, wantGrace)), fault.InvalidField, p)
	}
}

// Each key is described by what it does: of two signing keys one signs, of two sealing keys one seals. The steady
// hashing key stays when a newer one makes the hashes of codes.
func TestServesOfRotatedKeys(t *testing.T) {
	c := newClock()
	k := c.open(t, &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key"))
	rotated := map[keyring.Purpose][]string{}
	for _, r := range k.Ring().Serves(c.Now()) {
		if r == "" {
			t.Error("a key without a description")
		}
	}
	first, _ := k.Ring().Signer(c.Now())
	sealed := string(k.Ring().Seal(nil, nil)[:keyring.IDLen])
	hasher := k.Ring().Hash("d").Key
	for _, p := range []keyring.Purpose{keyring.Signing, keyring.Sealing, keyring.Hashing, keyring.Hashing} {
		done := storetest.Value(k.Rotate(t.Context(), p, life, false))(t)
		rotated[p] = append(rotated[p], done.ID)
	}
	reload(t, k)
	wants := func(when string, all map[string]string) {
		t.Helper()
		got := k.Ring().Serves(c.Now())
		for id, want := range all {
			storetest.Equal(t, got[id], want, when)
		}
		storetest.Equal(t, len(got), 8, when)
	}
	const waits = "published, not in use yet"
	hashing := rotated[keyring.Hashing]
	wants("at once", map[string]string{first: "signs", rotated[keyring.Signing][0]: waits,
		sealed: "opens", rotated[keyring.Sealing][0]: "seals", hasher: "hashes codes; steady", hashing[0]: waits,
		hashing[1]: waits})
	c.add(keyring.Notice)
	wants("in use", map[string]string{first: "verifies", rotated[keyring.Signing][0]: "signs",
		sealed: "opens", rotated[keyring.Sealing][0]: "seals", hasher: "verifies; steady", hashing[0]: "verifies",
		hashing[1]: "hashes codes"})
	c.add(life)
	wants("later", map[string]string{first: "expired", rotated[keyring.Signing][0]: "signs", hasher: "verifies; steady"})
}

// A clock behind the creation of every hashing key still has a stable hash, which others find.
func TestStableHashOfASlowClock(t *testing.T) {
	c := newClock()
	k := c.open(t, &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key"))
	now := k.Ring().StableHash("d", "x")
	c.add(-time.Hour)
	if early := k.Ring().StableHash("d", "x"); early != now || now == "" {
		t.Errorf("%s, want %s", early, now)
	}
}

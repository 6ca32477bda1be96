package keyring_test

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

// clock is a time that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) open(t *testing.T, s keyring.Store, file string) *keyring.Keeper {
	t.Helper()
	k := storetest.Value(keyring.Open(t.Context(), s, file, true, c.Now))(t)
	return k
}

func reload(t *testing.T, ks ...*keyring.Keeper) {
	t.Helper()
	for _, k := range ks {
		storetest.Must(t, k.Reload(t.Context()))
	}
}

func rawURL(t *testing.T, s string) []byte {
	t.Helper()
	b := storetest.Value(base64.RawURLEncoding.Strict().DecodeString(s))(t)
	return b
}

func records(t *testing.T, s keyring.Store) []keyring.Record {
	t.Helper()
	rs := storetest.Value(s.Keys(t.Context()))(t)
	return rs
}

func mode(t *testing.T, file string) fs.FileMode {
	t.Helper()
	info := storetest.Value(os.Stat(file))(t)
	return info.Mode().Perm()
}

func TestFirstStart(t *testing.T) {
	dir := t.TempDir()
	s, file := &keyringtest.Memory{}, filepath.Join(dir, "data", "master.key")
	if _, err := keyring.Open(t.Context(), s, file, false, time.Now); err == nil ||
		!strings.Contains(err.Error(), "openssl rand -base64 32") || !strings.Contains(err.Error(), file) {
		t.Fatalf("without a master key and without leave to make one: %v", err)
	}
	if rs := records(t, s); len(rs) != 0 {
		t.Fatalf("a refused start made keys: %v", rs)
	}
	a := storetest.Value(keyring.Open(t.Context(), s, file, true, time.Now))(t)
	storetest.Equal(t, mode(t, file), 0o600)
	if names, _ := os.ReadDir(filepath.Dir(file)); len(names) != 1 {
		t.Errorf("files left behind: %v", names)
	}
	rs := records(t, s)
	if len(rs) != 4 {
		t.Fatalf("%d keys", len(rs))
	}
	text := storetest.Value(os.ReadFile(file))(t)
	words := strings.Fields(string(text))
	if len(words) != 3 || words[0] != "castellan-master-key" || words[1] != rs[0].MasterID ||
		strings.Count(string(text), "\n") != 1 {
		t.Error("the file is not the one line that an operator can recognise")
	}
	// A second time, with nothing to make.
	b := storetest.Value(keyring.Open(t.Context(), s, file, false, time.Now))(t)
	storetest.Equal(t, string(a.Ring().Audit()), string(b.Ring().Audit()), "a second start made other keys")
	storetest.Equal(t, len(records(t, s)), 4, "a second start made other keys")
}

// In production an operator provides the file before the first start.
func TestMasterMadeByHand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "master.key")
	storetest.Must(t, os.WriteFile(file, []byte("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"), 0o600))
	s := &keyringtest.Memory{}
	storetest.Value(keyring.Open(t.Context(), s, file, false, time.Now))(t)
	storetest.Equal(t, storetest.Value(keyring.ReadMaster(file))(t).ID(), records(t, s)[0].MasterID)
}

func TestWrongMaster(t *testing.T) {
	c, s, dir := newClock(), &keyringtest.Memory{}, t.TempDir()
	file, other := filepath.Join(dir, "master.key"), filepath.Join(dir, "other.key")
	c.open(t, s, file)
	storetest.Value(keyring.CreateMaster(other))(t)
	id := records(t, s)[0].ID
	for name, test := range map[string]struct{ file, says string }{
		"missing": {filepath.Join(dir, "none.key"), "is missing: restore it"},
		"wrong":   {other, "restore the right one"},
	} {
		before := records(t, s)
		for _, mayCreate := range []bool{true, false} {
			_, err := keyring.Open(t.Context(), s, test.file, mayCreate, c.Now)
			if err == nil || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
		storetest.Equal(t, len(records(t, s)), len(before), name)
	}
	storetest.Fails(t, storetest.Err(os.Stat(filepath.Join(dir, "none.key"))), "")
}

func TestMasterFile(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.key")
	m := storetest.Value(keyring.CreateMaster(good))(t)
	text := storetest.Value(os.ReadFile(good))(t)
	secret := strings.Fields(string(text))[2]
	storetest.Fails(t, storetest.Err(keyring.CreateMaster(good)), "", "a master key was made over another")
	storetest.Equal(t, string(storetest.Value(os.ReadFile(good))(t)), string(text), "the file changed")
	for name, bad := range map[string]string{
		"empty":       "",
		"cut":         string(text[:len(text)-5]),
		"other id":    strings.Replace(string(text), m.ID(), strings.Repeat("a", len(m.ID())), 1),
		"other label": strings.Replace(string(text), "castellan", "someone", 1),
		"two lines":   string(text) + string(text),
		"short":       "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5\n",
		"not base64":  "castellan-master-key x " + strings.Repeat("!", 44),
		"swapped":     strings.Replace(string(text), secret, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", 1),
	} {
		file := filepath.Join(dir, "bad.key")
		storetest.Must(t, os.WriteFile(file, []byte(bad), 0o600))
		_, err := keyring.ReadMaster(file)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), secret[:8]) || strings.Contains(err.Error(), "MDEyMzQ1") {
			t.Errorf("%s: the error shows the key", name)
		}
	}
	for _, open := range []fs.FileMode{0o640, 0o604, 0o660, 0o601} {
		storetest.Must(t, os.Chmod(good, open))
		storetest.Fails(t, storetest.Err(keyring.ReadMaster(good)), "chmod 600", open)
	}
	storetest.Must(t, os.Chmod(good, 0o400))
	storetest.Value(keyring.ReadMaster(good))(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		storetest.Equal(t, fmt.Sprintf(verb, m), "master key "+m.ID(), verb)
	}
}

// An attacker with write access to the database cannot move or change a key.
func TestChangedRow(t *testing.T) {
	c := newClock()
	for name, change := range map[string]func(rs []keyring.Record){
		"secret":         func(rs []keyring.Record) { rs[0].Wrapped[20] ^= 1 },
		"cut":            func(rs []keyring.Record) { rs[0].Wrapped = rs[0].Wrapped[:10] },
		"swapped":        func(rs []keyring.Record) { rs[0].Wrapped, rs[1].Wrapped = rs[1].Wrapped, rs[0].Wrapped },
		"other purpose":  func(rs []keyring.Record) { rs[0].Purpose, rs[1].Purpose = rs[1].Purpose, rs[0].Purpose },
		"two masters":    func(rs []keyring.Record) { rs[1].MasterID = "other" },
		"purpose absent": func(rs []keyring.Record) { rs[1] = rs[0]; rs[1].Seq = 2 },
	} {
		good, file := &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key")
		c.open(t, good, file)
		rs := records(t, good)
		change(rs)
		storetest.Fails(t, storetest.Err(keyring.Open(t.Context(), fixed(rs), file, true, c.Now)), "", name)
	}
}

// fixed is a store with given rows.
func fixed(rs []keyring.Record) keyring.Store { return &fixedStore{records: rs} }

func TestReloadKeepsTheRingOnErrors(t *testing.T) {
	c, s := newClock(), &keyringtest.Memory{}
	k := c.open(t, s, filepath.Join(t.TempDir(), "master.key"))
	sealed := k.Ring().Seal([]byte("x"), nil)
	s.Fail(fault.New(fault.Unavailable, "down"))
	storetest.Wants(t, k.Reload(t.Context()), fault.Unavailable, "reload")
	storetest.Value(k.Ring().Open(sealed, nil))(t)
	storetest.Wants(t, storetest.Err(k.Rotate(t.Context(), keyring.Signing, time.Hour, false)), fault.Unavailable)
}

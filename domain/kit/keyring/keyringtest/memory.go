// Package keyringtest provides the test suite of keyring.Store, a store in memory, and rings for tests of packages that
// use keys.
//
// Start reading at Run.
package keyringtest

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
)

// Memory is a keyring.Store without a database. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	records []keyring.Record
	reads   int
	err     error
}

var _ keyring.Store = (*Memory)(nil)

// Fail makes every call return err; Fail(nil) ends that.
func (s *Memory) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Reads returns how often Keys was called.
func (s *Memory) Reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *Memory) Keys(context.Context) ([]keyring.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return clone(s.records), s.err
}

func (s *Memory) Add(_ context.Context, records ...keyring.Record) error {
	return s.change(func(all []keyring.Record) ([]keyring.Record, error) { return add(all, records) })
}

func (s *Memory) Rotate(_ context.Context, next keyring.Record, retired ...keyring.Record) error {
	return s.change(func(all []keyring.Record) ([]keyring.Record, error) {
		for _, r := range retired {
			i := index(all, r.ID)
			if i < 0 {
				return nil, fault.New(fault.RecordNotFound, "no such key")
			}
			all[i].RetiredAt = r.RetiredAt
		}
		return add(all, []keyring.Record{next})
	})
}

func (s *Memory) Rewrap(_ context.Context, from string, records []keyring.Record) error {
	return s.change(func(all []keyring.Record) ([]keyring.Record, error) {
		for _, r := range records {
			i := index(all, r.ID)
			if i < 0 || all[i].MasterID != from {
				return nil, fault.New(fault.InvalidState, "the keys have changed")
			}
			all[i].Wrapped, all[i].MasterID = r.Wrapped, r.MasterID
		}
		return all, nil
	})
}

func (s *Memory) change(next func([]keyring.Record) ([]keyring.Record, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	all, err := next(clone(s.records))
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.MasterID != all[0].MasterID {
			return fault.New(fault.InvalidState, "the keys are wrapped by another master key")
		}
	}
	slices.SortFunc(all, func(a, b keyring.Record) int {
		return cmp.Or(cmp.Compare(a.Purpose, b.Purpose), cmp.Compare(a.Seq, b.Seq))
	})
	s.records = clone(all)
	return nil
}

func add(all, records []keyring.Record) ([]keyring.Record, error) {
	for _, r := range records {
		if slices.ContainsFunc(all, func(o keyring.Record) bool {
			return o.ID == r.ID || o.Purpose == r.Purpose && o.Seq == r.Seq
		}) {
			return nil, fault.New(fault.RecordAlreadyExist, "the key exists already")
		}
		all = append(all, r)
	}
	return all, nil
}

func index(all []keyring.Record, id string) int {
	return slices.IndexFunc(all, func(r keyring.Record) bool { return r.ID == id })
}

func clone(rs []keyring.Record) []keyring.Record {
	out := slices.Clone(rs)
	for i := range out {
		out[i].Wrapped = slices.Clone(out[i].Wrapped)
	}
	return out
}

// Keeper returns a keeper of fresh keys in memory with the given clock; nil means time.Now.
func Keeper(t testing.TB, now func() time.Time) *keyring.Keeper {
	t.Helper()
	if now == nil {
		now = time.Now
	}
	k, err := keyring.Open(t.Context(), &Memory{}, filepath.Join(t.TempDir(), "master.key"), true, now)
	storetest.Must(t, err)
	return k
}

// Replace replaces the hashing keys by a new one (keyring.Replace).
func Replace(t testing.TB, k *keyring.Keeper) keyring.Rotation {
	t.Helper()
	done, err := k.Replace(t.Context(), keyring.Hashing, keyring.HashGrace)
	if err == nil {
		err = k.Reload(t.Context())
	}
	storetest.Must(t, err)
	return done
}

// Ring returns a ring of fresh keys with the given clock; nil means time.Now.
func Ring(t testing.TB, now func() time.Time) *keyring.Ring {
	t.Helper()
	return Keeper(t, now).Ring()
}

// Package cronkeytest is the contract of cronkey.Store as a test. The persistence package runs it on both databases.
package cronkeytest

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/access/cronkey"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
)

// Run checks an empty store and its committer.
func Run(t *testing.T, open storetest.Open[cronkey.Store]) {
	s, c := open(t)
	ctx := t.Context()
	key := func(name string) cronkey.Key {
		return cronkey.Key{Name: name, Hash: keyring.Sum{Key: "key-1", Sum: []byte(name + "\x00\xff")},
			CreatedAt: time.UnixMilli(1_700_000_000_123).UTC()}
	}
	listed := func(want ...cronkey.Key) {
		t.Helper()
		got, err := s.Keys(ctx)
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("listed %+v, %v; want %+v", got, err, want)
		}
	}
	listed()
	for _, name := range []string{"b", "a"} {
		if err := c.Commit(ctx, cronkey.Add{Key: key(name)}); err != nil {
			t.Fatal(err)
		}
	}
	listed(key("a"), key("b"))
	if err := c.Commit(ctx, cronkey.Add{Key: key("a")}); fault.CodeOf(err) != fault.RecordAlreadyExist {
		t.Errorf("the name again: %v", err)
	}
	if err := c.Commit(ctx, cronkey.Remove{Name: "a"}, cronkey.Remove{Name: "nobody"}); !errors.Is(err, commit.ErrFenced) {
		t.Errorf("removing one that is not there: %v", err)
	}
	listed(key("a"), key("b"))

	var removed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch err := c.Commit(ctx, cronkey.Remove{Name: "a"}); {
			case err == nil:
				removed.Add(1)
			case !errors.Is(err, commit.ErrFenced):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if removed.Load() != 1 {
		t.Errorf("removed %d times", removed.Load())
	}
	listed(key("b"))
	if err := c.Commit(ctx, cronkey.Add{Key: key("a")}); err != nil {
		t.Errorf("adding it again: %v", err)
	}
}

package change

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// ReadTime bounds one reading of a snapshot's rows: several statements, each of
// which may take 30 s while the service starts.
const ReadTime = time.Minute

// Snapshot is what a node keeps in memory of rows that any node may change. It
// is immutable and replaced whole: reading it takes no lock. Readings of the rows
// take turns, so that an earlier one never replaces a later one, and callers that
// wait share the next reading, so that a burst of changes costs few. It is safe
// for concurrent use.
type Snapshot[T any] struct {
	current  atomic.Pointer[T]
	readings turns[reading]
}

// reading is what callers want to be read: all rows, or those under keys.
type reading struct {
	all  bool
	keys []string
}

// NewSnapshot returns a snapshot that is first until it is read. load reads all
// rows. apply reads the rows under keys, each of which is there once, and returns
// the snapshot with them, or present where they change nothing; where it is nil,
// load does. Neither changes what it is given.
func NewSnapshot[T any](first *T, load func(context.Context) (*T, error),
	apply func(ctx context.Context, present *T, keys []string) (*T, error)) *Snapshot[T] {
	s := new(Snapshot[T])
	s.current.Store(first)
	s.readings.limit = ReadTime
	s.readings.work = func(ctx context.Context, want reading) (err error) {
		next := s.current.Load()
		if want.all || apply == nil {
			next, err = load(ctx)
		} else {
			slices.Sort(want.keys)
			next, err = apply(ctx, next, slices.Compact(want.keys))
		}
		if err == nil {
			s.current.Store(next)
		}
		return err
	}
	return s
}

// Current is the present snapshot. It must not be changed.
func (s *Snapshot[T]) Current() *T { return s.current.Load() }

// Reload reads all rows. What was committed before the call is in the snapshot
// when it returns nil; on an error the snapshot stays as it is. ctx bounds the
// waiting and not the reading, which joins no transaction of the caller.
func (s *Snapshot[T]) Reload(ctx context.Context) error {
	return s.readings.do(ctx, func(r *reading) { r.all = true })
}

// Follow reads what changed under keys, with the promise of Reload for these. A
// key "", of a note that does not say what changed, stands for all rows.
func (s *Snapshot[T]) Follow(ctx context.Context, keys ...string) error {
	return s.readings.do(ctx, func(r *reading) {
		r.keys = append(r.keys, keys...)
		r.all = r.all || slices.Contains(keys, "")
	})
}

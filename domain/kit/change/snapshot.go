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

// Snapshot is a node's copy in memory of rows that any node may change. It is immutable and replaced as a whole:
// reading it takes no lock. The rows are read by one call at a time, so that an earlier read never replaces a later
// one. Waiting callers share the next read, so that a burst of changes costs few reads. It is safe for concurrent use.
type Snapshot[T any] struct {
	current  atomic.Pointer[T]
	readings turns[reading]
}

// reading holds the requested rows: all, or those under keys.
type reading struct {
	all  bool
	keys []string
}

// NewSnapshot returns a snapshot with the value first until it is read. load reads all rows. apply reads the rows under
// keys, which contain no duplicates, and returns the updated snapshot, or present if they change nothing. If apply is
// nil, load is used. Neither function modifies its arguments.
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

// Current returns the present snapshot, which must not be modified.
func (s *Snapshot[T]) Current() *T { return s.current.Load() }

// Reload reads all rows. When it returns nil, the snapshot holds everything committed before the call; on an error the
// snapshot is unchanged. ctx limits the wait and not the read, which joins no transaction of the caller.
func (s *Snapshot[T]) Reload(ctx context.Context) error {
	return s.readings.do(ctx, func(r *reading) { r.all = true })
}

// Follow reads the rows under keys, with the guarantee of Reload for these rows. A key "", of a note that names no key,
// means all rows.
func (s *Snapshot[T]) Follow(ctx context.Context, keys ...string) error {
	return s.readings.do(ctx, func(r *reading) {
		r.keys = append(r.keys, keys...)
		r.all = r.all || slices.Contains(keys, "")
	})
}

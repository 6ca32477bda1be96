package change

import (
	"context"
	"sync"
	"sync/atomic"
)

// Snapshot is what a node keeps in memory of rows that any node may change. It
// is immutable and replaced whole: reading it takes no lock. Updates take turns,
// so that what was read earlier never replaces what was read later. It is safe
// for concurrent use.
type Snapshot[T any] struct {
	updating sync.Mutex
	current  atomic.Pointer[T]
}

// NewSnapshot returns a snapshot that is first until it is updated.
func NewSnapshot[T any](first *T) *Snapshot[T] {
	s := new(Snapshot[T])
	s.current.Store(first)
	return s
}

// Current is the present snapshot. It must not be changed.
func (s *Snapshot[T]) Current() *T { return s.current.Load() }

// Update replaces the snapshot by what read makes of the rows; read gets the
// present one and may return it. When it fails the snapshot stays as it is.
func (s *Snapshot[T]) Update(ctx context.Context, read func(ctx context.Context, present *T) (*T, error)) error {
	s.updating.Lock()
	defer s.updating.Unlock()
	next, err := read(ctx, s.current.Load())
	if err == nil {
		s.current.Store(next)
	}
	return err
}

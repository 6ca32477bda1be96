package change_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"castellan/domain/change"
)

func TestSnapshot(t *testing.T) {
	first := 1
	s := change.NewSnapshot(&first)
	refusal := errors.New("the rows cannot be read")
	err := s.Update(t.Context(), func(_ context.Context, present *int) (*int, error) {
		if present != &first {
			t.Error("not what is present")
		}
		return nil, refusal
	})
	if !errors.Is(err, refusal) || s.Current() != &first {
		t.Errorf("after a failure %v, %v", s.Current(), err)
	}

	// Each update sees the one before it, however many come at once.
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := s.Update(t.Context(), func(_ context.Context, present *int) (*int, error) {
				next := *present + 1
				return &next, nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := *s.Current(); got != 51 || first != 1 {
		t.Errorf("%d after 50 updates of %d", got, first)
	}
}

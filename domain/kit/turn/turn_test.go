package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"castellan/domain/kit/storetest"
)

// A key has one holder at a time; another key is free.
func TestTurnsOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		leave := storetest.Value(turns.Take(t.Context(), "a"))(t)
		other := storetest.Value(turns.Take(t.Context(), "b"))(t)
		other()
		held := false
		go func() {
			second, err := turns.Take(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			held = true
			second()
		}()
		synctest.Wait()
		if held {
			t.Fatal("two callers hold the turn")
		}
		leave()
		synctest.Wait()
		if !held || len(turns.keys) != 0 {
			t.Errorf("held: %t, %d keys are remembered", held, len(turns.keys))
		}
	})
}

// A caller that gives up leaves the line; the holder keeps the turn.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		leave := storetest.Value(turns.Take(t.Context(), "a"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if next, err := turns.Take(ctx, "a"); !errors.Is(err, context.Canceled) || next != nil {
			t.Errorf("%v", err)
		}
		if len(turns.keys) != 1 || turns.keys["a"].callers != 1 {
			t.Errorf("%d keys are remembered", len(turns.keys))
		}
		leave()
		storetest.Equal(t, len(turns.keys), 0)
	})
}

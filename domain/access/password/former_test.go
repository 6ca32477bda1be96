package password

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

var errDown = errors.New("the database is down")

// without is a store that cannot read the guard of one key.
type without struct {
	*rows
	key string
}

func (w without) Guard(ctx context.Context, key string) (Guard, error) {
	if key == w.key {
		return Guard{}, errDown
	}
	return w.rows.Guard(ctx, key)
}

// A guard that cannot be read admits no try: neither that of the account nor one of its former keys, whose tries count.
func TestGuardCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, key := range []string{"u", "former"} {
			g, r := keeper()
			g.store = without{r, key}
			if a, err := g.Charge(t.Context(), "u", "p", "former"); !errors.Is(err, errDown) || a != nil {
				t.Errorf("%s: %v, %v", key, a, err)
			}
			if len(r.guards) != 0 || len(g.accounts) != 0 {
				t.Errorf("%s: stored %+v, %d accounts are remembered", key, r.guards, len(g.accounts))
			}
			g.store = r
			if _, err := g.Charge(t.Context(), "u", "p", "former"); err != nil {
				t.Errorf("%s, after the failure: %v", key, err)
			}
		}
	})
}

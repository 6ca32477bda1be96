package usertest

import (
	"fmt"
	"testing"

	"castellan/domain/access/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

// networks are remembered in order; beyond the bound the oldest is forgotten.
func networks(t *testing.T, s user.Store, c commit.Committer) {
	want := Sample(1)
	storetest.Must(t, c.Commit(t.Context(), want, Sample(2)))
	marks := map[string]bool{}
	first := user.Mark(want.ID, "198.51.100.0/24")
	storetest.Must(t, c.Commit(t.Context(), user.LoggedIn{UserID: want.ID, At: Now, Network: first}))
	for i := range user.MaxNetworks - 1 {
		mark := user.Mark(want.ID, fmt.Sprintf("10.%d.0.0/24", i))
		marks[mark] = true
		storetest.Must(t, c.Commit(t.Context(), user.LoggedIn{UserID: want.ID, At: Now, Network: mark}))
	}
	if u, err := s.Get(t.Context(), want.ID); err != nil || !u.Networks.Has(first) {
		t.Errorf("the first of as many as there is room for is forgotten: %v", err)
	}
	last := user.Mark(want.ID, "192.0.2.0/24")
	storetest.Must(t, c.Commit(t.Context(), user.LoggedIn{UserID: want.ID, At: Now, Network: last}))
	u, err := s.Get(t.Context(), want.ID)
	storetest.Must(t, err)
	for mark := range marks {
		if !u.Networks.Has(mark) {
			t.Errorf("%s is forgotten", mark)
		}
	}
	if u.Networks.Has(first) || !u.Networks.Has(last) {
		t.Errorf("the oldest is kept or the newest is not: %d characters", len(u.Networks))
	}
	if other, err := s.Get(t.Context(), Sample(2).ID); err != nil || other.Networks != "" {
		t.Errorf("another account: %q, %v", other.Networks, err)
	}
}

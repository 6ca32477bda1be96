package sessiontest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"castellan/domain/access/session"
	"castellan/domain/access/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

// rounds is the number of rounds of Births. Without the fence of session.Add or without session.NoOtherSessions, a few
// suffice to fail.
const rounds = 60

// Births races new sessions against a change of the password that ends the active ones: none survives (D-AUTH-11).
// births and changes may belong to different processes. The account is the first sample.
func Births(t *testing.T, s session.Store, births, changes commit.Committer) {
	ctx := t.Context()
	cv, born, refused := int64(1), 0, 0
	for round := range rounds {
		var wg sync.WaitGroup
		begin := make(chan struct{})
		made := make([]error, 3)
		for i := range made {
			wg.Go(func() {
				<-begin
				one := sample(1, one)
				one.ID = fmt.Sprintf("r%d.%d", round, i)
				made[i] = births.Commit(ctx, session.Add{Session: one, CV: cv},
					user.LoggedIn{UserID: one.UserID, At: one.CreatedAt.AddDate(0, 0, round)})
			})
		}
		wg.Go(func() {
			<-begin
			storetest.Must(t, changed(t, s, changes, cv))
		})
		close(begin)
		wg.Wait()
		for _, err := range made {
			switch {
			case err == nil:
				born++
			case errors.Is(err, commit.ErrFenced):
				refused++
			default:
				t.Fatal(err)
			}
		}
		cv++
		if left := ids(t, s, one, now); len(left) > 0 {
			t.Fatalf("round %d: %v survived the change", round, left)
		}
	}
	t.Logf("%d were born and ended, %d were not born", born, refused)
}

// changed replaces the password like package replace, and retries until it succeeds.
func changed(t *testing.T, s session.Store, c commit.Committer, cv int64) error {
	for {
		living, err := s.List(t.Context(), one, now, 1000)
		if err != nil {
			return err
		}
		only := session.NoOtherSessions{UserID: one, At: now}
		writes := []commit.Write{user.SetPassword{UserID: one, CV: cv, Hash: fmt.Sprint("hash ", cv)}}
		for _, l := range living {
			only.IDs = append(only.IDs, l.ID)
			writes = append(writes, session.End{SessionID: l.ID, UserID: one, At: now})
		}
		if err := c.Commit(t.Context(), append(writes, only)...); !errors.Is(err, commit.ErrFenced) {
			return err
		}
	}
}

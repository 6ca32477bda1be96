package actors_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
	"castellan/persistence/factor"
)

// A start that fails closes no challenge, and those after it close one each: the maximum of open challenges is neither
// exceeded nor missed. Challenges that were never written make room first.
func TestFailedStartsKeepTheNumberOfOpenChallenges(t *testing.T) {
	for name, proven := range map[string]bool{"proven": true, "public": false} {
		t.Run(name, func(t *testing.T) {
			for _, most := range []int{1, 3} {
				w := open(t)
				w.engine.Starter.Config.MaxOpen = most
				start := func(with ...commit.Write) error {
					_, err := w.engine.Start(t.Context(), challenge.StartRequest{Action: "LOGIN", Account: w.user.Account(),
						Starter: challenge.Starter{IP: "203.0.113.9"}, Proven: proven, With: with})
					return err
				}
				fails := map[int]int{0: most + 2, most: 1, most + 1: 1}
				for n := range 4 * most {
					for range fails[n] {
						storetest.Is(t, start(challenge.Spend{Budget: challenge.Budget{Subject: "s", Version: 7}}),
							commit.ErrFenced)
					}
					storetest.Must(t, start())
					all, err := factor.NewChallenges(w.db).Open(t.Context(), w.user.ID, time.Now())
					storetest.Must(t, err)
					storetest.Equal(t, len(all), min(n+1, most), "of", most, "after start", n)
				}
			}
		})
	}
}

// late holds a commit back until others have committed.
type late struct {
	commit.Committer
	meanwhile func()
}

func (l late) Commit(ctx context.Context, writes ...commit.Write) error {
	l.meanwhile()
	return l.Committer.Commit(ctx, writes...)
}

// A start that is written after one which closes it closes itself. If another node has started that one, the next start
// closes one challenge more.
func TestLateStartsExceedNoMaximum(t *testing.T) {
	requests := map[string]challenge.StartRequest{"proven": {Proven: true}, "public": {}, "decoy": {Decoy: "?d"}}
	for name, r := range requests {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			r.Action, r.Starter = "LOGIN", challenge.Starter{IP: "203.0.113.9"}
			if r.Account = w.user.Account(); r.Decoy != "" {
				r.Account = challenge.Account{Phone: w.user.Phone, Dial: "90"}
			}
			w.engine.Starter.Config.MaxOpen = 2
			other, m := *w.engine.Starter, w.engine.Starter.Messenger
			other.Messenger = &stepup.Messenger{Config: m.Config, Catalog: m.Catalog, Book: m.Book, Ring: m.Ring,
				UserGate: m.UserGate, Store: m.Store, Outbox: m.Outbox, Dispatch: m.Dispatch, Now: m.Now}
			start := func(by *stepup.Starter) string {
				time.Sleep(time.Millisecond) // their order is that of the milliseconds
				s := storetest.Value(by.Start(t.Context(), r))(t)
				return s.Challenge.ID
			}
			open := func(want ...string) {
				t.Helper()
				all, err := factor.NewChallenges(w.db).Open(t.Context(), max(r.Account.UserID, r.Decoy), time.Now())
				storetest.Must(t, err)
				var ids []string
				for _, one := range all {
					ids = append(ids, one.ID)
				}
				slices.Sort(ids) // those of one millisecond have any order
				slices.Sort(want)
				storetest.Same(t, ids, want)
			}
			var after [2]string
			behind := *w.engine.Starter
			behindOf := func(by *stepup.Starter) string {
				behind.Commit = late{w.db, func() { after = [2]string{start(by), start(by)} }}
				return start(&behind)
			}
			behindOf(w.engine.Starter)
			open(after[:]...)
			if r.Decoy == "" { // the starts of decoys are not known to other nodes
				open(behindOf(&other), after[0], after[1])
			}
			open(after[1], start(w.engine.Starter))
		})
	}
}

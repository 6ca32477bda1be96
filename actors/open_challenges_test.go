package actors_test

import (
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
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

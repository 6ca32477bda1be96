package factor_test

import (
	"slices"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

func sendPush(number int64) challenge.SendPush {
	return challenge.SendPush{Push: challenge.Push{ChallengeID: id.New(time.Now()), UserID: "u1", Number: number,
		SentAt: 1000 + number}}
}

// later is an instant after all pushes.
var later = time.Now().Add(time.Hour)

// The newest pushes that were not approved are read, and the newest of all; since an
// instant all are, and the newest before it.
func TestPushes(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store := t.Context(), factor.NewChallenges(db)
		numbers := func(user string, max int) (got []int64) {
			t.Helper()
			pushes := storetest.Value(store.Pushes(ctx, user, max, later))(t)
			for _, p := range pushes {
				got = append(got, p.Number)
			}
			return got
		}
		var sent []challenge.SendPush
		for n := range int64(6) {
			sent = append(sent, sendPush(n+1))
			storetest.Must(t, db.Commit(ctx, sent[n]))
		}
		other := sendPush(1)
		other.UserID = "u2"
		storetest.Must(t, db.Commit(ctx, other))
		storetest.Same(t, numbers("u1", 20), []int64{6, 5, 4, 3, 2, 1})
		storetest.Same(t, numbers("u1", 2)[:3], []int64{6, 5, 4})
		storetest.Same(t, numbers("u3", 2), []int64(nil))

		settle := func(n int, state challenge.PushState) {
			storetest.Must(t, db.Commit(ctx, challenge.SettlePush{ChallengeID: sent[n-1].ChallengeID, State: state, At: 77}))
		}
		settle(2, challenge.PushApproved)
		settle(5, challenge.PushApproved)
		settle(6, challenge.PushApproved)
		settle(4, challenge.PushDenied)
		storetest.Same(t, numbers("u1", 20), []int64{6, 4, 3, 1})
		pushes := storetest.Value(store.Pushes(ctx, "u1", 1, time.UnixMilli(1006)))(t)
		storetest.Same(t, len(pushes), 5) // and 5, the newest before that instant
		pushes = storetest.Value(store.Pushes(ctx, "u1", 1, time.UnixMilli(1002)))(t)
		storetest.Same(t, len(pushes), 6)
		pushes = storetest.Value(store.Pushes(ctx, "u1", 1, later))(t)
		pushes = pushes[:2]
		sent[5].State, sent[5].SettledAt = challenge.PushApproved, 77
		sent[3].State, sent[3].SettledAt = challenge.PushDenied, 77
		storetest.Same(t, pushes, []challenge.Push{sent[5].Push, sent[3].Push})
		// One that was not counted is settled without a word.
		storetest.Must(t, db.Commit(ctx, challenge.SettlePush{ChallengeID: "none", State: challenge.PushDenied}))

		storetest.Must(t, store.PurgePushes(ctx, time.Now().Add(-time.Minute)))
		storetest.Same(t, len(numbers("u1", 20)), 4)
		storetest.Must(t, store.PurgePushes(ctx, time.Now().Add(time.Minute)))
		storetest.Same(t, len(numbers("u1", 20))+len(numbers("u2", 20)), 0)
	})
}

// Of pushes with one number one is sent, however many are written at once, and
// the units of the others write nothing.
func TestPushNumbersUnderRace(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store := t.Context(), factor.NewChallenges(db)
		won := storetest.Race(t, 32, fault.Unavailable, func(i int) error {
			return lost(db.Commit(ctx, challenge.Insert{Challenge: persistencetest.Challenge(id.New(time.Now()))},
				sendPush(int64(1+i%4))))
		})
		pushes := storetest.Value(store.Pushes(ctx, "u1", 100, later))(t)
		if won != 4 || len(pushes) != 4 || !slices.IsSortedFunc(pushes, func(a, b challenge.Push) int {
			return int(b.Number - a.Number)
		}) {
			t.Errorf("%d were sent, %+v", won, pushes)
		}
		storetest.Equal(t, persistencetest.Count(t, db, "challenge"), 4)
	})
}

// The list of pushes has 22 more than the limit of the caller, the newest first.
func TestNumberOfPushes(t *testing.T) {
	db := persistencetest.SQLite(t)
	for n := range int64(30) {
		storetest.Must(t, db.Commit(t.Context(), sendPush(n+1)))
	}
	for limit, want := range map[int]int{0: 22, 1: 23, 7: 29, 8: 30, 9: 30} {
		got, err := factor.NewChallenges(db).Pushes(t.Context(), "u1", limit, later)
		if err != nil || len(got) != want || got[0].Number != 30 || got[0].State != challenge.PushState(0) {
			t.Errorf("limit %d: %d pushes, %v, want %d", limit, len(got), err, want)
		}
	}
}

// Waking a device uses up no user's code.
func TestPushIsNoCode(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store, now := t.Context(), delivery.NewOutbox(db), time.Now()
		push := outbox.Message{ID: "p", UserID: "u1", Channel: message.Push, Destination: []byte("d"), Prefix: "p",
			CreatedAt: now, ExpiresAt: now.Add(time.Minute), LeaseUntil: now}
		storetest.Must(t, db.Commit(ctx, outbox.Add{Message: push}))
		n, err := store.Usage(ctx, now.Add(time.Minute), "p")
		sent, err2 := store.Sendings(ctx, "u1", now.Add(-time.Minute))
		if n != 0 || len(sent) != 0 || err != nil || err2 != nil {
			t.Errorf("%d, %v, %v, %v", n, sent, err, err2)
		}
		storetest.Equal(t, len(storetest.Value(store.Claim(ctx, now.Add(time.Second), time.Minute, 10))(t)), 1)
	})
}

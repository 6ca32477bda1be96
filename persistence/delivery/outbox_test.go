package delivery_test

import (
	"cmp"
	"fmt"
	"sync"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

// A message is stored with all its fields, by either write.
func TestOutboxRoundTrip(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		first := persistencetest.Whole(t, func(m *outbox.Message) { m.ID, m.State = "1", outbox.Sent })
		second := first
		second.ID, second.MethodID, second.Proven, second.Uncounted = "2", "other", false, false
		storetest.Must(t, db.Commit(t.Context(), outbox.Add{Message: first}, outbox.AddOnce{Message: second}))
		got := storetest.Value(delivery.NewOutbox(db).Recent(t.Context(), nil, 0))(t)
		storetest.Same(t, got, []outbox.Message{second, first})
	})
}

func TestOutboxLeasesOnce(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store, now := t.Context(), delivery.NewOutbox(db), time.UnixMilli(1_700_000_000_000)
		for i := range 30 {
			storetest.Must(t, db.Commit(ctx, outbox.Add{Message: outbox.Message{ID: fmt.Sprint("m", i), Channel: "SMS",
				Destination: []byte("d"), UserID: "u", Prefix: "p",
				CreatedAt: now, ExpiresAt: now.Add(time.Hour), LeaseUntil: now, Payload: []byte("x"),
				Proven: i%2 == 0}}))
		}
		var mu sync.Mutex
		seen := map[string]int{}
		storetest.Race(t, 8, "", func(int) error {
			ms, err := store.Claim(ctx, now, 30*time.Second, 10)
			mu.Lock()
			defer mu.Unlock()
			for _, m := range ms {
				seen[m.ID]++
			}
			return err
		})
		for id, n := range seen {
			storetest.Equal(t, n, 1, "leases of", id)
		}
		for len(seen) < 30 { // what a skipped lock left over is still there to claim
			ms := storetest.Value(store.Claim(ctx, now, 30*time.Second, 10))(t)
			if len(ms) == 0 {
				t.Fatalf("%d of 30 messages can be claimed", len(seen))
			}
			for _, m := range ms {
				seen[m.ID]++
			}
		}
		lapsed := storetest.Value(store.Claim(ctx, now.Add(30*time.Second), time.Second, 100))(t)
		storetest.Equal(t, len(lapsed), 30, "due after the leases lapsed")
		if queued, oldest, err := store.Backlog(ctx); queued != 30 || !oldest.Equal(now) || err != nil {
			t.Errorf("a backlog of %d since %v, %v", queued, oldest, err)
		}
		storetest.Must(t, db.Commit(ctx, outbox.Settle{ID: "m0", State: outbox.Sent, At: now, Attempt: 1},
			outbox.Settle{ID: "m1", State: outbox.Sent, Keep: true}))
		storetest.Equal(t, len(storetest.Value(store.Recent(ctx, nil, 100))(t)), 29, "payloads: one was erased at delivery")
		n := storetest.Value(store.Usage(ctx, now.Add(time.Minute), "p"))(t)
		sent := storetest.Value(store.Sendings(ctx, "u", now.Add(-time.Minute)))(t)
		proven := 0
		for _, s := range sent {
			if s.Proven {
				proven++
			}
		}
		if n != 15 || len(sent) != 30 || proven != 15 {
			t.Errorf("usage %d, %d sendings, %d proven", n, len(sent), proven)
		}
		storetest.Must(t, store.Erase(ctx, now.Add(2*time.Hour)))
		storetest.Equal(t, len(storetest.Value(store.Recent(ctx, nil, 100))(t)), 1, "payloads kept after expiry")
		if queued, oldest, err := store.Backlog(ctx); queued != 0 || !oldest.IsZero() || err != nil {
			t.Errorf("a backlog of %d since %v, %v after everything expired", queued, oldest, err)
		}
	})
}

// A message sent without a proof counts against a network, discarded or not; a budget
// is spent by what was sent, and it is told how much of that was without a proof.
func TestUsageAndBudget(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store, now := t.Context(), delivery.NewOutbox(db), time.UnixMilli(1_700_000_000_000)
		for i, m := range []outbox.Message{
			{Proven: true}, {Proven: true}, {Proven: true, State: outbox.Discarded}, {}, {State: outbox.Sent},
			{State: outbox.Discarded}, {Prefix: "q"}, {Dial: "1"}, {Channel: message.MAIL, Dial: "-"}, {Channel: message.Push},
			{Uncounted: true}, {CreatedAt: now.Add(-time.Hour)}, {CreatedAt: now.Add(-24 * time.Hour)},
			{CreatedAt: now.Add(time.Millisecond - time.Hour), Prefix: "r", Dial: "3"},
			{CreatedAt: now.Add(time.Millisecond - 24*time.Hour), Dial: "2"},
		} {
			m.ID, m.UserID, m.Destination, m.ExpiresAt = fmt.Sprint("m", i), "u", []byte("d"), now.Add(time.Hour)
			m.Prefix, m.Dial, m.Channel = cmp.Or(m.Prefix, "p"), cmp.Or(m.Dial, "90"), cmp.Or(m.Channel, message.SMS)
			if m.Dial == "-" {
				m.Dial = ""
			}
			if m.CreatedAt.IsZero() {
				m.CreatedAt = now.Add(-time.Minute)
			}
			storetest.Must(t, db.Commit(ctx, outbox.Add{Message: m}))
		}
		used := storetest.Value(store.Usage(ctx, now, "p"))(t)
		all, unproven, err := store.Spent(ctx, now, "90")
		storetest.Must(t, err)
		if used != 5 || all != 6 || unproven != 4 {
			t.Errorf("%d count against the network, %d of the budget are spent, %d without a proof", used, all, unproven)
		}
		storetest.Equal(t, storetest.Value(store.Usage(ctx, now, "r"))(t), 1, "within the hour")
		if all, _, err := store.Spent(ctx, now, "2"); all != 1 || err != nil {
			t.Errorf("within the day: %d, %v", all, err)
		}
		if all, unproven, err := store.Spent(ctx, now, "44"); all != 0 || unproven != 0 || err != nil {
			t.Errorf("an empty budget: %d, %d, %v", all, unproven, err)
		}
	})
}

func TestRecentMessages(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store, now := t.Context(), delivery.NewOutbox(db), time.Now()
		var ws []commit.Write
		for i := range 300 {
			m := outbox.Message{ID: fmt.Sprintf("m%03d", i), ChallengeID: "c", MethodID: fmt.Sprint(i),
				Channel: message.SMS, Destination: []byte("crowd"), State: outbox.Sent,
				CreatedAt: now.Add(time.Duration(i) * time.Millisecond), Payload: []byte("x")}
			if i == 0 {
				m.Destination = []byte("one")
			}
			ws = append(ws, outbox.Add{Message: m})
		}
		storetest.Must(t, db.Commit(ctx, ws...))
		for _, c := range []struct {
			to    string
			limit int
			want  int
			first string
		}{{"", 0, 300, "m299"}, {"", 7, 7, "m299"}, {"one", 0, 1, "m000"}, {"crowd", 0, 299, "m299"},
			{"nobody", 0, 0, ""}} {
			var to []byte
			if c.to != "" {
				to = []byte(c.to)
			}
			got, err := store.Recent(ctx, to, c.limit)
			if err != nil || len(got) != c.want || c.want > 0 && got[0].ID != c.first {
				t.Errorf("to %q, limit %d: %d messages, %v", c.to, c.limit, len(got), err)
			}
		}
	})
}

// A message that is made once in a time is kept once, however often it is made.
func TestOutboxAddsOnce(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store := t.Context(), delivery.NewOutbox(db)
		begin := time.UnixMilli(1_700_000_000_000).Truncate(time.Hour)
		add := func(user, what string, at time.Time) error {
			m := outbox.Message{ID: "x", UserID: user, Channel: message.MAIL, Destination: []byte("d"), CreatedAt: at,
				ExpiresAt: at.Add(time.Hour), LeaseUntil: at, Payload: []byte(what)}
			return db.Commit(ctx, outbox.NewOnce(m, what, time.Hour))
		}
		count := func() int { return len(storetest.Value(store.Recent(ctx, nil, 0))(t)) }
		storetest.Race(t, 40, "", func(i int) error {
			return add("u", "a", begin.Add(50*time.Minute+time.Duration(i)*time.Second))
		})
		storetest.Equal(t, count(), 1, "of 40 at once")
		for i, c := range []struct {
			user, what string
			at         time.Duration
			want       int
		}{
			{"u", "b", 50 * time.Minute, 2}, {"v", "a", 50 * time.Minute, 3},
			{"v", "a", 110*time.Minute - time.Millisecond, 3}, {"v", "a", 110 * time.Minute, 4},
			{"v", "a", 119 * time.Minute, 4}, {"v", "a", 169 * time.Minute, 4}, {"v", "a", 170 * time.Minute, 5},
			{"v", "a", 400 * time.Minute, 6},
		} {
			storetest.Must(t, add(c.user, c.what, begin.Add(c.at)))
			storetest.Equal(t, count(), c.want, i)
		}
	})
}

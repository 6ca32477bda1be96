package actors_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
)

var fatigue = challenge.PushRules{Sent: 3, Window: 10 * time.Minute, SentDay: 20, Denials: 3,
	DenialWindow: 10 * time.Minute, Pause: time.Hour}

// tired is a world whose user has a device and bounds on pushes.
func tired(w *world) *world {
	w.carry("d1")
	w.engine.Starter.Config.Push = fatigue
	return w
}

func offersPush(c challenge.Challenge) bool { return slices.Contains(names(c), challenge.PUSH) }

// begun starts challenges as callers do: a fenced start is repeated.
func (w *world) begun(s *stepup.Starter, n int) (all []challenge.Challenge) {
	for range n {
		r := challenge.StartRequest{Action: "LOGIN", Account: w.user.Account(), Proven: true}
		made, err := s.Start(context.Background(), r)
		for errors.Is(err, commit.ErrFenced) {
			made, err = s.Start(context.Background(), r)
		}
		storetest.Is(w.t, err, nil)
		all = append(all, made.Challenge)
	}
	return all
}

func pushesIn(all []challenge.Challenge) (n int) {
	for _, c := range all {
		if offersPush(c) {
			n++
		}
	}
	return n
}

// change runs a statement on the rows.
func (w *world) change(statement string, args ...any) {
	w.t.Helper()
	storetest.Must(w.t, w.db.InTx(w.t.Context(), func(ctx context.Context) error {
		_, err := w.db.Conn(ctx).NewRaw(statement, args...).Exec(ctx)
		return err
	}))
}

// aged makes the sent pushes older.
func (w *world) aged(by time.Duration) {
	w.t.Helper()
	w.change("UPDATE push SET sent_at = sent_at - ?, settled_at = settled_at - ?", by.Milliseconds(), by.Milliseconds())
}

// A challenge that is superseded keeps the slot of its push, which the phone has shown (D-EXT-06). So does each
// challenge that ends without an approval.
func TestEndedChallengesKeepThePlaceOfTheirPush(t *testing.T) {
	for name, end := range map[string]func(w *world, c challenge.Challenge) error{
		"superseded": func(*world, challenge.Challenge) error { return nil }, // at the sixth start
		"denied": func(w *world, c challenge.Challenge) error {
			_, err := w.decide(c, "d1", "DENIED")
			return err
		},
		"expired": func(w *world, c challenge.Challenge) error {
			w.change("UPDATE challenge SET expires_at = created_at WHERE id = ?", c.ID)
			w.client.Refresh(c.ID)
			return nil
		},
		"closed": func(w *world, c challenge.Challenge) error {
			for range 5 {
				w.answer(c, challenge.SMS, wrongOf(w.code(w.method(c, challenge.SMS).ID)))
				w.answer(c, challenge.MAIL, wrongOf(w.code(w.method(c, challenge.MAIL).ID)))
			}
			_, err := w.answer(c, challenge.SMS, "000000")
			if fault.CodeOf(err) != fault.ChallengeClosed && fault.CodeOf(err) != fault.RateLimited {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tired(open(t))
			rules := fatigue
			rules.Denials = 0
			w.engine.Starter.Config.Push = rules
			sent := 0
			for range 50 {
				c := w.begin("LOGIN", "")
				if !offersPush(c) {
					continue
				}
				sent++
				storetest.Must(t, end(w, c))
			}
			storetest.Equal(t, sent, 3, "pushes were sent")
			w.start() // the bound is read from the rows
			w.engine.Starter.Config.Push = rules
			storetest.Equal(t, offersPush(w.begin("LOGIN", "")), false, "after a restart there is one more")
			w.aged(10 * time.Minute)
			storetest.Equal(t, pushesIn(w.begun(w.engine.Starter, 10)), 3, "were sent after the window")
		})
	}
}

// An approval, or a completion by another method, frees the slot of the push.
func TestApprovedPushesFreeTheirPlace(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		tired(w)
		for i := range 30 {
			c := w.begin("LOGIN", "")
			if !offersPush(c) {
				t.Fatalf("start %d has no push", i+1)
			}
			var err error
			if i%3 == 0 {
				_, err = w.right(c, challenge.SMS)
			} else {
				_, err = w.decide(c, "d1", "APPROVED")
			}
			storetest.Must(t, err)
		}
	})
}

// Three pushes are sent, regardless of the number of parallel starts and of nodes that consider themselves the owner.
// Each number is assigned once.
func TestThreePushesUnderRace(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		tired(w)
		starters := []*stepup.Starter{w.engine.Starter}
		for range 2 {
			node, client := w.boot(w.engine.Starter.Ring, w.engine.Starter.Messenger)
			defer node.Stop(context.Background())
			messenger := &stepup.Messenger{Config: w.engine.Starter.Config, Catalog: w.engine.Starter.Catalog,
				Book: w.engine.Starter.Book, Ring: w.engine.Starter.Ring, UserGate: client, Store: factor.NewChallenges(w.db),
				Outbox: delivery.NewOutbox(w.db), Dispatch: w, Now: time.Now}
			s := *w.engine.Starter
			s.Messenger, s.Challenges = messenger, client
			starters = append(starters, &s)
		}
		var sent atomic.Int64
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() { sent.Add(int64(pushesIn(w.begun(starters[i%3], 2)))) })
		}
		wg.Wait()
		storetest.Equal(t, sent.Load(), 3, "pushes were sent")
	})
}

// A later push of another owner may have its row before an earlier one. The earlier push counts until its row can no
// longer arrive.
func TestMissingPushesOfAnotherOwnerCount(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		tired(w)
		later := challenge.Push{ChallengeID: id.New(time.Now()), UserID: w.user.ID, Number: 2, SentAt: time.Now().UnixMilli()}
		storetest.Must(t, w.db.Commit(t.Context(), challenge.SendPush{Push: later}))
		storetest.Equal(t, pushesIn(w.begun(w.engine.Starter, 3)), 1, "pushes beside the second one of another owner")
	})
}

// The first refusal of a day sends the owner one mail, also if the push cannot be left out.
func TestOwnerIsNotifiedOfPushes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		tired(w)
		told := func() int {
			t.Helper()
			ms := storetest.Value(delivery.NewOutbox(w.db).Recent(t.Context(), nil, 0))(t)
			return len(slices.DeleteFunc(ms, func(m outbox.Message) bool { return m.ChallengeID != "" }))
		}
		w.begun(w.engine.Starter, 3)
		storetest.Equal(t, told(), 0, "notices before a refusal")
		w.catalog = mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), []mfa.Policy{{ID: 1, ActionCode: "LOGIN",
			EntityType: mfa.General, Type: mfa.Common, Methods: []mfa.Choice{{Code: mfa.PUSH}}, Required: 1}})
		for range 3 {
			made, err := w.engine.Start(t.Context(), challenge.StartRequest{Action: "LOGIN", Account: w.user.Account(),
				Proven: true})
			if fault.CodeOf(err) != fault.RateLimited {
				t.Fatalf("without a push: %v, %v", names(made.Challenge), err)
			}
			var f *fault.Error
			if errors.As(err, &f); f.RetryAfter < 9*time.Minute || f.RetryAfter > 10*time.Minute {
				t.Errorf("try again in %v", f.RetryAfter)
			}
			storetest.Equal(t, told(), 1, "notices")
		}
	})
}

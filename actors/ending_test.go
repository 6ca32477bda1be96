package actors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence/factor"
)

func TestFiveOpenPerAction(t *testing.T) {
	w := open(t)
	var cs []challenge.Challenge
	for range 5 {
		cs = append(cs, w.begin("LOGIN", ""))
	}
	if _, err := w.right(cs[1], challenge.SMS); err != nil { // room for one more
		t.Fatal(err)
	}
	cs = append(cs, w.begin("LOGIN", ""))
	if _, err := w.engine.Result(t.Context(), cs[0].ID, 0); fault.CodeOf(err) != fault.ChallengeNotCompleted {
		t.Fatalf("a completed challenge took the room of an open one: %v", err)
	}
	w.begin("LOGIN", "")
	_, err := w.right(cs[0], challenge.SMS)
	storetest.Wants(t, err, fault.ChallengeClosed)
	w.begin("VERIFY_EMAIL", "go") // another action has its own budget
	storetest.Is(t, storetest.Err(w.right(cs[2], challenge.SMS)), nil, "a younger one")
}

// A start on another node closes a challenge that this node still has in its WarmCache.
func TestOtherNodesCloseNewChallenges(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	storetest.Must(t, w.db.Commit(t.Context(), challenge.Supersede{ID: c.ID}))
	w.client.Resume(c.ID) // what Refresh does on the other node
	_, err := w.engine.Result(t.Context(), c.ID, 0)
	storetest.Wants(t, err, fault.ChallengeClosed)
}

func TestChangedCredentialsCloseOpenChallenges(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	storetest.Must(t, w.db.Commit(t.Context(), user.Touch{UserID: w.user.ID}))
	_, err := w.right(c, challenge.SMS)
	storetest.Wants(t, err, fault.ChallengeClosed)
	_, err = w.engine.Start(t.Context(), challenge.StartRequest{Action: "LOGIN", Account: w.user.Account()})
	storetest.Is(t, err, commit.ErrFenced, "a start with an old account")
}

// beginInSession begins a challenge in a session, and endSession ends the session.
func (w *world) beginInSession(command string) challenge.Challenge {
	w.t.Helper()
	r := challenge.StartRequest{Action: "VERIFY_EMAIL", Account: w.user.Account(),
		Starter: challenge.Starter{SessionID: "sid"}}
	if command != "" {
		r.Command = []byte(command)
	}
	s := storetest.Value(w.engine.Start(w.t.Context(), r))(w.t)
	return s.Challenge
}

func (w *world) endSession() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead["sid"] = true
}

// Every call for a challenge reports that its session has ended.
func TestEndedSessionShowsInEveryCall(t *testing.T) {
	for door, ask := range map[string]func(w *world, c challenge.Challenge) error{
		"answer": func(w *world, c challenge.Challenge) error {
			_, err := w.right(c, challenge.MAIL)
			return err
		},
		"result": func(w *world, c challenge.Challenge) error {
			_, err := w.engine.Result(w.t.Context(), c.ID, 0)
			return err
		},
		"renewal": func(w *world, c challenge.Challenge) error {
			_, err := w.engine.Renew(w.t.Context(), c.ID, w.method(c, challenge.MAIL).ID, challenge.MAIL, audit.By{})
			return err
		},
	} {
		t.Run(door, func(t *testing.T) {
			w := open(t)
			begun := w.beginInSession("")
			w.endSession()
			storetest.Wants(t, ask(w, begun), fault.ChallengeClosed)
			storetest.Equal(t, w.effects, 0, "the action ran")
			if c, err := w.engine.Starter.Store.Load(t.Context(), begun.ID); err != nil || c.State != challenge.Closed {
				t.Errorf("state %v, %v", c.State, err)
			}
		})
	}
}

// An action is not retried after its session has ended.
func TestEndedSessionStopsItsExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		w.engine.Starter.Config.ExecWait = time.Millisecond
		begun := w.beginInSession("trouble")
		if done, err := w.right(begun, challenge.MAIL); err != nil || !done.Final || done.Result != nil {
			t.Fatalf("%+v, %v", done, err)
		}
		w.endSession()
		time.Sleep(time.Second)
		c, err := w.engine.Starter.Store.Load(t.Context(), begun.ID)
		if err != nil || c.State != challenge.Closed || c.Failures >= 5 {
			t.Errorf("state %v after %d failures, %v", c.State, c.Failures, err)
		}
		_, err = w.engine.Result(t.Context(), begun.ID, 0)
		storetest.Wants(t, err, fault.ChallengeClosed)
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

func TestActionsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		for _, c := range []struct {
			command string
			code    fault.Code
		}{{"refuse", fault.InvalidState}, {"trouble", fault.Internal}, {"panic", fault.Internal}} {
			ch := w.begin("VERIFY_EMAIL", c.command)
			done, err := w.right(ch, challenge.MAIL)
			if err != nil || done.Result == nil || done.Result.Success || done.Result.Code != c.code {
				t.Errorf("%s: %+v, %v", c.command, done, err)
			}
		}
		storetest.Equal(t, w.effects, 0, "effects")
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

// A process that crashes between completion and the action's end leaves an executing row. The next owner executes the
// action, once.
func TestNextOwnerExecutesAfterDeath(t *testing.T) {
	w := open(t)
	c := w.begin("VERIFY_EMAIL", "go")
	store := factor.NewChallenges(w.db)
	row := storetest.Value(store.Load(t.Context(), c.ID))(t)
	row.State, row.Last, row.Methods[0].Order = challenge.Executing, row.Methods[0].ID, 1
	storetest.Must(t, w.db.Commit(t.Context(), challenge.Update{Challenge: row}))
	w.start()
	stuck, err := store.Stuck(t.Context(), time.Now().Add(time.Minute), 10)
	if err != nil || len(stuck) != 1 {
		t.Fatalf("stuck %v, %v", stuck, err)
	}
	w.client.Resume(stuck[0])
	done, err := w.engine.Result(t.Context(), c.ID, 5*time.Second)
	if err != nil || !done.Result.Success || w.effects != 1 {
		t.Errorf("%+v, %v, %d effects", done, err, w.effects)
	}
}

func TestSixthSocketIsRefused(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	for n := 1; n <= 7; n++ {
		refused, _, err := w.client.Subscribe(t.Context(), c.ID, n, 0)
		if err != nil || refused != max(0, n-5) {
			t.Errorf("%d sockets: %d refused, %v", n, refused, err)
		}
	}
}

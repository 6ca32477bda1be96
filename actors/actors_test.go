package actors_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
)

func TestLoginOutcomeByEveryCall(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	if len(c.Methods) != 2 || c.Methods[0].Name != challenge.SMS || c.Methods[0].Hint != "+90*******01" &&
		c.Methods[0].Hint == w.user.Phone {
		t.Fatalf("methods %+v", c.Methods)
	}
	if _, _, err := w.client.Subscribe(t.Context(), c.ID, 1, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.engine.Result(t.Context(), c.ID, 0); fault.CodeOf(err) != fault.ChallengeNotCompleted {
		t.Fatalf("result before the end: %v", err)
	}
	done, err := w.right(c, challenge.SMS)
	if err != nil || !done.Final || done.Result == nil || !done.Result.Success || done.Result.Headers["x-auth"] != "t" {
		t.Fatalf("%+v, %v", done, err)
	}
	again, err := w.right(c, challenge.SMS)
	if err != nil || again.Result == nil || string(again.Result.Data) != string(done.Result.Data) {
		t.Fatalf("an exact repeat: %+v, %v", again, err)
	}
	_, err = w.answer(c, challenge.SMS, wrongOf(w.code(w.method(c, challenge.SMS).ID)))
	storetest.Wants(t, err, fault.MethodAlreadyCompleted)
	_, err = w.right(c, challenge.MAIL)
	storetest.Wants(t, err, fault.ChallengeClosed)
	w.start() // the process crashes between completion and reading
	late, err := w.engine.Result(t.Context(), c.ID, 0)
	if err != nil || string(late.Result.Data) != string(done.Result.Data) || late.Result.Headers["x-auth"] != "t" {
		t.Fatalf("after a restart: %+v, %v", late, err)
	}
	_, news, err := w.client.Subscribe(t.Context(), c.ID, 1, 0)
	if err != nil || len(news.Events) != 2 || news.Events[0].Method != challenge.SMS || news.Events[1].Outcome == nil {
		t.Fatalf("replay %+v, %v", news, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.news) != 1 || len(w.news[0].Events) != 2 {
		t.Errorf("live news %+v", w.news)
	}
}

// The owner of a new challenge is found without activating its actor.
func TestHolderIsKnownWithoutActivation(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	awake := w.node.Live()
	tells := func() {
		t.Helper()
		h, err := w.client.Holder(t.Context(), c.ID)
		if err != nil || h != (challenge.Holder{UserID: w.user.ID}) {
			t.Errorf("%+v, %v", h, err)
		}
		user, err := w.client.User(t.Context(), c.ID)
		if err != nil || user != w.user.ID {
			t.Errorf("%s, %v", user, err)
		}
	}
	tells()
	storetest.Equal(t, w.node.Live(), awake, "owners woke up to tell")
	storetest.Must(t, storetest.Err(w.right(c, challenge.SMS)))
	tells()
	w.start()
	tells()
	_, err := w.client.Holder(t.Context(), id.New(time.Now()))
	storetest.Wants(t, err, fault.ChallengeNotFound)
	_, err = w.client.User(t.Context(), id.New(time.Now()))
	storetest.Wants(t, err, fault.ChallengeNotFound)
}

// Parallel right answers cause one execution and one outcome, which every copy receives.
func TestTwoHundredRightAnswersExecuteOnce(t *testing.T) {
	w := open(t)
	c := w.begin("VERIFY_EMAIL", "go")
	var wg sync.WaitGroup
	var mu sync.Mutex
	told := 0
	for range 200 {
		wg.Go(func() {
			done, err := w.right(c, challenge.MAIL)
			if err != nil || done.Result == nil || !done.Result.Success {
				t.Errorf("%+v, %v", done, err)
				return
			}
			mu.Lock()
			told++
			mu.Unlock()
		})
	}
	wg.Wait()
	if told != 200 || w.effects != 1 {
		t.Errorf("%d got the outcome, %d effects", told, w.effects)
	}
}

// Of parallel wrong answers, five are evaluated, however many arrive.
func TestTwoHundredWrongAnswersAreLimited(t *testing.T) {
	w := open(t)
	c := w.begin("LOGIN", "")
	wrong := wrongOf(w.code(w.method(c, challenge.SMS).ID))
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range 200 {
		wg.Go(func() {
			_, err := w.answer(c, challenge.SMS, wrong)
			mu.Lock()
			codes[fault.CodeOf(err)]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if codes[fault.OTPInvalid] != 5 || codes[fault.MethodLocked] != 195 {
		t.Fatalf("%v", codes)
	}
	w.start()
	_, err := w.right(c, challenge.SMS)
	storetest.Wants(t, err, fault.MethodLocked) // a restart resets nothing
	if done, err := w.right(c, challenge.MAIL); err != nil || !done.Final {
		t.Errorf("the other method: %+v, %v", done, err)
	}
}

// The budget of a user applies to all challenges of a flow and survives restarts.
func TestBudgetOverChallenges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		evaluated := 0
		for range 6 {
			c := w.begin("LOGIN", "")
			for _, n := range []challenge.Name{challenge.SMS, challenge.MAIL} {
				for range 5 {
					_, err := w.answer(c, n, wrongOf(w.code(w.method(c, n).ID)))
					if fault.CodeOf(err) == fault.OTPInvalid {
						evaluated++
					}
				}
			}
		}
		storetest.Equal(t, evaluated, 20, "evaluated wrong values")
		c := w.begin("LOGIN", "")
		_, err := w.right(c, challenge.SMS)
		storetest.Wants(t, err, fault.RateLimited)
		other := w.begin("VERIFY_EMAIL", "go")
		storetest.Is(t, storetest.Err(w.right(other, challenge.MAIL)), nil, "another flow")
		time.Sleep(time.Hour)
		c = w.begin("LOGIN", "")
		storetest.Is(t, storetest.Err(w.right(c, challenge.SMS)), nil, "an hour later")
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

func TestExpiryAnswersTheWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		c := w.begin("LOGIN", "")
		if _, _, err := w.client.Subscribe(t.Context(), c.ID, 1, 0); err != nil {
			t.Fatal(err)
		}
		for range 25 { // hubs subscribe again, which renews the lease
			time.Sleep(19 * time.Second)
			if _, _, err := w.client.Subscribe(t.Context(), c.ID, 1, 0); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		_, err := w.engine.Result(t.Context(), c.ID, 30*time.Second)
		storetest.Wants(t, err, fault.ChallengeNotCompleted)
		if waited := time.Since(start); waited != 30*time.Second && time.Now().Before(time.UnixMilli(c.ExpiresAt)) {
			t.Errorf("waited %v", waited)
		}
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

func TestExpiryPublishesTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		c := w.begin("LOGIN", "")
		time.Sleep(580 * time.Second)
		if _, _, err := w.client.Subscribe(t.Context(), c.ID, 1, 0); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := w.engine.Result(t.Context(), c.ID, 30*time.Second)
		storetest.Wants(t, err, fault.ChallengeExpired)
		storetest.Equal(t, time.Since(start), 20*time.Second, "until the answer")
		synctest.Wait()
		if len(w.news) != 1 || !w.news[0].Gone {
			t.Errorf("news %+v", w.news)
		}
		_, err = w.right(c, challenge.SMS)
		storetest.Wants(t, err, fault.ChallengeExpired)
		w.node.Stop(context.Background())
		w.db.Close()
	})
}

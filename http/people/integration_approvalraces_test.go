package people_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/transaction"
)

// Of equal requests at the same time one starts a challenge; of completions at the same time
// one makes the withdrawal; the limit holds over challenges that are completed together.
func TestApprovalRaces(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		var mu sync.Mutex
		ids, last := map[string]int{}, approval{}
		storetest.Race(t, 8, fault.InvalidState, func(int) error {
			a := o.ask(o.owned("one"))
			mu.Lock()
			defer mu.Unlock()
			if a.Challenge == nil {
				return fmt.Errorf("%d %s", a.status, a.answer)
			}
			ids[a.Challenge.ChallengeID]++
			last = a
			return nil
		})
		if len(ids) != 1 || o.e.SentAll() != 2 {
			t.Fatalf("challenges %v, %d codes", ids, o.e.SentAll())
		}
		outcomes := map[string]int{}
		storetest.Race(t, 8, fault.InvalidState, func(int) error {
			status, got, answer := o.complete(last)
			mu.Lock()
			defer mu.Unlock()
			if status != 200 {
				return fmt.Errorf("%d %s", status, answer)
			}
			outcomes[string(got.ExecResult.Data)]++
			return nil
		})
		if n := count(t, o.db, "withdrawal_queue"); n != 1 || len(outcomes) != 1 {
			t.Errorf("%d withdrawals, outcomes %v", n, outcomes)
		}
		o.has("kim", "2", "0.101")

		all := make([]approval, 5) // 0.1 of 1 BTC a day is used
		for i := range all {
			all[i] = o.started(o.owned(fmt.Sprint("many", i), "amount", "0.3"))
		}
		codes := map[string]int{}
		storetest.Race(t, len(all), fault.InvalidState, func(i int) error {
			status, got, answer := o.complete(all[i])
			mu.Lock()
			defer mu.Unlock()
			if status != 200 {
				return fmt.Errorf("%d %s", status, answer)
			}
			codes[got.ExecResult.Code]++
			return nil
		})
		if codes[""] != 3 || codes["LIMIT_EXCEEDED"] != 2 {
			t.Errorf("outcomes %v", codes)
		}
		o.has("kim", "2", "1.004")
	})
}

// Of two challenges of one external id, the one that the id is bound to makes the withdrawal.
// That also holds when the other is carried out at the same time, or while the id is bound.
func TestApprovalsOfOneExternalID(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		service := &transaction.Approvals{Withdrawals: o.service, Engine: o.e.Starter,
			Account: o.e.Account}
		execute := func(a approval) error {
			c, err := o.e.Challenges.Load(t.Context(), a.Challenge.ChallengeID)
			storetest.Must(t, err)
			sealed, _, err := o.e.Challenges.Sealed(t.Context(), c.ID)
			storetest.Must(t, err)
			command, err := o.e.Ring.Open(sealed, challenge.CommandData(c.ID))
			storetest.Must(t, err)
			for { // an engine tries again what is busy
				err := o.db.InTx(t.Context(), func(ctx context.Context) error {
					_, err := service.Execute(ctx, challenge.Execution{Challenge: c, Command: command, Now: o.service.Now()})
					return err
				})
				if fault.CodeOf(err) != fault.Unavailable {
					return err
				}
			}
		}
		old := o.started(o.owned("w", "amount", "0.02"))
		o.e.Skip(11 * time.Minute)
		bound := o.started(o.owned("w", "amount", "0.02"))
		if won := storetest.Race(t, 8, fault.InvalidState, func(i int) error {
			return execute([]approval{old, bound}[i%2])
		}); won != 1 {
			t.Errorf("%d withdrawals", won)
		}
		o.has("kim", "2", "0.021")
		if err := execute(old); fault.CodeOf(err) != fault.InvalidState {
			t.Errorf("the old challenge: %v", err)
		}
		for n := range 6 { // the old challenge was completed in time, but is carried out late
			name := fmt.Sprint("late", n)
			request := o.owned(name, "amount", "0.02")
			old := o.started(request)
			o.e.Skip(11 * time.Minute)
			request = o.owned(name, "amount", "0.02")
			var answers [2]approval
			var refusal error
			var wait sync.WaitGroup
			wait.Go(func() { refusal = execute(old) })
			for i := range answers {
				wait.Go(func() { answers[i] = o.ask(request) })
			}
			wait.Wait()
			for _, a := range answers {
				if a.status != 200 || refusal != nil && a.Data != nil {
					t.Errorf("%s: %s, after %v", name, a.answer, refusal)
				}
			}
			made := count(t, o.db, "withdrawal_queue", "external_id = '"+name+"'")
			if code := fault.CodeOf(refusal); code != "" && code != fault.InvalidState || (made == 1) != (code == "") {
				t.Errorf("%s: %d withdrawals, %v", name, made, refusal)
			}
			if got := o.ask(request); (got.Data != nil) != (refusal == nil) {
				t.Errorf("%s: afterwards %s", name, got.answer)
			}
		}
	})
}

// The owner is shown what is approved.
func TestApprovalShowsTheOrder(t *testing.T) {
	approvals(t, func(t *testing.T, o *integrationOffice) {
		o.service.Tags = address.Tags{"BTC": address.NumberTag}
		a := o.started(o.owned("w", "addressTag", `"104723"`))
		sealed, _, err := o.e.Challenges.Sealed(t.Context(), a.Challenge.ChallengeID)
		storetest.Must(t, err)
		command, err := o.e.Ring.Open(sealed, challenge.CommandData(a.Challenge.ChallengeID))
		storetest.Must(t, err)
		got := (&transaction.Approvals{}).Describe(command)
		want := []challenge.Detail{{Key: "amount", Value: "0.1 BTC (BTC)"}, {Key: "fee", Value: "0.001 BTC"},
			{Key: "address", Value: address1 + " 104723"}, {Key: "tag", Value: "104723"}, {Key: "reference", Value: "w"}}
		storetest.Same(t, got, want)
		claim, err := o.service.Claims.Claim(t.Context(), integration.Withdrawals, "w")
		storetest.Must(t, err)
		if claim.RecordID != "challenge/"+a.Challenge.ChallengeID {
			t.Errorf("bound to %s", claim.RecordID)
		}
	})
}

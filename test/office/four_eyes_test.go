package office

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// An adjustment waits for a second person, whose approval executes it once and exactly as requested. The
// waiting request is sealed.
func TestFourEyesExecuteAdjustmentAsRequested(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s)
		body := d.Adjustment("C", "0.25")
		keyed := blackbox.Headers{"x-auth": d.Boss["x-auth"], "idempotency-key": "once"}
		first := d.Do(t, "POST", blackbox.AdjustPath, body, keyed).Is(t, 202, "").Keys(t, "data")
		again := d.Do(t, "POST", blackbox.AdjustPath, body, keyed).Is(t, 202, "").With(t, "idempotency-replayed", "true")
		id := blackbox.Standing(t, first.Body)
		sdk, err := client.New(d.URL)
		storetest.Must(t, err)
		sdk.Token = d.Boss["x-auth"]
		var waits *client.Error
		err = sdk.Call(t.Context(), "POST", blackbox.AdjustPath, json.RawMessage(body), nil, client.Once("once"))
		if !errors.As(err, &waits) || waits.Status != 202 || waits.ApprovalID != id {
			t.Errorf("the client says %v of %s", err, id)
		}
		if string(again.Body) != string(first.Body) || s.Count("four_eyes") != 1 || d.Transfers() != 0 {
			t.Fatalf("%s, then %s: %d requests, %d transfers", first, again, s.Count("four_eyes"), d.Transfers())
		}
		if hits := blackbox.Find(s.AtRest(), "secret-1"); len(hits) > 0 || strings.Contains(d.Log(), "secret-1") {
			t.Errorf("what was asked for lies open in %v", hits)
		}

		// A request that would be refused is answered at once. A pending one shows both accounts before and after.
		var refused struct{ Code *int }
		d.Ok(t, "POST", blackbox.AdjustPath, d.Adjustment("D", "1"), d.Boss).Read(t, &refused)
		if refused.Code == nil || *refused.Code != 1 || s.Count("four_eyes") != 1 {
			t.Error("a debit without a balance is not refused")
		}
		r := d.Read(t, id)
		if r.Summary != "ADJUST_BALANCE of "+d.Customer.ID+": C 0.25 BTC" || len(r.Changes) != 2 || r.Refusal != nil ||
			fmt.Sprint(r.Changes[0].Before, r.Changes[0].After) != "map[available:0 balance:0 locked:0] "+
				"map[available:0.25 balance:0.25 locked:0]" || fmt.Sprint(r.Changes[1].After) != "map[balance:-0.25]" {
			t.Errorf("%+v", r)
		}
		d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/approve", nil, d.Boss).Is(t, 403, "FORBIDDEN")
		got := d.Approve(t, id, d.Chief, d.Other)
		r = d.Read(t, id)
		if !got.Success || got.Data.Status != "APPROVED" || *r.DecidedBy != d.Chief.ID || r.Request != nil ||
			!strings.Contains(string(r.Result), `"amount":0.25`) || d.Transfers() != 1 {
			t.Fatalf("%+v, then %+v, %d transfers", got, r, d.Transfers())
		}
		for actor, action := range map[string]string{d.Asker.ID: "ADJUST_BALANCE", d.Chief.ID: "FOUR_EYES_APPROVE"} {
			if s.Count("audit WHERE action = $1 AND actor_id = $2 AND outcome = 'success'", action, actor) != 1 {
				t.Errorf("no row of the audit says that %s did %s", actor, action)
			}
		}

		// A refusal ends an approval whose challenge is open.
		id = d.Adjust(t, d.Boss)
		open := d.Approving(t, id, d.Other)
		d.Ok(t, "POST", blackbox.ApprovalsPath+"/"+id+"/refuse", `{"reason":"Who is this?"}`, d.Other)
		late := blackbox.Outcome(t, d.Complete(t, open, open.Method(t, "SMS"), d.Code(t, d.Chief, "SMS")))
		if late.Success || late.Code != "INVALID_STATE" || d.Read(t, id).Status != "REFUSED" || d.Transfers() != 1 {
			t.Errorf("an approval after the refusal: %+v, %d transfers", late, d.Transfers())
		}
	})
}

// Two hundred approvals arrive at once, from four people and on two nodes if the database supports two. One
// executes the request, and only its approver gets the success.
func TestFourEyesExecuteOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		const people = 4
		d := blackbox.NewCounter(t, s)
		nodes := []*blackbox.Node{d.Node, d.Node}
		if !strings.HasPrefix(s.DSN, "sqlite:") {
			nodes[1] = s.Start()
			defer nodes[1].Stop()
		}
		id := d.Adjust(t, d.Boss)
		var flows [people]blackbox.Flow
		var codes [people]string
		for i := range people {
			a := s.AddUser("admin")
			flows[i] = d.Approving(t, id, d.Login(t, a))
			codes[i] = d.Code(t, a, "SMS")
		}
		answers := blackbox.Crowd(t, 200, func(i int) (blackbox.Answer, error) {
			p := i % people
			return nodes[p%2].TryComplete(flows[p], flows[p].Method(t, "SMS"), codes[p])
		})
		won := map[int]bool{}
		for i, a := range answers {
			switch got := blackbox.Outcome(t, a); {
			case got.Success:
				won[i%people] = true
			case got.Code != "INVALID_STATE":
				t.Errorf("got %s", a)
			}
		}
		if len(won) != 1 || d.Transfers() != 1 || s.Count("four_eyes WHERE status = 'APPROVED'") != 1 {
			t.Errorf("%d carried it out, %d transfers", len(won), d.Transfers())
		}
		s.Succeeds("", "ledger", "verify")
	})
}

// A kill loses no request, and an approval that is repeated afterwards does not execute it twice.
func TestFourEyesSurviveKills(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s)
		for round := 1; round <= 4; round++ {
			id := d.Adjust(t, d.Boss)
			f := d.Approving(t, id, d.Other)
			sms, code := f.Method(t, "SMS"), d.Code(t, d.Chief, "SMS")
			done := make(chan struct{})
			go func() {
				defer close(done)
				d.TryComplete(f, sms, code)
			}()
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
			d.Kill()
			<-done
			d.Node = s.Start()
			got := blackbox.Outcome(t, d.Complete(t, f, sms, code))
			if !got.Success || d.Read(t, id).Status != "APPROVED" || d.Transfers() != round {
				t.Errorf("round %d: %+v, %d transfers", round, got, d.Transfers())
			}
		}
	})
}

package office

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// An adjustment waits for a second person, whose approval executes it once and exactly as requested.
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

		// A request that would be refused, or would change nothing, is answered at once.
		d.Do(t, "POST", blackbox.AdjustPath, d.Adjustment("C", "-1"), d.Boss).Is(t, 400, "")
		for _, refused := range []string{strings.Replace(d.Adjustment("C", "1"), d.Customer.ID, "nobody", 1),
			d.Adjustment("D", "1")} {
			var a struct{ Code *int }
			if d.Ok(t, "POST", blackbox.AdjustPath, refused, d.Boss).Read(t, &a); a.Code == nil || *a.Code != 1 {
				t.Errorf("%s is not refused", refused)
			}
		}
		d.Do(t, "POST", blackbox.AdjustPath, body, d.Login(t, d.Customer)).Is(t, 403, "FORBIDDEN")
		if got := s.Count("four_eyes"); got != 1 {
			t.Errorf("%d requests", got)
		}

		var list []json.RawMessage
		d.Ok(t, "GET", blackbox.ApprovalsPath+"?status=PENDING", nil, d.Other).Read(t, &list)
		if len(list) != 1 || !slices.Equal(sortedKeys(t, list[0]), []string{"decidedAt", "decidedBy", "expiresAt", "id",
			"method", "path", "reason", "requestedAt", "requestedBy", "result", "status", "summary"}) {
			t.Fatalf("the list %s", list)
		}
		r := d.Read(t, id)
		if r.Method+" "+r.Path != blackbox.AdjustKey || r.RequestedBy != d.Asker.ID || r.Status != "PENDING" ||
			r.DecidedBy != nil || r.Summary != "ADJUST_BALANCE of "+d.Customer.ID+": C 0.25 BTC" || string(r.Result) != "null" {
			t.Errorf("%+v", r)
		}

		// A pending request shows its body, and both accounts before and after.
		if len(r.Changes) != 2 || r.Changes[0].Of != "user" || r.Changes[0].ID != d.Customer.ID || r.Refusal != nil ||
			fmt.Sprint(r.Changes[0].Before, r.Changes[0].After) != "map[available:0 balance:0 locked:0] "+
				"map[available:0.25 balance:0.25 locked:0]" || r.Changes[1].Of != "treasury" ||
			fmt.Sprint(r.Changes[1].After) != "map[balance:-0.25]" || r.Request["uniqueId"] != "secret-1" {
			t.Errorf("it would change %+v of %v", r.Changes, r.Request)
		}
		d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/approve", nil, d.Boss).Is(t, 403, "FORBIDDEN")
		d.Do(t, "POST", blackbox.ApprovalsPath+"/none/approve", nil, d.Other).Is(t, 404, "RECORD_NOT_FOUND")
		got := d.Approve(t, id, d.Chief, d.Other)
		r = d.Read(t, id)
		if !got.Success || got.Data.Status != "APPROVED" || r.Status != "APPROVED" || *r.DecidedBy != d.Chief.ID ||
			r.DecidedAt == nil || r.Request != nil || r.Changes != nil ||
			!strings.Contains(string(r.Result), `"amount":0.25`) || d.Transfers() != 1 {
			t.Fatalf("%+v, then %+v, %d transfers", got, r, d.Transfers())
		}
		for actor, action := range map[string]string{d.Asker.ID: "ADJUST_BALANCE", d.Chief.ID: "FOUR_EYES_APPROVE"} {
			if s.Count("audit WHERE action = $1 AND actor_id = $2 AND outcome = 'success'", action, actor) != 1 {
				t.Errorf("no row of the audit says that %s did %s", actor, action)
			}
		}
		d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/approve", nil, d.Other).Is(t, 409, "INVALID_STATE")
		if a := d.Ok(t, "POST", blackbox.AdjustPath, body, d.Boss); !strings.Contains(string(a.Body), `"code":null`) {
			t.Errorf("what is done was asked for again: %s", a)
		}

		id = d.Adjust(t, d.Boss)
		refuse := blackbox.ApprovalsPath + "/" + id + "/refuse"
		d.Do(t, "POST", refuse, `{}`, d.Other).Is(t, 400, "INVALID_FIELD")
		d.Do(t, "POST", refuse, `{"reason":" "}`, d.Other).Is(t, 400, "INVALID_FIELD")
		open := d.Approving(t, id, d.Other)
		d.Ok(t, "POST", refuse, `{"reason":"Who is this?"}`, d.Other)
		r = d.Read(t, id)
		if r.Status != "REFUSED" || *r.Reason != "Who is this?" || *r.DecidedBy != d.Chief.ID {
			t.Errorf("%+v", r)
		}
		late := blackbox.Outcome(t, d.Complete(t, open, open.Method(t, "SMS"), d.Code(t, d.Chief, "SMS")))
		if late.Success || late.Code != "INVALID_STATE" || d.Read(t, id).Status != "REFUSED" || d.Transfers() != 1 {
			t.Errorf("an approval after the refusal: %+v, %d transfers", late, d.Transfers())
		}
		d.Do(t, "POST", refuse, `{"reason":"again"}`, d.Other).Is(t, 409, "INVALID_STATE")
	})
}

func sortedKeys(t *testing.T, object []byte) (names []string) {
	t.Helper()
	for name := range blackbox.Keys(t, object) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
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
		if got := s.Command("", "ledger", "verify"); got.Code != 0 {
			t.Errorf("ledger verify: %s", got.ErrOut)
		}
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

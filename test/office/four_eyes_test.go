package office

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Two hundred approvals arrive at once, from four people and on two nodes if the database supports two. One
// executes the request, which the Go client has made, and only its approver gets the success.
func TestFourEyesExecuteOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		const people = 4
		d := blackbox.NewCounter(t, s)
		nodes := []*blackbox.Node{d.Node, d.Node}
		if !strings.HasPrefix(s.DSN, "sqlite:") {
			nodes[1] = s.Start()
			defer nodes[1].Stop()
		}
		sdk, err := client.New(d.URL)
		storetest.Must(t, err)
		sdk.Token = d.Boss["x-auth"]
		var waits *client.Error
		err = sdk.Call(t.Context(), "POST", blackbox.AdjustPath, json.RawMessage(d.Adjustment("C", "0.25")), nil)
		if !errors.As(err, &waits) || waits.Status != 202 {
			t.Fatalf("the client says %v", err)
		}
		id := waits.ApprovalID
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

const keysPath = "/admin/service-keys"

// With four eyes the new key of a service client is made when its requester fetches it. Of concurrent fetches one makes
// the key, which is kept nowhere, and the others get none (D-EXT-08).
func TestFourEyesShowSecretOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s, "MFA_FOUR_EYES=POST "+keysPath)
		d.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("PAYOUT"), d.Boss)
		id := d.Ask(t, "POST", keysPath, `{"name":"shop","actions":["PAYOUT"]}`, d.Boss)
		if got := d.Approve(t, id, d.Chief, d.Other); !got.Success || s.Count("service_key") != 0 {
			t.Fatalf("%+v, or the key exists before it is fetched", got)
		}
		var keys []string
		for _, a := range blackbox.Crowd(t, 40, func(int) (blackbox.Answer, error) {
			return d.Try("POST", blackbox.ApprovalsPath+"/"+id+"/fetch", nil, d.Boss)
		}) {
			var got struct {
				Data struct {
					Result struct{ Data struct{ Key string } }
				}
			}
			if json.Unmarshal(a.Body, &got) == nil && a.Status == 200 && got.Data.Result.Data.Key != "" {
				keys = append(keys, got.Data.Result.Data.Key)
			} else if a.Code() != "INVALID_STATE" {
				t.Errorf("got %s", a)
			}
		}
		if len(keys) != 1 || s.Count("service_key") != 1 {
			t.Fatalf("%d keys were shown", len(keys))
		}
		d.Do(t, "GET", "/guard/challenges/none", nil, blackbox.Headers{"service-auth": keys[0]}).
			Is(t, 404, "RECORD_NOT_FOUND")
		if hits := blackbox.Find(s.AtRest(), keys[0]); len(hits) > 0 || strings.Contains(d.Log(), keys[0]) {
			t.Errorf("the key lies open in %v", hits)
		}
	})
}

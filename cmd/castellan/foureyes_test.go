package main

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
	"castellan/internal/blackbox"
)

const (
	approvalsPath = "/admin/approvals"
	adjustKey     = "POST " + adjustPath
)

// approvalRecord is a request that waits, or has waited, for a second person.
type approvalRecord struct {
	ID, Method, Path, Summary, RequestedBy, Status, ExpiresAt string
	DecidedBy, DecidedAt, Reason                              *string
	Result                                                    json.RawMessage
	Request                                                   map[string]any
	Changes                                                   []struct {
		Of, ID        string
		Before, After map[string]any
	}
	Refusal *string
}

// counter is a service where adjustments wait for a second person.
type counter struct {
	*blackbox.Node
	*blackbox.Site
	boss, other            blackbox.Headers
	asker, chief, customer blackbox.Account // of boss, of other, and whose balance is adjusted
	n                      int
}

func newCounter(t *testing.T, s *blackbox.Site, settings ...string) *counter {
	t.Helper()
	s.Set(append([]string{"LIMITS_ENABLED=false", "LOG_LEVEL=info", "MFA_FOUR_EYES=" + adjustKey}, settings...)...)
	n := s.Start()
	s.Exec(`UPDATE parameter SET json = '{"BTC":{"BTC":"bc1qtreasury"}}' WHERE code = 'TREASURY'`)
	n.Stop()
	d := &counter{Node: s.Start(), Site: s,
		asker: s.AddUser("admin"), chief: s.AddUser("admin"), customer: s.AddUser("user")}
	d.boss, d.other = d.login(t, d.asker), d.login(t, d.chief)
	return d
}

func (d *counter) login(t *testing.T, a blackbox.Account) blackbox.Headers {
	t.Helper()
	token, _ := d.Session(t, a)
	return blackbox.Headers{"x-auth": token}
}

// adjustment is the body of another adjustment.
func (d *counter) adjustment(kind, amount string) string {
	d.n++
	return fmt.Sprintf(`{"userId":%q,"currencyCode":"BTC","networkCode":"BTC","amount":%s,"type":%q,`+
		`"uniqueId":"secret-%d"}`, d.customer.ID, amount, kind, d.n)
}

// ask sends a request that has to wait, and returns the id of its approval.
func (d *counter) ask(t *testing.T, method, path, body string, who blackbox.Headers) string {
	t.Helper()
	return standing(t, d.Do(t, method, path, body, who).Is(t, 202, "").Body)
}

// adjust asks for a credit.
func (d *counter) adjust(t *testing.T, who blackbox.Headers) string {
	t.Helper()
	return d.ask(t, "POST", adjustPath, d.adjustment("C", "0.25"), who)
}

// standing reads the answer of a call that waits.
func standing(t *testing.T, body []byte) string {
	t.Helper()
	var a struct {
		Data struct{ ApprovalID, ExpiresAt string }
	}
	if err := json.Unmarshal(body, &a); err != nil || a.Data.ApprovalID == "" {
		t.Fatalf("%v: %s", err, body)
	}
	if _, err := time.Parse(time.RFC3339, a.Data.ExpiresAt); err != nil {
		t.Error(err)
	}
	return a.Data.ApprovalID
}

// approving starts the challenge of an approval.
func (d *counter) approving(t *testing.T, id string, who blackbox.Headers) blackbox.Flow {
	t.Helper()
	return blackbox.FlowOf(t, d.Do(t, "POST", approvalsPath+"/"+id+"/approve", nil, who))
}

// settled is the outcome of an approval.
type settled struct {
	Success       bool
	Code, Message string
	Data          approvalRecord
}

func outcome(t *testing.T, a blackbox.Answer) settled {
	t.Helper()
	var final struct {
		Action     string
		ExecResult settled
	}
	if a.Is(t, 200, "").Read(t, &final); final.Action != "APPROVE_REQUEST" {
		t.Fatalf("got %s", a)
	}
	return final.ExecResult
}

// approve approves a request with an account's SMS.
func (d *counter) approve(t *testing.T, id string, a blackbox.Account, who blackbox.Headers) settled {
	t.Helper()
	f := d.approving(t, id, who)
	return outcome(t, d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, a, "SMS")))
}

func (d *counter) read(t *testing.T, id string) (r approvalRecord) {
	t.Helper()
	d.Ok(t, "GET", approvalsPath+"/"+id, nil, d.other).Read(t, &r)
	return r
}

func (d *counter) transfers() int { return d.Count("transfer") }

// An adjustment waits for a second person, who carries it out as the first one asked
// for it, once.
func TestFourEyes(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := newCounter(t, s)
		body := d.adjustment("C", "0.25")
		keyed := blackbox.Headers{"x-auth": d.boss["x-auth"], "idempotency-key": "once"}
		first := d.Do(t, "POST", adjustPath, body, keyed).Is(t, 202, "").Keys(t, "data")
		again := d.Do(t, "POST", adjustPath, body, keyed).Is(t, 202, "").With(t, "idempotency-replayed", "true")
		id := standing(t, first.Body)
		sdk, err := client.New(d.URL)
		if err != nil {
			t.Fatal(err)
		}
		sdk.Token = d.boss["x-auth"]
		var waits *client.Error
		err = sdk.Call(t.Context(), "POST", adjustPath, json.RawMessage(body), nil, client.Once("once"))
		if !errors.As(err, &waits) || waits.Status != 202 || waits.ApprovalID != id {
			t.Errorf("the client says %v of %s", err, id)
		}
		if string(again.Body) != string(first.Body) || s.Count("four_eyes") != 1 || d.transfers() != 0 {
			t.Fatalf("%s, then %s: %d requests, %d transfers", first, again, s.Count("four_eyes"), d.transfers())
		}
		if hits := blackbox.Find(s.AtRest(), "secret-1"); len(hits) > 0 || strings.Contains(d.Log(), "secret-1") {
			t.Errorf("what was asked for lies open in %v", hits)
		}

		// What would be refused, or would change nothing, is answered at once.
		d.Do(t, "POST", adjustPath, d.adjustment("C", "-1"), d.boss).Is(t, 400, "")
		for _, refused := range []string{strings.Replace(d.adjustment("C", "1"), d.customer.ID, "nobody", 1),
			d.adjustment("D", "1")} {
			var a struct{ Code *int }
			if d.Ok(t, "POST", adjustPath, refused, d.boss).Read(t, &a); a.Code == nil || *a.Code != 1 {
				t.Errorf("%s is not refused", refused)
			}
		}
		d.Do(t, "POST", adjustPath, body, d.login(t, d.customer)).Is(t, 403, "FORBIDDEN")
		if got := s.Count("four_eyes"); got != 1 {
			t.Errorf("%d requests", got)
		}

		var list []json.RawMessage
		d.Ok(t, "GET", approvalsPath+"?status=PENDING", nil, d.other).Read(t, &list)
		if len(list) != 1 || !slices.Equal(sortedKeys(t, list[0]), []string{"decidedAt", "decidedBy", "expiresAt", "id",
			"method", "path", "reason", "requestedAt", "requestedBy", "result", "status", "summary"}) {
			t.Fatalf("the list %s", list)
		}
		r := d.read(t, id)
		if r.Method+" "+r.Path != adjustKey || r.RequestedBy != d.asker.ID || r.Status != "PENDING" || r.DecidedBy != nil ||
			r.Summary != "ADJUST_BALANCE of "+d.customer.ID+": C 0.25 BTC" || string(r.Result) != "null" {
			t.Errorf("%+v", r)
		}

		// What waits shows what was asked for, and both accounts before and after.
		if len(r.Changes) != 2 || r.Changes[0].Of != "user" || r.Changes[0].ID != d.customer.ID || r.Refusal != nil ||
			fmt.Sprint(r.Changes[0].Before, r.Changes[0].After) != "map[available:0 balance:0 locked:0] "+
				"map[available:0.25 balance:0.25 locked:0]" || r.Changes[1].Of != "treasury" ||
			fmt.Sprint(r.Changes[1].After) != "map[balance:-0.25]" || r.Request["uniqueId"] != "secret-1" {
			t.Errorf("it would change %+v of %v", r.Changes, r.Request)
		}
		d.Do(t, "POST", approvalsPath+"/"+id+"/approve", nil, d.boss).Is(t, 403, "FORBIDDEN")
		d.Do(t, "POST", approvalsPath+"/none/approve", nil, d.other).Is(t, 404, "RECORD_NOT_FOUND")
		got := d.approve(t, id, d.chief, d.other)
		r = d.read(t, id)
		if !got.Success || got.Data.Status != "APPROVED" || r.Status != "APPROVED" || *r.DecidedBy != d.chief.ID ||
			r.DecidedAt == nil || r.Request != nil || r.Changes != nil ||
			!strings.Contains(string(r.Result), `"amount":0.25`) || d.transfers() != 1 {
			t.Fatalf("%+v, then %+v, %d transfers", got, r, d.transfers())
		}
		for actor, action := range map[string]string{d.asker.ID: "ADJUST_BALANCE", d.chief.ID: "FOUR_EYES_APPROVE"} {
			if s.Count("audit WHERE action = $1 AND actor_id = $2 AND outcome = 'success'", action, actor) != 1 {
				t.Errorf("no row of the audit says that %s did %s", actor, action)
			}
		}
		d.Do(t, "POST", approvalsPath+"/"+id+"/approve", nil, d.other).Is(t, 409, "INVALID_STATE")
		if a := d.Ok(t, "POST", adjustPath, body, d.boss); !strings.Contains(string(a.Body), `"code":null`) {
			t.Errorf("what is done was asked for again: %s", a)
		}

		id = d.adjust(t, d.boss)
		refuse := approvalsPath + "/" + id + "/refuse"
		d.Do(t, "POST", refuse, `{}`, d.other).Is(t, 400, "INVALID_FIELD")
		d.Do(t, "POST", refuse, `{"reason":" "}`, d.other).Is(t, 400, "INVALID_FIELD")
		open := d.approving(t, id, d.other)
		d.Ok(t, "POST", refuse, `{"reason":"Who is this?"}`, d.other)
		r = d.read(t, id)
		if r.Status != "REFUSED" || *r.Reason != "Who is this?" || *r.DecidedBy != d.chief.ID {
			t.Errorf("%+v", r)
		}
		late := outcome(t, d.Complete(t, open, open.Method(t, "SMS"), d.Code(t, d.chief, "SMS")))
		if late.Success || late.Code != "INVALID_STATE" || d.read(t, id).Status != "REFUSED" || d.transfers() != 1 {
			t.Errorf("an approval after the refusal: %+v, %d transfers", late, d.transfers())
		}
		d.Do(t, "POST", refuse, `{"reason":"again"}`, d.other).Is(t, 409, "INVALID_STATE")
	})
}

func sortedKeys(t *testing.T, object []byte) (names []string) {
	t.Helper()
	for name := range keys(t, object) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Of two hundred approvals at the same moment, by ten people and on two nodes where the
// database can serve two, one carries the request out, and its person alone is told so.
func TestFourEyesOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		const people = 10
		d := newCounter(t, s)
		nodes := []*blackbox.Node{d.Node, d.Node}
		if !strings.HasPrefix(s.DSN, "sqlite:") {
			nodes[1] = s.Start()
			defer nodes[1].Stop()
		}
		id := d.adjust(t, d.boss)
		var flows [people]blackbox.Flow
		var codes [people]string
		for i := range people {
			a := s.AddUser("admin")
			flows[i] = d.approving(t, id, d.login(t, a))
			codes[i] = d.Code(t, a, "SMS")
		}
		answers := crowd(t, 200, func(i int) (blackbox.Answer, error) {
			p := i % people
			return nodes[p%2].TryComplete(flows[p], flows[p].Method(t, "SMS"), codes[p])
		})
		won := map[int]bool{}
		for i, a := range answers {
			switch got := outcome(t, a); {
			case got.Success:
				won[i%people] = true
			case got.Code != "INVALID_STATE":
				t.Errorf("got %s", a)
			}
		}
		if len(won) != 1 || d.transfers() != 1 || s.Count("four_eyes WHERE status = 'APPROVED'") != 1 {
			t.Errorf("%d carried it out, %d transfers", len(won), d.transfers())
		}
		if got := s.Command("", "ledger", "verify"); got.Code != 0 {
			t.Errorf("ledger verify: %s", got.ErrOut)
		}
	})
}

// A kill loses no request, and none is carried out twice by an approval that is
// repeated after it.
func TestFourEyesSurviveKills(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := newCounter(t, s)
		for round := 1; round <= 4; round++ {
			id := d.adjust(t, d.boss)
			f := d.approving(t, id, d.other)
			sms, code := f.Method(t, "SMS"), d.Code(t, d.chief, "SMS")
			done := make(chan struct{})
			go func() {
				defer close(done)
				d.TryComplete(f, sms, code)
			}()
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
			d.Kill()
			<-done
			d.Node = s.Start()
			got := outcome(t, d.Complete(t, f, sms, code))
			if !got.Success || d.read(t, id).Status != "APPROVED" || d.transfers() != round {
				t.Errorf("round %d: %+v, %d transfers", round, got, d.transfers())
			}
		}
	})
}

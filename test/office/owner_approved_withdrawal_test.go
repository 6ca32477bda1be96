package office

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

const (
	withdrawalsPath = "/integration/withdrawals"
	resumeKey       = "POST /admin/withdrawals/{id}/resume"
	cancelKey       = "POST /admin/withdrawals/{id}/cancel"
)

// vault is a service with a wallet, and a customer with 1 BTC who may withdraw it. Resuming and cancelling a
// withdrawal require a second person.
type vault struct {
	*blackbox.Counter
	wallet, owner blackbox.Headers
}

func newVault(t *testing.T, s *blackbox.Site, fourEyes ...string) *vault {
	t.Helper()
	d := &vault{Counter: blackbox.NewCounter(t, s, "MFA_FOUR_EYES="+strings.Join(fourEyes, ","))}
	s.Exec(`UPDATE users SET level = 1`)
	s.Exec(`INSERT INTO exchange_pair (base, quote) VALUES ('BTC', 'TRY')`)
	s.Exec(`INSERT INTO exchange_rate (pair_id, at, rate, source, created_at) SELECT id, $1, '100', 'test', $1
		FROM exchange_pair WHERE base = 'BTC' AND quote = 'TRY'`, time.Now().Add(-time.Minute).UnixMilli())
	d.wallet = s.ServiceKey("wallet", "--role", "admin")
	blackbox.Until(t, 10*time.Second, "the key is known", func() bool {
		return d.Do(t, "GET", "/integration/events", nil, d.wallet).Status == 200
	})
	d.Ok(t, "POST", blackbox.AdjustPath, d.Adjustment("C", "1"), d.Boss)
	d.owner = d.Login(t, d.Customer)
	return d
}

// request is the body of a withdrawal request, which the customer approves.
func (d *vault) request(externalID string) map[string]any {
	return map[string]any{"externalId": externalID, "userToken": d.owner["x-auth"], "currencyCode": "BTC",
		"network": "BTC", "amount": 0.1, "address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}
}

// made returns the id of a withdrawal that the customer has approved.
func (d *vault) made(t *testing.T, externalID string) string {
	t.Helper()
	f := blackbox.FlowOf(t, d.Do(t, "POST", withdrawalsPath, d.request(externalID), d.wallet))
	return withdrawn(t, d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, d.Customer, "SMS")))
}

// withdrawn returns the id of the withdrawal in the outcome of a challenge.
func withdrawn(t *testing.T, a blackbox.Answer) string {
	t.Helper()
	var final struct {
		ExecResult struct{ Data struct{ ID string } }
	}
	if a.Is(t, 200, "").Read(t, &final); final.ExecResult.Data.ID == "" {
		t.Fatalf("no withdrawal: %s", a)
	}
	return final.ExecResult.Data.ID
}

// status returns the status of a withdrawal.
func (d *vault) status(t *testing.T, id string) string {
	t.Helper()
	var a struct{ Data struct{ Status string } }
	d.Ok(t, "GET", withdrawalsPath+"/"+id, nil, d.wallet).Read(t, &a)
	return a.Data.Status
}

func (d *vault) move(t *testing.T, id, to string) {
	t.Helper()
	d.Ok(t, "PATCH", withdrawalsPath+"/"+id, map[string]string{"status": to}, d.wallet)
}

func (d *vault) holds() int { return d.Count("hold WHERE state = 'active'") }

// An owner approves a withdrawal with the token of the owner's session, also after a kill of the service.
func TestOwnerApprovesWithdrawal(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := newVault(t, s, resumeKey, cancelKey)
		f := blackbox.FlowOf(t, d.Do(t, "POST", withdrawalsPath, d.request("w1"), d.wallet))
		if s.Count("withdrawal_queue") != 0 || d.holds() != 0 {
			t.Error("a withdrawal before the owner has approved")
		}
		d.Kill()
		d.Node = s.Start()
		again := blackbox.FlowOf(t, d.Do(t, "POST", withdrawalsPath, d.request("w1"), d.wallet))
		if again.Challenge.ChallengeID != f.Challenge.ChallengeID {
			t.Errorf("challenge %s, then %s", f.Challenge.ChallengeID, again.Challenge.ChallengeID)
		}
		id := withdrawn(t, d.Complete(t, again, again.Method(t, "SMS"), d.Code(t, d.Customer, "SMS")))
		if got := d.status(t, id); got != "queued" || d.holds() != 1 {
			t.Errorf("approved: %s, %d holds", got, d.holds())
		}
		record := d.Ok(t, "POST", withdrawalsPath, d.request("w1"), d.wallet).Keys(t, "data")
		if !strings.Contains(string(record.Body), fmt.Sprintf(`"id":%q`, id)) {
			t.Errorf("the record %s", record)
		}
		ip := s.Text("SELECT ip FROM audit WHERE action = 'WITHDRAWAL_REQUEST'")
		if d.Count("audit WHERE action = 'WITHDRAWAL_REQUEST' AND actor_id = $1", d.Customer.ID) != 1 || ip == "" {
			t.Errorf("the audit names another actor, or the address %q", ip)
		}
		for _, secret := range []string{d.owner["x-auth"], d.wallet["service-auth"]} {
			if hits := blackbox.Find(s.AtRest(), secret); len(hits) > 0 || strings.Contains(d.Log(), secret) {
				t.Errorf("a credential is kept in %v", hits)
			}
		}
		d.Ok(t, "POST", "/auth/logout", nil, d.owner)
		d.Do(t, "POST", withdrawalsPath, d.request("w2"), d.wallet).Is(t, 401, "TOKEN_REVOKED")
	})
}

// An administrator's request to resume or cancel a withdrawal takes effect once, when a second person approves
// it.
func TestWithdrawalResumeAndCancelNeedSecondPerson(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := newVault(t, s, resumeKey, cancelKey)
		path := func(id, way string) string { return "/admin/withdrawals/" + id + "/" + way }
		events := func(of string) int { return d.Count("integration_event WHERE type = $1", of) }
		id := d.made(t, "resumed")
		d.move(t, id, "timeOut")
		waits := d.Ask(t, "POST", path(id, "resume"), `{"reason":"the node is back"}`, d.Boss)
		d.Do(t, "POST", blackbox.ApprovalsPath+"/"+waits+"/approve", nil, d.Boss).Is(t, 403, "FORBIDDEN")
		if got := d.status(t, id); got != "timeOut" || events("withdrawal.resumed") != 0 {
			t.Errorf("before the approval: %s", got)
		}
		late := d.Approving(t, waits, d.Other)
		lateCode := d.Code(t, d.Chief, "SMS")
		if got := d.Approve(t, waits, d.Chief, d.Other); !got.Success || got.Data.Status != "APPROVED" {
			t.Fatalf("%+v", got)
		}
		if got := d.status(t, id); got != "queued" || events("withdrawal.resumed") != 1 {
			t.Errorf("after the approval: %s", got)
		}
		d.move(t, id, "timeOut") // a second resume would be possible
		got := blackbox.Outcome(t, d.Complete(t, late, late.Method(t, "SMS"), lateCode))
		if got.Success || got.Code != "INVALID_STATE" || d.status(t, id) != "timeOut" || events("withdrawal.resumed") != 1 {
			t.Errorf("approved again: %+v", got)
		}
		waits = d.Ask(t, "POST", path(id, "cancel"), `{"reason":"asked"}`, d.Boss)
		if d.status(t, id) != "timeOut" || d.holds() != 1 || events("withdrawal.cancelled") != 0 {
			t.Error("cancelled before the approval")
		}
		if r := d.Read(t, waits); !strings.Contains(r.Summary, "WITHDRAWAL_CANCEL "+id+" of "+d.Customer.ID) {
			t.Errorf("the summary %q", r.Summary)
		}
		if got := d.Approve(t, waits, d.Chief, d.Other); !got.Success || d.status(t, id) != "cancelled" || d.holds() != 0 ||
			events("withdrawal.cancelled") != 1 {
			t.Errorf("%+v, %s", got, d.status(t, id))
		}

		// A claim by the wallet in the meantime wins.
		id = d.made(t, "claimed")
		waits = d.Ask(t, "POST", path(id, "cancel"), `{}`, d.Boss)
		d.move(t, id, "processing")
		got = d.Approve(t, waits, d.Chief, d.Other)
		if got.Success || got.Code != "INVALID_STATE" || d.Read(t, waits).Status != "FAILED" ||
			d.status(t, id) != "processing" || d.holds() != 1 {
			t.Errorf("cancelled what the wallet has claimed: %+v, %s", got, d.status(t, id))
		}

	})
}

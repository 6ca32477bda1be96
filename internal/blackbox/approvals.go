package blackbox

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

// Grants gives an account a role of its own with some endpoints, and returns its id.
func (d *Counter) Grants(t *testing.T, a Account, keys ...string) (roleID int64) {
	t.Helper()
	d.N++
	return Role(t, d.Node, Admin(t, d.Site, d.Node), a, fmt.Sprint("role-", d.N), keys...)
}

const (
	ApprovalsPath = "/admin/approvals"
	AdjustKey     = "POST " + AdjustPath
)

// ApprovalRecord is a request that waits, or has waited, for a second person.
type ApprovalRecord struct {
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

// Counter is a service where adjustments require a second person.
type Counter struct {
	*Node
	*Site
	Boss, Other            Headers
	Asker, Chief, Customer Account // of boss, of other, and whose balance is adjusted
	N                      int
}

func NewCounter(t *testing.T, s *Site, settings ...string) *Counter {
	t.Helper()
	s.Set(append([]string{"LIMITS_ENABLED=false", "LOG_LEVEL=info", "MFA_FOUR_EYES=" + AdjustKey}, settings...)...)
	n := s.Start()
	s.Exec(`UPDATE parameter SET json = '{"BTC":{"BTC":"bc1qtreasury"}}' WHERE code = 'TREASURY'`)
	n.Stop()
	d := &Counter{Node: s.Start(), Site: s,
		Asker: s.AddUser("admin"), Chief: s.AddUser("admin"), Customer: s.AddUser("user")}
	d.Boss, d.Other = d.Login(t, d.Asker), d.Login(t, d.Chief)
	return d
}

func (d *Counter) Login(t *testing.T, a Account) Headers {
	t.Helper()
	return d.Auth(t, a)
}

// Adjustment is the body of another adjustment.
func (d *Counter) Adjustment(kind, amount string) string {
	d.N++
	return fmt.Sprintf(`{"userId":%q,"currencyCode":"BTC","networkCode":"BTC","amount":%s,"type":%q,`+
		`"uniqueId":"secret-%d"}`, d.Customer.ID, amount, kind, d.N)
}

// Ask sends a request that has to wait, and returns the id of its approval.
func (d *Counter) Ask(t *testing.T, method, path, body string, who Headers) string {
	t.Helper()
	return Standing(t, d.Do(t, method, path, body, who).Is(t, 202, "").Body)
}

// Adjust requests a credit.
func (d *Counter) Adjust(t *testing.T, who Headers) string {
	t.Helper()
	return d.Ask(t, "POST", AdjustPath, d.Adjustment("C", "0.25"), who)
}

// Standing reads the answer of a call that waits.
func Standing(t *testing.T, body []byte) string {
	t.Helper()
	var a struct {
		Data struct{ ApprovalID, ExpiresAt string }
	}
	if err := json.Unmarshal(body, &a); err != nil || a.Data.ApprovalID == "" {
		t.Fatalf("%v: %s", err, body)
	}
	storetest.Must(t, storetest.Err(time.Parse(time.RFC3339, a.Data.ExpiresAt)))
	return a.Data.ApprovalID
}

// Approving starts the challenge of an approval.
func (d *Counter) Approving(t *testing.T, id string, who Headers) Flow {
	t.Helper()
	return FlowOf(t, d.Do(t, "POST", ApprovalsPath+"/"+id+"/approve", nil, who))
}

// Settled is the outcome of an approval.
type Settled struct {
	Success       bool
	Code, Message string
	Data          ApprovalRecord
}

func Outcome(t *testing.T, a Answer) Settled {
	t.Helper()
	var final struct {
		Action     string
		ExecResult Settled
	}
	if a.Is(t, 200, "").Read(t, &final); final.Action != "APPROVE_REQUEST" {
		t.Fatalf("got %s", a)
	}
	return final.ExecResult
}

// Approve approves a request with an account's SMS.
func (d *Counter) Approve(t *testing.T, id string, a Account, who Headers) Settled {
	t.Helper()
	f := d.Approving(t, id, who)
	return Outcome(t, d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, a, "SMS")))
}

func (d *Counter) Read(t *testing.T, id string) (r ApprovalRecord) {
	t.Helper()
	d.Ok(t, "GET", ApprovalsPath+"/"+id, nil, d.Other).Read(t, &r)
	return r
}

func (d *Counter) Transfers() int { return d.Count("transfer") }

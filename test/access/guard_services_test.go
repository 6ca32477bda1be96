package access

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The Go client starts, waits, redeems and verifies the callback. It counts requests under a limit of the service.
func TestGoClientGuardsAnOperation(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		d := newShop(t, s, blackbox.Patient(s).Start())
		c := storetest.Value(client.New(d.URL))(t)
		c, ctx := c.Service(d.key["service-auth"]), t.Context()
		r := client.GuardRequest{ActionCode: "PAYOUT", UserID: d.id, Title: "Pay out", Reference: "go",
			Rows: []client.GuardRow{{Key: "amount", Label: "Amount", Value: "1 EUR"}}, Payload: []byte(`["<&>"]`)}
		f, err := c.Guard(ctx, r)
		if err != nil || f.PAuth == "" {
			t.Fatal(err)
		}
		again, err := c.Guard(ctx, r)
		if err != nil || again.ID != f.ID {
			t.Fatalf("again: %+v, %v", again, err)
		}
		m, _ := f.Method("SMS")
		if o, err := f.Complete(ctx, m, d.Code(t, d.customer, "SMS")); err != nil || !o.Success {
			t.Fatalf("%+v, %v", o, err)
		}
		out, err := c.GuardOutcome(ctx, f.ID)
		if err != nil || out.Status != "COMPLETED" || out.Grant == "" {
			t.Fatalf("%+v, %v", out, err)
		}
		var payload []string
		done, err := c.RedeemGrant(ctx, out.Grant)
		if err != nil || json.Unmarshal(done.Payload, &payload) != nil || payload[0] != "<&>" {
			t.Fatalf("%+v, %v", done, err)
		}
		_, err = c.RedeemGrant(ctx, out.Grant)
		if e, is := errors.AsType[*client.Error](err); !is || e.Code != "GRANT_USED" || !e.RedeemedAt.Equal(done.RedeemedAt) {
			t.Errorf("redeemed again: %v", err)
		}
		got := d.calls.of(t, f.ID)
		storetest.Equal(t, storetest.Value(c.Callback(ctx, got.header, got.body))(t).Data.Reference, "go")
		if e, err := c.Callback(ctx, got.header, append(got.body, ' ')); err == nil {
			t.Errorf("a changed callback is accepted: %+v", e)
		}
		boss := blackbox.Admin(t, s, d.Node)
		made := d.Ok(t, "POST", "/admin/service-keys", `{"name":"counter","role":"admin"}`, boss)
		blackbox.Rule(t, d.Node, boss, "counter", "rate_limit", map[string]any{"period": 60000, "limit": 3,
			"appId": "counter", "targetEntityType": "USER_ID", "targetResources": []string{"LIMIT orders"}})
		c = c.Service(made.At(t, "data", "key"))
		for i, allowed := range []bool{true, false} {
			got, err := c.CountUnderLimit(ctx, client.LimitRequest{Rule: "orders", Entity: "a", Cost: 2})
			if err != nil || got.Allowed != allowed || got.Limit != 3 || got.Remaining != 1 || got.Reset <= 0 ||
				(got.Retry > 0) == allowed {
				t.Errorf("request %d: %+v, %v", i, got, err)
			}
		}
		if got, err := c.CountUnderLimit(ctx, client.LimitRequest{Rule: "orders", Entity: "a", Peek: true}); err != nil ||
			!got.Allowed || got.Remaining != 1 {
			t.Errorf("peek: %+v, %v", got, err)
		}
		_, err = c.CountUnderLimit(ctx, client.LimitRequest{Rule: "none", Entity: "a"})
		if e, is := errors.AsType[*client.Error](err); !is || e.Code != "INVALID_FIELD" {
			t.Errorf("an unknown limit: %v", err)
		}
	})
}

// A grant is redeemed once in a cluster, also if a node is killed meanwhile.
func TestGrantIsRedeemedOnceInACluster(t *testing.T) {
	c := blackbox.ThreeNodes(t, "LIMITS_ENABLED=false")
	d := newShop(t, c.Site, c.Nodes[0])
	for _, n := range c.Nodes {
		n.Awaits(t, blackbox.Within(5), 404, "GET", guardPath+"/none", nil, d.key)
	}
	for i, during := range []func(){nil, c.Nodes[2].Kill} {
		f := d.start(t, fmt.Sprint("r", i))
		d.approve(t, f)
		d.redeemedOnce(t, d.read(t, f.ChallengeID, 20), c.Nodes, during)
		d.called(t, f.ChallengeID, fmt.Sprint("r", i), "COMPLETED")
	}
}

const (
	guardPath  = "/guard/challenges"
	redeemPath = "/guard/grants/redeem"
)

// shop is another service with its customer, and the receiver of its callbacks.
type shop struct {
	*blackbox.Node
	site     *blackbox.Site
	key      blackbox.Headers
	customer blackbox.Account
	x        string // session of the customer
	id       string // of the customer
	calls    *calls
}

// calls are the callbacks that a service received. The first one is answered 503.
type calls struct {
	*httptest.Server
	mu     sync.Mutex
	failed bool
	got    []call
}

type call struct {
	header http.Header
	body   []byte
}

func receive(t *testing.T) *calls {
	c := &calls{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.failed {
			c.failed = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		c.got = append(c.got, call{r.Header, body})
	}))
	t.Cleanup(c.Close)
	return c
}

// of returns the callback about a challenge, once it has arrived.
func (c *calls) of(t *testing.T, challengeID string) (found call) {
	t.Helper()
	blackbox.Until(t, blackbox.Within(30), "the callback", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, one := range c.got {
			if strings.Contains(string(one.body), challengeID) {
				found = one
				return true
			}
		}
		return false
	})
	return found
}

func newShop(t *testing.T, s *blackbox.Site, n *blackbox.Node) *shop {
	t.Helper()
	d := &shop{Node: n, site: s, customer: s.Seeded("user"), calls: receive(t)}
	who := blackbox.Admin(t, s, n)
	n.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("PAYOUT"), who)
	n.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("REFUND"), who)
	blackbox.Policy(t, n, who, "PAYOUT", 1, `[["PUSH"],["SMS"]]`, "")
	d.key = d.add(t, "shop", "--actions", "PAYOUT,REFUND", "--callback", d.calls.URL)
	d.x, _ = n.Session(t, d.customer)
	d.id = s.Text("SELECT id FROM users WHERE phone = '" + d.customer.Number() + "'")
	return d
}

// add creates a key and waits until the node knows it.
func (d *shop) add(t *testing.T, name string, args ...string) blackbox.Headers {
	t.Helper()
	key := d.site.ServiceKey(name, args...)
	d.Awaits(t, blackbox.Within(5), 404, "GET", guardPath+"/none", nil, key)
	return key
}

// request is the body of a payout by the customer.
func (d *shop) request(reference string) map[string]any {
	return map[string]any{"actionCode": "PAYOUT", "userToken": d.x, "title": "Pay out 25 EUR", "reference": reference,
		"rows": []map[string]string{{"key": "amount", "label": "You pay", "value": "25.00 EUR"},
			{"key": "iban", "label": "Account", "value": "DE02120300000000202051"}},
		"payload": map[string]any{"payout": "order-" + reference}}
}

func (d *shop) start(t *testing.T, reference string) blackbox.Flow {
	t.Helper()
	return blackbox.FlowOf(t, d.Do(t, "POST", guardPath, d.request(reference), d.key))
}

// approve completes a challenge by SMS.
func (d *shop) approve(t *testing.T, f blackbox.Flow) {
	t.Helper()
	a := d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, d.customer, "SMS"))
	if final := blackbox.ReadFinal(t, a.Is(t, 200, "")); !final.ExecResult.Success {
		t.Fatalf("approved: %s", a)
	}
}

// guarded is a challenge as its service reads it.
type guarded struct {
	ID, Status, Reference, Grant string
	CompletedAt, RedeemedAt      *time.Time
}

func (d *shop) read(t *testing.T, id string, wait int) (g guarded) {
	t.Helper()
	h := maps.Clone(d.key)
	if wait > 0 {
		h["prefer"] = fmt.Sprintf("wait=%d", wait)
	}
	var a struct{ Data guarded }
	d.Ok(t, "GET", guardPath+"/"+id, nil, h).Keys(t, "data").Read(t, &a)
	if a.Data.ID != id || (a.Data.Grant != "") != (a.Data.Status == "COMPLETED" && a.Data.RedeemedAt == nil) {
		t.Fatalf("read %+v", a.Data)
	}
	return a.Data
}

// public reads a key of the JWKS.
func (d *shop) public(t *testing.T, kid string) ed25519.PublicKey {
	var set struct{ Keys []struct{ Kid, X string } }
	d.Ok(t, "GET", "/.well-known/jwks.json", nil, nil).Read(t, &set)
	for _, k := range set.Keys {
		if x, err := base64.RawURLEncoding.DecodeString(k.X); k.Kid == kid && err == nil {
			return x
		}
	}
	t.Fatalf("the JWKS has no key %q", kid)
	return nil
}

// called checks the callback about a challenge, with its signature.
func (d *shop) called(t *testing.T, id, reference, status string) {
	c := d.calls.of(t, id)
	var body struct {
		Type      string
		Timestamp time.Time
		Data      struct{ ID, Reference, Status string }
	}
	if err := json.Unmarshal(c.body, &body); err != nil || body.Type != "challenge."+strings.ToLower(status) ||
		body.Data.ID != id || body.Data.Reference != reference || body.Data.Status != status || body.Timestamp.IsZero() {
		t.Errorf("callback %s, %v; want %s of %s", c.body, err, status, reference)
	}
	sig, found := strings.CutPrefix(c.header.Get("webhook-signature"), "v1a,")
	raw, err := base64.StdEncoding.DecodeString(sig)
	signed := c.header.Get("webhook-id") + "." + c.header.Get("webhook-timestamp") + "." + string(c.body)
	if !found || err != nil || c.header.Get("webhook-id") == "" ||
		!ed25519.Verify(d.public(t, c.header.Get("webhook-key-id")), []byte(signed), raw) {
		t.Errorf("the signature of %v does not verify", c.header)
	}
}

// redeemedOnce redeems a grant by 200 callers over nodes, and runs during between. Exactly one redemption commits. Its
// answer can only be missing if a call was cut off.
func (d *shop) redeemedOnce(t *testing.T, g guarded, nodes []*blackbox.Node, during func()) {
	var won, cut int
	times := map[string]bool{}
	answers, errs := blackbox.TryCrowd(200, func(i int) (blackbox.Answer, error) {
		if i == 100 && during != nil {
			during()
		}
		return nodes[i%len(nodes)].Try("POST", redeemPath, map[string]string{"grant": g.Grant}, d.key)
	})
	for i, a := range answers {
		var body struct {
			RedeemedAt string
			Data       struct {
				Reference, RedeemedAt string
				Payload               struct{ Payout string }
			}
		}
		switch {
		case errs[i] != nil:
			cut++
		case a.Status == 200 && json.Unmarshal(a.Body, &body) == nil && body.Data.Reference == g.Reference &&
			body.Data.Payload.Payout == "order-"+g.Reference:
			won++
			times[body.Data.RedeemedAt] = true
		case a.Code() == "GRANT_USED" && a.Status == 409 && json.Unmarshal(a.Body, &body) == nil:
			times[body.RedeemedAt] = true
		case during != nil && a.Status == 503:
			cut++
		default:
			t.Errorf("redeemed: %s", a)
		}
	}
	if won > 1 || won == 0 && cut == 0 || len(times) != 1 {
		t.Errorf("%d redemptions succeeded, %d calls were cut off, at the times %v", won, cut, times)
	}
	rows := d.site.Count("audit WHERE action = 'GUARD_REDEEM' AND target = '" + g.ID + "'")
	if after := d.read(t, g.ID, 0); rows != 1 || after.RedeemedAt == nil || after.Grant != "" {
		t.Errorf("%d redemptions are in the audit: %+v", rows, after)
	}
}

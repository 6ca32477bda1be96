package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

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
		if e, err := c.Callback(ctx, got.header, got.body); err != nil || e.Data.Reference != "go" {
			t.Errorf("%+v, %v", e, err)
		}
		if e, err := c.Callback(ctx, got.header, append(got.body, ' ')); err == nil {
			t.Errorf("a changed callback is accepted: %+v", e)
		}
		boss := blackbox.Admin(t, s, d.Node)
		var made struct{ Data struct{ Key string } }
		d.Ok(t, "POST", "/admin/service-keys", `{"name":"counter","role":"admin"}`, boss).Read(t, &made)
		blackbox.Rule(t, d.Node, boss, "counter", "rate_limit", map[string]any{"period": 60000, "limit": 3,
			"appId": "counter", "targetEntityType": "USER_ID", "targetResources": []string{"LIMIT orders"}})
		c = c.Service(made.Data.Key)
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
		blackbox.Until(t, blackbox.Within(5), "the key is known everywhere", func() bool {
			return n.Do(t, "GET", guardPath+"/none", nil, d.key).Status == 404
		})
	}
	for i, during := range []func(){nil, c.Nodes[2].Kill} {
		f := d.start(t, fmt.Sprint("r", i))
		d.approve(t, f)
		d.redeemedOnce(t, d.read(t, f.ChallengeID, 20), c.Nodes, during)
		d.called(t, f.ChallengeID, fmt.Sprint("r", i), "COMPLETED")
	}
}

package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"castellan/client"
	"castellan/domain/factor/intent"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// Another service puts its own operation behind a challenge of its customer (D-EXT-10). The customer signs what the
// service sent, and the grant and the callback verify with the JWKS.
func TestGuardForServices(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := newShop(t, s, blackbox.Patient(s).Start())
		p := blackbox.Enroll(t, d.Node, d.customer, d.x, device.ES256, "")
		other := d.add(t, "other", "--actions", "PAYOUT")

		f := d.start(t, "r1")
		for range 2 { // the same request is the same challenge
			if again := d.start(t, "r1"); again.ChallengeID != f.ChallengeID || again.TS != f.TS {
				t.Fatalf("%+v and %+v", f, again)
			}
		}
		changed := d.request("r1")
		changed["payload"] = map[string]any{"payout": "another"}
		d.Do(t, "POST", guardPath, changed, d.key).Is(t, 409, "INVALID_STATE")
		d.Do(t, "POST", guardPath, d.request("r1"), nil).Is(t, 401, "UNAUTHENTICATED")
		d.Do(t, "POST", guardPath, d.request("r1"), blackbox.Admin(t, s, d.Node)).Is(t, 401, "UNAUTHENTICATED")
		foreign := d.request("r1")
		foreign["actionCode"] = "WITHDRAW"
		for range 3 {
			d.Do(t, "POST", guardPath, foreign, d.key).Is(t, 403, "FORBIDDEN")
		}
		// one row, or two around the end of a minute
		if n := s.Count("audit WHERE action = 'DENIED' AND actor_id = 'service:shop'"); n != 1 && n != 2 {
			t.Errorf("%d rows of the refusals", n)
		}
		if another := blackbox.FlowOf(t, d.Do(t, "POST", guardPath, d.request("r1"), other)); another.ChallengeID ==
			f.ChallengeID {
			t.Error("two services share a reference")
		}
		d.Do(t, "GET", guardPath+"/"+f.ChallengeID, nil, other).Is(t, 404, "RECORD_NOT_FOUND")
		if g := d.read(t, f.ChallengeID, 0); g.Status != "PENDING" || g.Reference != "r1" || g.CompletedAt != nil {
			t.Errorf("%+v", g)
		}

		item := intentOf(t, p, f)
		doc, err := intent.Parse(item.Intent)
		if err != nil || doc.Title != "Pay out 25 EUR" || doc.Action != "PAYOUT" || len(doc.Rows) < 2 ||
			doc.Rows[0] != (intent.Row{Key: "amount", Label: "You pay", Value: "25.00 EUR"}) ||
			doc.Rows[1].Value != "DE02120300000000202051" {
			t.Fatalf("%v: %s", err, item.Intent)
		}
		waited := make(chan guarded, 1)
		go func() { waited <- d.read(t, f.ChallengeID, 25) }()
		p.Answer(t, f, "APPROVED", func(c *device.Claims) { c.Intent = item.IntentDigest }).Is(t, 200, "")
		g := <-waited
		if g.Status != "COMPLETED" || g.CompletedAt == nil {
			t.Fatalf("after the approval: %+v", g)
		}
		claims := d.verified(t, g.Grant)
		for name, want := range map[string]any{"sub": d.id, "act": "PAYOUT", "ref": "r1", "int": item.IntentDigest,
			"aud": "shop", "jti": f.ChallengeID, "amr": "[PUSH]"} {
			if got := claims[name]; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("claim %s: %v, want %v", name, got, want)
			}
		}
		if at := claims["auth_time"].(float64); int64(at) != g.CompletedAt.Unix() {
			t.Errorf("auth_time %v, approved at %s", at, g.CompletedAt)
		}
		if claims["exp"].(float64)-claims["iat"].(float64) != 60 {
			t.Errorf("the grant lives from %v to %v", claims["iat"], claims["exp"])
		}
		if hits := blackbox.Find(s.AtRest(), "order-r1"); len(hits) > 0 {
			t.Errorf("the payload is at rest in %v", hits)
		}
		redeem := map[string]string{"grant": g.Grant}
		d.Do(t, "POST", redeemPath, redeem, other).Is(t, 404, "RECORD_NOT_FOUND")
		d.Do(t, "POST", redeemPath, map[string]string{"grant": g.Grant + "x"}, d.key).Is(t, 401, "UNAUTHENTICATED")
		d.Do(t, "POST", redeemPath, map[string]string{"grant": d.x}, d.key).Is(t, 401, "UNAUTHENTICATED")
		d.redeemedOnce(t, g, []*blackbox.Node{d.Node}, nil)
		d.called(t, f.ChallengeID, "r1", "COMPLETED")
		if again := d.start(t, "r1"); again.ChallengeID != f.ChallengeID || again.Status != "COMPLETED" {
			t.Errorf("the reference of a completed challenge: %+v", again)
		}
	})
}

// The Go client starts, waits, redeems and verifies the callback. It counts requests under a limit of the service.
func TestGoClientGuardsAnOperation(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		d := newShop(t, s, blackbox.Patient(s).Start())
		c, err := client.New(d.URL)
		if err != nil {
			t.Fatal(err)
		}
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

// A challenge of a service that ends otherwise is reported too: denied, failed, expired, or with its session.
func TestGuardedOperationIsNotApproved(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := newShop(t, s, blackbox.Patient(s).Start("MFA_CHALLENGE_TTL=10s"))
		p := blackbox.Enroll(t, d.Node, d.customer, d.x, device.ES256, "")
		blackbox.Tune(t, d.Node, blackbox.Admin(t, s, d.Node), "SMS", 9000, 0)
		blackbox.Tune(t, d.Node, blackbox.Admin(t, s, d.Node), "PUSH", 9000, 0)

		denied := d.start(t, "denied")
		p.Answer(t, denied, "DENIED").Is(t, 200, "")
		d.wants(t, denied.ChallengeID, "DENIED")
		d.called(t, denied.ChallengeID, "denied", "DENIED")
		d.Do(t, "POST", redeemPath, map[string]string{"grant": "x"}, d.key).Is(t, 401, "UNAUTHENTICATED")

		byID := d.request("byId") // without a session; it gets no answer
		delete(byID, "userToken")
		byID["userId"] = d.id
		expired := blackbox.FlowOf(t, d.Do(t, "POST", guardPath, byID, d.key))
		byID["userId"] = "unknown"
		byID["reference"] = "unknown-user"
		d.Do(t, "POST", guardPath, byID, d.key).Is(t, 404, "RECORD_NOT_FOUND")

		x, key := d.Session(t, d.customer)
		body := d.request("ended")
		body["userToken"] = x
		ended := blackbox.FlowOf(t, d.Do(t, "POST", guardPath, body, d.key))
		d.Ok(t, "POST", "/auth/logout", nil, blackbox.Headers{"x-auth": x})
		_ = key
		d.Complete(t, ended, ended.Method(t, "SMS"), "000000").Is(t, 409, "CHALLENGE_CLOSED")
		d.wants(t, ended.ChallengeID, "FAILED")
		d.called(t, ended.ChallengeID, "ended", "FAILED")

		d.wants(t, expired.ChallengeID, "EXPIRED")
		d.called(t, expired.ChallengeID, "byId", "EXPIRED")
	})
}

// A request that no user could read, or no one may start, is refused. A removed key ends within a second.
func TestGuardRefusesRequests(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := newShop(t, s, blackbox.Patient(s).Start())
		for field, v := range map[string]any{"title": "two\nlines", "rows": []any{}, "reference": "a\u061c",
			"payload": strings.Repeat("x", 16<<10), "userId": "u"} { // besides userToken
			body := d.request("refused")
			body[field] = v
			d.Do(t, "POST", guardPath, body, d.key).Is(t, 400, "INVALID_FIELD")
		}
		ended := d.request("refused")
		ended["userToken"] = d.x + "x"
		d.Do(t, "POST", guardPath, ended, d.key).Is(t, 401, "UNAUTHENTICATED")
		largest := d.request("largest")
		largest["payload"] = strings.Repeat("x", 16<<10-2)
		blackbox.FlowOf(t, d.Do(t, "POST", guardPath, largest, d.key))

		// A firewall rule limits each key by its name.
		other := d.add(t, "other", "--actions", "PAYOUT")
		blackbox.Rule(t, d.Node, blackbox.Admin(t, s, d.Node), "shop", "rate_limit", map[string]any{
			"targetEntityType": "APP_ID",
			"targetEntities":   []string{"shop"}, "targetResources": []string{"POST " + guardPath},
			"period": 600_000, "limit": 2})
		for range 2 {
			d.Ok(t, "POST", guardPath, d.request("limited"), d.key)
		}
		d.Do(t, "POST", guardPath, d.request("limited"), d.key).Is(t, 429, "RATE_LIMITED")
		d.Ok(t, "POST", guardPath, d.request("limited"), other)

		for _, args := range [][]string{{}, {"--actions", "PAYOUT", "--callback", "http://x.example/"}} {
			if got := s.Command("", append([]string{"service-key", "add", "--name", "bad"}, args...)...); got.Code != 1 {
				t.Errorf("service-key add %v: exit %d: %s", args, got.Code, got.Out)
			}
		}
		s.Succeeds("", "service-key", "remove", "shop")
		blackbox.Until(t, blackbox.Within(5), "the key is refused", func() bool {
			return d.Do(t, "GET", guardPath+"/none", nil, d.key).Status == 401
		})
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

package budget_test

import (
	"encoding/json"
	"fmt"

	"castellan/internal/blackbox"
)

// guardRoute adds an action and the route of a gateway that requires its challenge.
func (d *driver) guardRoute() {
	d.t.Helper()
	d.node.Ok(d.t, "POST", "/admin/system/mfa/actions", `{"actionCode":"PAYOUT","title":{"en":"Payout"},`+
		`"infoTableHeaders":{}}`, d.headers(d.boss))
	d.node.Ok(d.t, "POST", "/admin/guard/routes", `{"method":"POST","path":"/orders/*/pay","mode":"guarded",`+
		`"actionCode":"PAYOUT","rows":[{"key":"order","label":"Order","from":"path","index":1}]}`, d.headers(d.boss))
}

// checks asks about a request as a gateway does.
func (d *driver) checks(p *person, path string, more blackbox.Headers) blackbox.Answer {
	d.t.Helper()
	h := d.headers(p)
	h["X-Original-Method"], h["X-Original-URI"], h["X-Original-Host"] = "POST", path, "shop.example"
	for name, value := range more {
		h[name] = value
	}
	return d.node.Do(d.t, "GET", "/guard/check", nil, h)
}

// unguarded asks about requests without a route.
func (d *driver) unguarded(p *person) {
	d.t.Helper()
	for range 10 {
		d.checks(p, "/free", nil).Is(d.t, 204, "")
	}
}

// order returns a path that only one request of the run has.
func (d *driver) order() string {
	d.posted++
	return fmt.Sprintf("/orders/%06d/pay", d.posted)
}

// asked asks about a guarded request without a grant, which starts its challenge.
func (d *driver) asked(p *person) {
	d.t.Helper()
	d.checks(p, d.order(), nil).Is(d.t, 401, "CHALLENGE_REQUIRED")
}

// approved completes the challenge of a guarded request with the person's device.
func (d *driver) approved(p *person) {
	d.t.Helper()
	s := d.state[p]
	s.guarded = d.order()
	a := d.checks(p, s.guarded, nil).Is(d.t, 401, "CHALLENGE_REQUIRED")
	a.Status = 200
	s.Flow = blackbox.FlowOf(d.t, a)
	m := s.Method(d.t, "PUSH")
	text, err := json.Marshal(map[string]string{"methodId": m.ID, "method": m.Name, "value": "APPROVED",
		"deviceId": p.DeviceID, "challengeId": s.ChallengeID})
	if err != nil {
		d.t.Fatal(err)
	}
	h := blackbox.Headers{"X-Forwarded-For": p.from, "p-auth": s.PAuth, "device-signature": d.proof(p, m.ID, text)}
	s.grant = d.node.Do(d.t, "POST", blackbox.CompletePath, text, h).Is(d.t, 200, "").Header.Get("castellan-grant")
}

// passed asks about the request again, with the grant.
func (d *driver) passed(p *person) {
	d.t.Helper()
	s := d.state[p]
	d.checks(p, s.guarded, blackbox.Headers{"castellan-grant": s.grant}).Is(d.t, 204, "")
}

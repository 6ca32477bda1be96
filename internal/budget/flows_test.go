package budget_test

import (
	"crypto"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/totp"
	"castellan/internal/blackbox"
)

const (
	perFlow = 12 // samples of a flow in a round
	warmUps = 2  // people of each method whose logins are not counted
	rounds  = 3  // at most
)

var methods = []string{"SMS", "TOTP", "PUSH"}

// flow is an operation with a budget. Each person logs in twice: the first login of a day and from a network writes
// more than the next one. A sample is n requests.
type flow struct {
	name   string
	method string // of the second factor of the people
	n      int
	before func(*driver, *person) // not counted
	do     func(*driver, *person)
}

// The flows, in an order in which each finds its prerequisites.
var flows = []flow{
	{"login-first", "SMS", 1, nil, (*driver).login},
	{"login-first-complete-sms", "SMS", 1, nil, (*driver).complete},
	{"login-returning", "SMS", 1, nil, (*driver).login},
	{"login-returning-complete-sms", "SMS", 1, nil, (*driver).complete},
	{"login-first-complete-totp", "TOTP", 1, (*driver).login, (*driver).complete},
	{"login-returning-complete-totp", "TOTP", 1, (*driver).login, (*driver).complete},
	{"login-first-push", "PUSH", 1, nil, (*driver).login},
	{"login-first-complete-push", "PUSH", 1, nil, (*driver).complete},
	{"login-returning-push", "PUSH", 1, nil, (*driver).login},
	{"login-returning-complete-push", "PUSH", 1, nil, (*driver).complete},
	{"x-auth", "TOTP", 10, nil, (*driver).authenticated},
	{"firewall", "SMS", 10, nil, (*driver).decided},
	{"transfer", "SMS", 1, nil, (*driver).transfer},
	{"guard-unguarded", "SMS", 10, nil, (*driver).unguarded},
	{"guard-challenge", "SMS", 1, nil, (*driver).asked},
	{"guard-granted", "PUSH", 1, (*driver).approved, (*driver).passed},
	{coldFlow, "PUSH", 1, (*driver).bind, (*driver).renew},
}

// coldFlow comes last and has no warm-ups, whose rows would move the pages of the logins before it.
const coldFlow = "renewal"

// names returns the names of all flows.
func names() []string {
	all := make([]string, len(flows))
	for i, f := range flows {
		all[i] = f.name
	}
	return all
}

// driver simulates all clients of a site.
type driver struct {
	*site
	boss   *person
	state  map[*person]*state
	posted int
}

// state is the state of one client.
type state struct {
	blackbox.Flow
	step   int64 // of the last code of the authenticator
	logins int
	xAuth  string
	key    blackbox.Keyed // of a session that is bound to one
	// The request of a gateway that the client approved last, and its grant.
	guarded, grant string
}

// newDriver logs the administrator in and adds rules to the firewall.
func newDriver(s *site) *driver {
	s.t.Helper()
	d := &driver{site: s, boss: &s.people[0], state: map[*person]*state{}}
	for i := range s.people {
		p := &s.people[i]
		p.from = fmt.Sprintf("81.213.%d.7", i)
		d.state[p] = &state{}
	}
	d.login(d.boss)
	d.complete(d.boss)
	rule := func(more string) {
		d.node.Ok(d.t, "POST", "/admin/system/waf/rules", `{"expireAt":0,"status":"ACTIVE","targetEntityType":"IP",`+
			`"targetResources":["GET `+keysPath+`"],`+more+`}`, d.headers(d.boss))
	}
	rule(`"label":"rate","type":"rate_limit","period":60000,"limit":1000000,"targetAllEntities":true`)
	rule(`"label":"black","type":"blacklist","targetEntities":["203.0.113.0/24"]`)
	d.guardRoute()
	return d
}

const (
	keysPath  = "/.well-known/jwks.json"
	pairsPath = "/get-all-currency-network"
)

// headers returns the headers of a request, with the token of the session if there is one.
func (d *driver) headers(p *person) blackbox.Headers {
	h := blackbox.Headers{"X-Forwarded-For": p.from}
	if x := d.state[p].xAuth; x != "" {
		h["x-auth"] = x
	}
	return h
}

func (d *driver) login(p *person) {
	d.t.Helper()
	body := blackbox.LoginBody(blackbox.Account{Country: countryCode, Phone: p.Phone, Password: password})
	s := d.state[p]
	s.Flow = blackbox.FlowOf(d.t, d.node.Do(d.t, "POST", "/auth/login", body, blackbox.Headers{"X-Forwarded-For": p.from}))
	s.logins++
}

// bind logs in with a key, once for each person.
func (d *driver) bind(p *person) {
	d.t.Helper()
	s := d.state[p]
	if s.key.Token != "" {
		return
	}
	plain := s.xAuth // of other flows
	s.key = blackbox.Keyed{Key: blackbox.ECKey(d.t)}
	body := blackbox.LoginBody(blackbox.Account{Country: countryCode, Phone: p.Phone, Password: password})
	h := s.key.Proof(d.t, d.node, "POST", "/auth/login")
	h["X-Forwarded-For"] = p.from
	s.Flow = blackbox.FlowOf(d.t, d.node.Do(d.t, "POST", "/auth/login", body, h))
	s.logins++
	d.complete(p)
	s.key.Token, s.xAuth = s.xAuth, plain
}

// renew renews the session by its key.
func (d *driver) renew(p *person) {
	d.t.Helper()
	s := d.state[p]
	h := s.key.Proof(d.t, d.node, "POST", blackbox.RenewSessionPath)
	h["X-Forwarded-For"] = p.from
	s.key.Token = d.node.Ok(d.t, "POST", blackbox.RenewSessionPath, nil, h).Header.Get("x-auth")
}

// complete answers the challenge of the login by the person's method.
func (d *driver) complete(p *person) {
	d.t.Helper()
	s := d.state[p]
	m := s.Method(d.t, p.Method)
	h := blackbox.Headers{"X-Forwarded-For": p.from, "p-auth": s.PAuth}
	body := map[string]string{"methodId": m.ID, "method": m.Name}
	switch p.Method {
	case "SMS":
		body["value"] = d.code(p)
	case "TOTP":
		s.step = max(s.step+1, totp.StepAt(time.Now()))
		body["value"] = totp.CodeAt(p.Secret, s.step)
	case "PUSH":
		body["value"], body["deviceId"], body["challengeId"] = "APPROVED", p.DeviceID, s.ChallengeID
	}
	text := storetest.Value(json.Marshal(body))(d.t)
	if p.Method == "PUSH" {
		h["device-signature"] = d.proof(p, m.ID, text)
	}
	s.xAuth = d.node.Do(d.t, "POST", blackbox.CompletePath, text, h).Is(d.t, 200, "").Header.Get("x-auth")
}

// code waits for the code of the person's last login, and returns it. Each login sends one.
func (d *driver) code(p *person) string {
	d.t.Helper()
	s := d.state[p]
	var code string
	blackbox.Until(d.t, time.Minute, "a code sent to "+p.Phone, func() bool {
		seen := 0
		for line := range strings.SplitSeq(d.node.Out(), "\n") {
			if f := strings.Fields(line); len(f) == 3 && f[0] == codeFor && strings.HasSuffix(f[1], p.Phone) {
				seen++
				code = f[2]
			}
		}
		return seen >= s.logins
	})
	return code
}

// proof returns the signature of the person's device.
func (d *driver) proof(p *person, methodID string, body []byte) string {
	d.t.Helper()
	key := storetest.Value(x509.ParsePKCS8PrivateKey(p.Key))(d.t)
	proof, err := device.Sign(key.(crypto.Signer), device.Claims{Issuer: p.DeviceID, Audience: d.node.URL, Method: "POST",
		Target: blackbox.CompletePath, BodyHash: device.HashBody(body), Challenge: d.state[p].ChallengeID,
		MethodID: methodID, Value: "APPROVED"})
	storetest.Must(d.t, err)
	return proof
}

// authenticated sends requests with an x-auth token that are answered from memory.
func (d *driver) authenticated(p *person) {
	d.t.Helper()
	for range 10 {
		d.node.Ok(d.t, "GET", pairsPath, nil, d.headers(p))
	}
}

// decided sends requests that the rules of the firewall count and allow.
func (d *driver) decided(p *person) {
	d.t.Helper()
	for range 10 {
		d.node.Ok(d.t, "GET", keysPath, nil, blackbox.Headers{"X-Forwarded-For": p.from})
	}
}

// transfer posts an adjustment of the person's balance.
func (d *driver) transfer(p *person) {
	d.t.Helper()
	d.posted++
	a := d.node.Ok(d.t, "POST", "/admin/transaction/adjust-balance", map[string]any{"userId": d.people[1].ID,
		"currencyCode": "BTC", "networkCode": "BTC", "amount": "0.00000001", "type": "C",
		"uniqueId": fmt.Sprintf("budget-%06d", d.posted)}, d.headers(d.boss))
	var body struct {
		Data struct{ TransactionID string }
	}
	if a.Read(d.t, &body); body.Data.TransactionID == "" {
		d.t.Fatalf("not posted: %s", a)
	}
}

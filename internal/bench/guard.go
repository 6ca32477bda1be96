package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// guardPath is the path of the question of a gateway.
const guardPath = "/guard/check"

// question is the header lines of a question about a request.
func question(uri, more string) string {
	return "X-Original-Method: POST\r\nX-Original-URI: " + uri + "\r\nX-Original-Host: shop.example" + more
}

// guarded measures the question of a gateway about each request (D-EXT-11): for a path without a route, and for a
// guarded path without a session. It also measures the whole way of a guarded request: question, challenge, code, and
// question with the grant. The budgets (internal/budget) count the parts of that way.
func guarded(b *bench) {
	b.besideBare("The guard for gateways", cheap("CASTELLAN_HTTP_TRUSTED_PROXIES=127.0.0.1"), b.guardedOn)
}

// besideBare measures on each database, beside one bare handler that serves all rounds.
func (b *bench) besideBare(title string, settings []string, on func(p *place, s, floor *server)) {
	floor := need(start(roleFiber, nil))
	defer floor.stop()
	b.report.begin("%s, %d clients", title, b.clients)
	b.onEach(settings, 0, func(p *place, s *server) { on(p, s, floor) })
}

func (b *bench) guardedOn(p *place, s, floor *server) {
	addGuardRoute(s)
	of, bare := series{}, series{}
	for round := range b.rounds {
		b.bareRound(floor, bare)
		for _, kind := range []struct {
			name string
			load func() (window, error)
		}{
			{"keys", func() (window, error) {
				return b.limited([]*server{s}, people, b.long(time.Second), b.long(4*time.Second))
			}},
			{"free", func() (window, error) { return b.asks(s, "/free", 204) }},
			{"refused", func() (window, error) { return b.asks(s, "/orders/7/pay", 401) }},
			{"whole", func() (window, error) { return b.pays(s) }},
		} {
			w, err := b.profiled(s, fmt.Sprintf("guard-%s-%s-%d", p.name, kind.name, round+1), kind.load)
			must(within(kind.name, err))
			of.add(kind.name+" rate", w.rate())
			of.add(kind.name+" cpu", w.each(w.server)*1e3)
			of.add(kind.name+" bare", w.each(w.server)*1e3/bare["cpu"][round])
			of.add(kind.name+" keys", of[kind.name+" cpu"][round]/of["keys cpu"][round])
		}
	}
	b.report.line(p.name+": bare Fiber handler: CPU", "µs", bare["cpu"], bar{})
	for _, kind := range []struct {
		name, of string
		most     bar
	}{{"GET of the public keys", "keys", bar{}}, {"no route", "free", atMost(1.5)},
		{"guarded, no session", "refused", bar{}}, {"guarded, from question to use", "whole", bar{}}} {
		line := p.name + ": " + kind.name
		b.report.line(line, "/s", of[kind.of+" rate"], bar{})
		b.report.line(line+": CPU", "µs", of[kind.of+" cpu"], bar{})
		b.report.line(line+": … in bare Fiber handlers", "×", of[kind.of+" bare"], kind.most)
		b.report.line(line+": … in GETs of the keys", "×", of[kind.of+" keys"], bar{})
	}
}

// addGuardRoute creates an action and the route that requires its challenge, as an administrator.
func addGuardRoute(s *server) {
	v, header := administrator(s)
	defer v.Close()
	for _, one := range [][2]string{
		{"/admin/system/mfa/actions", `{"actionCode":"PAYOUT","title":{"en":"Payout"},"infoTableHeaders":{}}`},
		{"/admin/system/mfa/policies/common", `{"actionCode":"PAYOUT","name":"payout","expireAt":0,"required":1,` +
			`"methods":[["SMS"]]}`},
		{"/admin/guard/routes", `{"method":"POST","path":"/orders/*/pay","mode":"guarded","actionCode":"PAYOUT",` +
			`"rows":[{"key":"order","label":"Order","from":"path","index":1}]}`},
	} {
		must(v.expect(200, "POST", one[0], header, one[1]))
	}
}

// asks is load of questions about one path, without a session.
func (b *bench) asks(s *server, uri string, want int) (window, error) {
	header := question(uri, "")
	return b.requests(s, func(c *client, _ int) error { return c.expect(want, "GET", guardPath, header, "") })
}

// pays is load of whole guarded requests, each client with its own account.
func (b *bench) pays(s *server) (window, error) {
	var turn atomic.Int64
	return load(b.clients, b.long(time.Second), b.long(4*time.Second), meter{servers: []*server{s}},
		func() (func(context.Context, int) error, func(), error) {
			v, err := newVisitor(s)
			if err != nil {
				return nil, nil, err
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			n := int(turn.Add(1))
			if _, _, err := v.flow(ctx, account(0, n%people)); err != nil {
				v.Close()
				return nil, nil, err
			}
			session, times := "\r\nx-auth: "+v.xAuth, 0
			return func(ctx context.Context, _ int) error {
				times++
				return v.pay(ctx, fmt.Sprintf("/orders/%d-%d/pay", n, times), session)
			}, func() { v.Close() }, nil
		})
}

// pay asks about a guarded request, completes its challenge, and asks with the grant.
func (v *visitor) pay(ctx context.Context, uri, session string) error {
	status, err := v.do("GET", guardPath, question(uri, session), "")
	if err == nil && (status != 401 || v.pAuth == "") {
		err = v.refusal(status)
	}
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	method, token := member(v.body, "id"), v.pAuth
	code, err := v.s.codes.take(ctx, method, v.code)
	if err != nil {
		return err
	}
	if err := v.expect(200, "POST", completePath, "p-auth: "+token, answerBody(method, code)); err != nil {
		return err
	}
	grant := member(v.body, "grant")
	return v.expect(204, "GET", guardPath, question(uri, session+"\r\ncastellan-grant: "+grant), "")
}

package main

import (
	"fmt"
	"time"
)

// compareFirewalls measures a request that needs no database: without rules of the firewall, and behind a hundred rules
// of which two count it. Each program runs twice.
func compareFirewalls(b *bench) {
	floor := need(start(roleFiber, nil))
	defer floor.stop()
	by, stop := b.contend(1, func() (out []*place) {
		for _, name := range []string{"no rules", "100 rules"} {
			p := b.sqlite(cheap("CASTELLAN_HTTP_TRUSTED_PROXIES=127.0.0.1"))
			p.name = name
			out = append(out, p)
		}
		return out
	})
	defer func() { must(stop()) }()
	for _, c := range by[1] {
		must(within(c.name, attempt(func() { addRules(c.s) })))
	}
	bare := series{}
	for round := range b.rounds {
		b.bareRound(floor, bare)
		for _, contenders := range by {
			for _, c := range turns(contenders, round) {
				b.await()
				w, err := b.limited([]*server{c.s}, people, b.long(time.Second), b.long(4*time.Second))
				must(within(c.name, err))
				c.of.add("rate", w.rate())
				c.of.add("cpu", w.each(w.server)*1e3)
				c.of.add("bare", w.each(w.server)*1e3/bare["cpu"][round])
			}
		}
	}
	b.report.begin("GET of the public keys by programs in turns, %d clients", b.clients)
	b.report.line("bare Fiber handler: CPU per request", "µs", bare["cpu"], bar{})
	for _, contenders := range by {
		t := b.report.contest(contenders[0].at.name, contenders)
		t.row("requests", "/s", "rate")
		t.row("CPU of the service", "µs", "cpu")
		t.row("… in bare requests", "×", "bare")
	}
}

// addRules creates rules of all types as an administrator, and checks that they are in force.
func addRules(s *server) {
	v, header := administrator(s)
	defer v.Close()
	n := 0
	add := func(kind, entity, more string) {
		n++
		must(v.expect(200, "POST", "/admin/system/waf/rules", header, fmt.Sprintf(`{"appId":"API","label":"rule %d",`+
			`"type":"%s","expireAt":0,"targetEntityType":"%s","status":"ACTIVE","targetAllResources":%t,`+
			`"targetResources":["GET %s"],%s}`, n, kind, entity, n%2 == 0, keysPath, more)))
	}
	const limit = `"targetAllEntities":true,"period":10000,"limit":1000000`
	for i := range 32 {
		add("blacklist", "IP", fmt.Sprintf(`"targetEntities":["203.0.%d.0/24","198.51.100.%d"]`, i, i))
		add("blacklist", "USER_ID", fmt.Sprintf(`"targetEntities":["bad %d"]`, i))
		add("whitelist", "IP", fmt.Sprintf(`"targetEntities":["10.%d.0.0/16"]`, i+100))
	}
	add("blacklist", "COUNTRY_CODE", `"targetEntities":["AQ"]`)
	add("rate_limit", "USER_ID", limit)
	add("rate_limit", "IP", limit)
	add("rate_limit", "COUNTRY_CODE", limit)
	must(v.expect(403, "GET", keysPath, "X-Forwarded-For: 203.0.31.1", "")) // an address of a blacklist
}

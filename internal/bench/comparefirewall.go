package main

import (
	"errors"
	"fmt"
	"time"
)

// compareFirewalls measures a request that needs no database: without rules of the firewall, and behind a hundred rules
// of which two count it. Each program runs twice.
func compareFirewalls(b *bench) (err error) {
	floor, err := start(roleFiber, nil)
	if err != nil {
		return err
	}
	defer floor.stop()
	by, stop, err := b.contend(1, func() (out []*place, err error) {
		for _, name := range []string{"no rules", "100 rules"} {
			p, err := b.sqlite(cheap("CASTELLAN_HTTP_TRUSTED_PROXIES=127.0.0.1"))
			if err != nil {
				return nil, err
			}
			p.name = name
			out = append(out, p)
		}
		return out, nil
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, c := range by[1] {
		if err := addRules(c.s); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	bare := series{}
	for round := range b.rounds {
		if err := b.bareRound(floor, bare); err != nil {
			return err
		}
		for _, contenders := range by {
			for _, c := range turns(contenders, round) {
				b.await()
				w, err := b.limited([]*server{c.s}, people, b.long(time.Second), b.long(4*time.Second))
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
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
	return nil
}

// addRules creates rules of all types as an administrator, and checks that they are in force.
func addRules(s *server) error {
	v, header, err := administrator(s)
	if err != nil {
		return err
	}
	defer v.Close()
	n := 0
	add := func(kind, entity, more string) error {
		n++
		return v.expect(200, "POST", "/admin/system/waf/rules", header, fmt.Sprintf(`{"appId":"API","label":"rule %d",`+
			`"type":"%s","expireAt":0,"targetEntityType":"%s","status":"ACTIVE","targetAllResources":%t,`+
			`"targetResources":["GET %s"],%s}`, n, kind, entity, n%2 == 0, keysPath, more))
	}
	const limit = `"targetAllEntities":true,"period":10000,"limit":1000000`
	for i := range 32 {
		if err := errors.Join(
			add("blacklist", "IP", fmt.Sprintf(`"targetEntities":["203.0.%d.0/24","198.51.100.%d"]`, i, i)),
			add("blacklist", "USER_ID", fmt.Sprintf(`"targetEntities":["bad %d"]`, i)),
			add("whitelist", "IP", fmt.Sprintf(`"targetEntities":["10.%d.0.0/16"]`, i+100)),
		); err != nil {
			return err
		}
	}
	if err := errors.Join(
		add("blacklist", "COUNTRY_CODE", `"targetEntities":["AQ"]`),
		add("rate_limit", "USER_ID", limit),
		add("rate_limit", "IP", limit),
		add("rate_limit", "COUNTRY_CODE", limit),
	); err != nil {
		return err
	}
	return v.expect(403, "GET", keysPath, "X-Forwarded-For: 203.0.31.1", "") // an address of a blacklist
}

package main

import (
	"fmt"
	"time"

	"castellan/internal/child"
)

// nodes measures whole logins and renewals on one node and on three of a cluster, on one PostgreSQL server, for the
// table of sizes. The nodes share this machine's processors, so the ratio is the price of a cluster.
func nodes(b *bench) error {
	p, err := b.postgresql(b.cost())
	if err != nil {
		return err
	}
	defer p.bare.close()
	if err := p.seed(2); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	one, err := start(roleService, p.environ)
	if err != nil {
		return err
	}
	defer one.stop()
	three, err := b.cluster(p.environ, 3)
	if err != nil {
		return err
	}
	for _, s := range three {
		defer s.stop()
	}

	kinds := []struct {
		name    string
		servers []*server
		of      series
	}{{"one node", []*server{one}, series{}}, {"three nodes", three, series{}}}
	warm, span := b.long(2*time.Second), b.long(8*time.Second)
	for range b.rounds {
		for accounts, k := range kinds {
			b.await()
			w, err := flows(k.servers, p.process, b.clients, accounts, b.people(), warm, span)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			k.of.add("rate", w.rate())
			k.of.add("cpu", w.each(w.server))
			for _, s := range k.servers {
				rss, err := child.Resident(s.PID())
				if err != nil {
					return err
				}
				k.of.add("memory", float64(rss)/(1<<20))
			}
			if w, err = b.renewing(k.servers, p.process, accounts, warm, span); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			k.of.add("renewals", w.rate())
			k.of.add("renewal", w.each(w.server)*1e3)
			for _, s := range k.servers {
				if err := s.order(orderCollect); err != nil {
					return err
				}
			}
			before, err := resident(k.servers...)
			if err != nil {
				return err
			}
			most, err := atOnce(b.clients, account(accounts, 1), k.servers...)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			k.of.add("grown", (float64(most)-float64(before))/(1<<20))
		}
	}
	r := &b.report
	r.begin("Whole logins on PostgreSQL, %d clients, -hash %s", b.clients, b.hash)
	for _, k := range kinds {
		r.line(k.name+": returning logins", "/s", k.of["rate"], bar{})
		r.line(k.name+": CPU of all nodes per login", "ms", k.of["cpu"], bar{})
		r.line(k.name+": memory of a node under this load", "MiB", k.of["memory"], bar{})
		r.line(k.name+": memory of all nodes grown by a login of each client at once", "MiB", k.of["grown"], bar{})
		r.line(k.name+": renewals of sessions", "/s", k.of["renewals"], bar{})
		r.line(k.name+": CPU of all nodes per renewal", "µs", k.of["renewal"], bar{})
	}
	return nil
}

package main

import (
	"time"

	"castellan/internal/child"
)

// nodes measures whole logins and renewals on one node and on three of a cluster, on one PostgreSQL server, for the
// table of sizes. The nodes share this machine's processors, so the ratio is the price of a cluster.
func nodes(b *bench) {
	p := b.postgresql(b.cost())
	defer p.bare.close()
	p.seed(2)
	one := need(start(roleService, p.environ))
	defer one.stop()
	three := need(b.cluster(p.environ, 3))
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
			must(within(k.name, err))
			k.of.add("rate", w.rate())
			k.of.add("cpu", w.each(w.server))
			for _, s := range k.servers {
				rss := need(child.Resident(s.PID()))
				k.of.add("memory", float64(rss)/(1<<20))
			}
			w, err = b.renewing(k.servers, p.process, accounts, warm, span)
			must(within(k.name, err))
			k.of.add("renewals", w.rate())
			k.of.add("renewal", w.each(w.server)*1e3)
			for _, s := range k.servers {
				must(s.order(orderCollect))
			}
			before := need(resident(k.servers...))
			most, err := atOnce(b.clients, account(accounts, 1), k.servers...)
			must(within(k.name, err))
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
}

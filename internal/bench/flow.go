package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// flow measures whole logins under load: processor time and number, beside a bare handler and bare inserts of the same
// rounds.
func flow(b *bench) {
	places := b.places(b.cost()...)
	floor := need(start(roleFiber, nil))
	defer floor.stop()
	servers := make([]*server, len(places))
	for i, p := range places {
		defer p.bare.close()
		p.seed(b.rounds)
		servers[i] = need(start(roleService, p.environ))
		defer servers[i].stop()
	}
	hashes := 2000
	if b.hash == "real" {
		hashes = 40
	}
	hash := hashTime(places[0].environ, hashes)

	bare := series{}
	of := make([]series, len(places))
	warm, span := b.long(time.Second), b.long(6*time.Second)
	for round := range b.rounds {
		b.await()
		measureFloor(floor, b.clients, b.long(2*time.Second), bare)
		for i, p := range places {
			if of[i] == nil {
				of[i] = series{}
			}
			measureInserts(p, of[i])
			var first window
			w, err := b.profiled(servers[i], fmt.Sprintf("flow-%s-%d", p.name, round+1), func() (w window, err error) {
				if first, err = firsts(servers[i], p.process, b.clients, round, b.people()); err == nil {
					w, err = flows(servers[i:i+1], p.process, b.clients, round, b.people(), warm, span)
				}
				if err == nil && b.hash == "real" {
					b.atHalf(servers[i], w.rate(), round, of[i])
				}
				return w, err
			})
			must(within(p.name, err))
			for name, w := range map[string]window{"first ": first, "": w} {
				of[i].add(name+"rate", w.rate())
				of[i].add(name+"server", w.each(w.server))
				of[i].add(name+"base", w.each(w.base))
				of[i].add(name+"requests", w.each(w.server)*1e3/bare["cpu"][round])
			}
			of[i].add("net", w.each(w.server)-hash.Seconds()*1e3)
			of[i].add("driver", w.each(w.driver))
			of[i].add("others", w.others.Seconds()/w.took.Seconds())
		}
	}

	r := &b.report
	r.begin("Whole logins (login → code → complete → tokens), %d clients, %s measured per round", b.clients, span)
	r.line("bare Fiber handler: requests", "/s", bare["rate"], bar{})
	r.line("bare Fiber handler: CPU per request", "µs", bare["cpu"], bar{})
	r.line("argon2id of the login (-hash "+b.hash+"): CPU", "µs", []float64{hash.Seconds() * 1e6}, bar{})
	for i, p := range places {
		s, least, most := of[i], atLeast(3500), atMost(0.35)
		if p.process != 0 {
			least, most = atLeast(3000), bar{}
		}
		if b.hash == "real" {
			least, most = bar{}, bar{}
			r.line(p.name+": a whole login at half of the rate: p50", "ms", s["half p50"], bar{})
			r.line(p.name+": … p99", "ms", s["half p99"], bar{})
		}
		r.line(p.name+": first logins of an account", "/s", s["first rate"], bar{})
		r.line(p.name+": CPU of the service per first login", "ms", s["first server"], bar{})
		r.line(p.name+": … in bare requests", "×", s["first requests"], bar{})
		if p.process != 0 {
			r.line(p.name+": CPU of its processes per first login", "ms", s["first base"], bar{})
		}
		r.line(p.name+": returning logins", "/s", s["rate"], least)
		r.line(p.name+": CPU of the service per login", "ms", s["server"], bar{})
		r.line(p.name+": … without argon2id", "ms", s["net"], most)
		if p.process != 0 {
			r.line(p.name+": CPU of its processes per login", "ms", s["base"], bar{})
		}
		r.line(p.name+": CPU of the driver per login", "ms", s["driver"], bar{})
		r.line(p.name+": CPU of the service, in bare requests", "×", s["requests"], bar{})
		r.line(p.name+": durable commit of one row, alone", "µs", s["one"], bar{})
		r.line(p.name+": 100 rows in one statement, per row", "µs", s["many"], bar{})
		r.line(p.name+": processors used by others meanwhile", "", s["others"], bar{})
	}
}

// profiled runs a load in a calm moment, with a CPU profile of the service if profiles are requested.
func (b *bench) profiled(s *server, name string, load func() (window, error)) (window, error) {
	b.await()
	if b.profile == "" {
		return load()
	}
	file, err := filepath.Abs(filepath.Join(b.profile, name+".prof"))
	if err == nil {
		err = s.order(orderProfile, file)
	}
	if err != nil {
		return window{}, err
	}
	w, err := load()
	return w, errors.Join(err, s.order(orderStop))
}

func measureFloor(floor *server, clients int, span time.Duration, s series) {
	only := []*server{floor}
	w, err := load(clients, span/4, span, meter{servers: only}, dialled(only, func(c *client, i int) error {
		return c.expect(200, "POST", "/auth/login", "", loginBody(i))
	}))
	must(within("bare handler", err))
	s.add("rate", w.rate())
	s.add("cpu", w.each(w.server)*1e3)
}

// measureInserts records the median of single commits, and of statements of 100 rows.
func measureInserts(p *place, s series) {
	one := insertTimes(p, 200, 1)
	many := insertTimes(p, 30, 100)
	s.add("one", median(one))
	s.add("many", median(many)/100)
}

// insertTimes returns the times of single-statement commits, in microseconds.
func insertTimes(p *place, n, rows int) []float64 {
	out := make([]float64, n)
	for i := range out {
		began := time.Now()
		must(within("bare insert", p.bare.insert(rows)))
		out[i] = time.Since(began).Seconds() * 1e6
	}
	return out
}

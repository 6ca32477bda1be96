package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"castellan/internal/child"
)

// passwords measures logins with the hash of the default parameters. It compares the hash with that of x/crypto, and
// reports the cost of a login without it. Then it reports the effect of many logins at once on other requests, and the
// result of ten times the possible load.
func passwords(b *bench) {
	places := b.places(cheap()...)
	real := hashTime(lively(), 20)
	b.report.begin("Password logins, argon2id of the default parameters (%s of CPU)", real.Round(100*time.Microsecond))
	b.hashes()
	for _, p := range places {
		defer p.bare.close()
		must(within(p.name+": beside the hash", attempt(func() { b.besideTheHash(p) })))
	}
	// The processor does the same work on both databases: one suffices.
	p := b.sqlite(lively())
	defer p.bare.close()
	b.crowd(p)
}

// lively are the settings of a normal service, without limits on starts.
func lively() []string {
	return []string{"CASTELLAN_DEV=true", "CASTELLAN_LIMITS_ENABLED=false", "CASTELLAN_LOG_LEVEL=error"}
}

// besideTheHash is the processor time of a login without its hash.
func (b *bench) besideTheHash(p *place) {
	p.seed(1)
	least := hashTime(p.environ, 2000)
	s := need(start(roleService, p.environ))
	defer s.stop()
	s.codes.drop = true
	of := series{}
	for range b.rounds {
		b.await()
		w := need(load(b.clients, b.long(time.Second), b.long(3*time.Second), meter{servers: []*server{s}}, logins(s)))
		of.add("rest", w.each(w.server)-least.Seconds()*1e3)
	}
	b.report.line(p.name+": CPU of a login beside its hash", "ms", of["rest"], atMost(0.5))
}

// logins returns loops that begin a login over and over.
func logins(s *server) func() (func(context.Context, int) error, func(), error) {
	return func() (func(context.Context, int) error, func(), error) {
		v, err := newVisitor(s)
		if err != nil {
			return nil, nil, err
		}
		return func(_ context.Context, i int) error {
			_, err := v.login(i)
			return err
		}, func() { v.Close() }, nil
	}
}

// watch requests the sessions of an account, one request every few milliseconds, until it is stopped. It returns the
// times of the answers, in milliseconds.
func watch(s *server, token string, stop <-chan struct{}) ([]float64, error) {
	c, err := dial(s.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var took []float64
	for tick := time.NewTicker(4 * time.Millisecond); ; {
		select {
		case <-stop:
			return took, nil
		case <-tick.C:
		}
		began := time.Now()
		if err := c.expect(200, "GET", "/auth/sessions", "x-auth: "+token, ""); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began).Seconds()*1e3)
	}
}

// during watches while f runs.
func during(s *server, token string, f func() error) ([]float64, error) {
	stop, done := make(chan struct{}), make(chan struct{})
	var took []float64
	var werr error
	go func() { defer close(done); took, werr = watch(s, token, stop) }()
	err := f()
	close(stop)
	<-done
	return took, errors.Join(err, werr)
}

// crowd sends many at once, and then ten times the possible load.
func (b *bench) crowd(p *place) {
	together, lines := b.many(64, 64, 8), b.many(400, 400, 40)
	s := p.serve(0)
	defer s.stop()
	v := need(newVisitor(s))
	defer v.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	_, _, err := v.flow(ctx, 0)
	must(err)
	token := v.xAuth
	s.codes.forget()
	of := series{}
	for range b.rounds {
		b.await()
		must(s.order(orderCollect))
		before := need(resident(s))
		calm := need(during(s, token, func() error { time.Sleep(b.long(2 * time.Second)); return nil }))
		var most uint64
		full := need(during(s, token, func() (err error) {
			most, err = atOnce(together, 1, s)
			return err
		}))
		of.add("grown", (float64(most)-float64(before))/(1<<20))
		of.add("calm", median(calm))
		of.add("times", median(full)/median(calm))
		of.add("p99", quantile(full, 0.99))
	}
	r := &b.report
	slots := max(1, processors()-1)
	r.line(fmt.Sprintf("%d at once: memory grown (%d slot × 19 + 32)", together, slots), "MiB", of["grown"],
		atMost(float64(slots*19+32)))
	r.line("a GET with a token, calm: p50", "ms", of["calm"], bar{})
	r.line(fmt.Sprintf("… with %d logins at once: p50, times the calm one", together), "×", of["times"], atMost(2))
	r.line("… p99", "ms", of["p99"], atMost(15))

	// The peak, and ten times that.
	peak := need(load(2*slots+2, b.long(time.Second), b.long(8*time.Second), meter{servers: []*server{s}}, logins(s)))
	// A busy machine may end no login in a short run; a rate of 0 would never end.
	flood := need(b.flood(s, 10*max(peak.rate(), 1), lines, b.long(30*time.Second)))
	r.line("logins a second that can be served", "/s", []float64{peak.rate()}, bar{})
	r.line(fmt.Sprintf("asked for in %s", b.long(30*time.Second)), "/s", []float64{flood.asked}, bar{})
	r.line("served meanwhile, of what can be", "%", []float64{100 * flood.served / max(peak.rate(), 1)}, atLeast(80))
	r.line("refused with 503 and Retry-After", "/s", []float64{flood.refused}, bar{})
	r.line("memory at the end above that at half time", "MiB", []float64{flood.grown}, atMost(8))
}

// resident returns the memory of all servers, in bytes.
func resident(servers ...*server) (sum uint64, err error) {
	for _, s := range servers {
		one, err := child.Resident(s.PID())
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// atOnce begins the logins of n accounts at once, each at one of the servers, and returns their most memory meanwhile.
func atOnce(n, first int, servers ...*server) (most uint64, err error) {
	if most, err = resident(servers...); err != nil {
		return 0, err
	}
	var all sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		all.Go(func() {
			v, err := newVisitor(servers[i%len(servers)])
			if err == nil {
				defer v.Close()
				_, err = v.login(first + i)
			}
			if err != nil {
				errs <- err
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for look := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-ended:
			close(errs)
			return most, <-errs
		case <-look.C:
			if now, err := resident(servers...); err == nil {
				most = max(most, now)
			}
		}
	}
}

// flooded is the result of a flood: numbers a second, and MiB.
type flooded struct{ asked, served, refused, grown float64 }

// flood sends that many requests a second, whatever the answers, on that many lines.
func (b *bench) flood(s *server, rate float64, lines int, span time.Duration) (flooded, error) {
	var asked, served, refused atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, lines)
	until := time.Now().Add(span)
	pause := time.Duration(float64(lines) / rate * float64(time.Second))
	for i := range lines {
		all.Go(func() {
			v, err := newVisitor(s)
			if err != nil {
				errs <- err
				return
			}
			defer v.Close()
			first := time.Now().Add(pause * time.Duration(i) / time.Duration(lines))
			for next := first; next.Before(until); next = next.Add(pause) {
				time.Sleep(time.Until(next))
				asked.Add(1)
				_, err := v.login(int(asked.Load()) % people)
				var no refusal
				switch {
				case err == nil:
					if time.Now().Before(until) { // not the requests that still waited at the end
						served.Add(1)
					}
				case errors.As(err, &no) && no.status == 503 && no.retryAfter != "":
					refused.Add(1)
				default:
					errs <- err
					return
				}
			}
		})
	}
	time.Sleep(span / 2) // every account was used by then
	half, err := child.Resident(s.PID())
	time.Sleep(time.Until(until))
	end, err2 := child.Resident(s.PID())
	all.Wait()
	close(errs)
	n := span.Seconds()
	return flooded{float64(asked.Load()) / n, float64(served.Load()) / n, float64(refused.Load()) / n,
		(float64(end) - float64(half)) / (1 << 20)}, errors.Join(err, err2, <-errs)
}

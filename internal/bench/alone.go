package main

import (
	"context"
	"time"
)

// alone measures the latency of each step with no other client, alternating with a bare durable commit.
func alone(b *bench) {
	n := b.many(400, 100, 5)
	b.report.begin("Latency without load, %d logins per round", n)
	b.onEach(cheap(), 0, func(p *place, s *server) { b.aloneOn(p, s, n) })
}

func (b *bench) aloneOn(p *place, s *server, n int) {
	v := need(newVisitor(s))
	defer v.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	of := series{}
	next := 0
	for range b.rounds {
		round := series{}
		for range n {
			next++
			login, complete, err := v.flow(ctx, next%people)
			must(err)
			one := insertTimes(p, 1, 1)
			round.add("login", login.Seconds()*1e3)
			round.add("complete", complete.Seconds()*1e3)
			round.add("commit", one[0]/1e3)
		}
		for _, name := range []string{"commit", "login", "complete"} {
			of.add(name, median(round[name]))
			of.add(name+" over", median(round[name])-median(round["commit"]))
		}
	}
	r := &b.report
	r.line(p.name+": bare durable commit", "ms", of["commit"], bar{})
	r.line(p.name+": login", "ms", of["login"], bar{})
	r.line(p.name+": complete", "ms", of["complete"], bar{})
	r.line(p.name+": login above a bare commit", "ms", of["login over"], atMost(0.5))
	r.line(p.name+": complete above a bare commit", "ms", of["complete over"], atMost(0.5))
}

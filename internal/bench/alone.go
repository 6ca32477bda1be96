package main

import (
	"context"
	"fmt"
	"time"
)

// alone measures the latency of each step with no other client, alternating with a bare durable commit.
func alone(b *bench) error {
	places, err := b.places(cheap()...)
	if err != nil {
		return err
	}
	n := b.many(400, 100, 5)
	b.report.begin("Latency without load, %d logins per round", n)
	for _, p := range places {
		defer p.bare.close()
		if err := b.aloneOn(p, n); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (b *bench) aloneOn(p *place, n int) error {
	s, err := p.serve(0)
	if err != nil {
		return err
	}
	defer s.stop()
	v, err := newVisitor(s)
	if err != nil {
		return err
	}
	defer v.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	of := series{}
	next := 0
	for range b.rounds {
		var logins, completes, commits []float64
		for range n {
			next++
			login, complete, err := v.flow(ctx, next%people)
			if err != nil {
				return err
			}
			one, err := insertTimes(p, 1, 1)
			if err != nil {
				return err
			}
			logins, completes, commits = append(
				logins,
				login.Seconds()*1e3,
			), append(
				completes,
				complete.Seconds()*1e3,
			), append(
				commits,
				one[0]/1e3,
			)
		}
		of.add("commit", median(commits))
		of.add("login", median(logins))
		of.add("complete", median(completes))
		of.add("login over", median(logins)-median(commits))
		of.add("complete over", median(completes)-median(commits))
	}
	r := &b.report
	r.line(p.name+": bare durable commit", "ms", of["commit"], bar{})
	r.line(p.name+": login", "ms", of["login"], bar{})
	r.line(p.name+": complete", "ms", of["complete"], bar{})
	r.line(p.name+": login above a bare commit", "ms", of["login over"], atMost(0.5))
	r.line(p.name+": complete above a bare commit", "ms", of["complete over"], atMost(0.5))
	return nil
}

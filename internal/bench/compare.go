package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// comparisons are the measurements of -program, in the order in which they run. Each round measures every program, in
// alternating order, so that a disturbance of the machine affects all of them equally.
var comparisons = []measurement{
	{"flow", "whole logins under load, first and returning ones, on both databases", compareFlows},
	{"firewall", "a request without rules of the firewall, and behind them", compareFirewalls},
}

// contender is a running program on one database.
type contender struct {
	program
	at  *place
	s   *server
	end func() error
	of  series
}

// contend starts every program on separate databases with the accounts of that many rounds, and returns the contenders
// by database.
func (b *bench) contend(rounds int, places func() []*place) (by [][]*contender, stop func() error) {
	var all []*contender
	stop = func() (err error) {
		for _, c := range all {
			if c.end != nil {
				err = errors.Join(err, c.end())
			}
			c.at.bare.close()
		}
		return err
	}
	for _, p := range b.programs {
		for i, at := range places() {
			c := &contender{program: p, at: at, of: series{}}
			all = append(all, c)
			err := attempt(func() { p.seed(at, rounds) })
			if err == nil {
				c.s, c.end, err = p.start(at.environ)
			}
			if err != nil {
				must(errors.Join(fmt.Errorf("%s on %s: %w", p.name, at.name, err), stop()))
			}
			if len(by) <= i {
				by = append(by, nil)
			}
			by[i] = append(by[i], c)
		}
	}
	return by, stop
}

// turns returns the contenders of a round: every second round begins with the last one.
func turns[T any](all []T, round int) []T {
	all = slices.Clone(all)
	if round%2 == 1 {
		slices.Reverse(all)
	}
	return all
}

// settle makes PostgreSQL write the pending data of earlier loads.
func (c *contender) settle() {
	if c.at.process != 0 {
		c.at.exec("CHECKPOINT")
	}
}

// compareFlows is flow for programs.
func compareFlows(b *bench) {
	floor := need(start(roleFiber, nil))
	defer floor.stop()
	by, stop := b.contend(b.rounds, func() []*place { return b.places(b.cost()...) })
	defer func() { must(stop()) }()
	bare := series{}
	warm, span := b.long(time.Second), b.long(6*time.Second)
	for round := range b.rounds {
		b.bareRound(floor, bare)
		for _, contenders := range by {
			for _, c := range turns(contenders, round) {
				err := attempt(func() { b.contendFlows(c, round, warm, span, bare["cpu"][round]) })
				must(within(c.name+" on "+c.at.name, err))
			}
		}
	}
	b.report.begin("Whole logins by programs in turns, %d clients, %d first logins and %s of returning ones a round",
		b.clients, b.people(), span)
	b.report.line("bare Fiber handler: CPU per request", "µs", bare["cpu"], bar{})
	for _, contenders := range by {
		for _, kind := range []string{"first", "returning"} {
			t := b.report.contest(contenders[0].at.name+", "+kind+" logins", contenders)
			t.row("logins", "/s", kind+" rate")
			t.row("CPU of the service", "ms", kind+" server")
			t.row("… in bare requests", "×", kind+" server bare")
			if contenders[0].at.process != 0 {
				t.row("CPU of PostgreSQL", "ms", kind+" base")
				t.row("… in bare requests", "×", kind+" base bare")
			}
			t.row("CPU of the driver", "ms", kind+" driver")
			t.row("processors used by others", "", kind+" others")
		}
	}
}

// bareRound measures the bare handler for a round.
func (b *bench) bareRound(floor *server, bare series) {
	b.await()
	measureFloor(floor, b.clients, b.long(2*time.Second), bare)
}

// contendFlows measures a contender for one round; bare is the CPU of a bare request, in µs.
func (b *bench) contendFlows(c *contender, round int, warm, span time.Duration, bare float64) {
	c.settle()
	b.await()
	first := need(firsts(c.s, c.at.process, b.clients, round, b.people()))
	load := func() (window, error) {
		return flows([]*server{c.s}, c.at.process, b.clients, round, b.people(), warm, span)
	}
	var again window
	var err error
	if c.bench { // castellan takes no orders
		again, err = b.profiled(c.s, fmt.Sprintf("flow-%s-%s-%d", c.name, c.at.name, round+1), load)
	} else {
		again, err = load()
	}
	must(err)
	for kind, w := range map[string]window{"first": first, "returning": again} {
		c.of.add(kind+" rate", w.rate())
		for what, used := range map[string]time.Duration{"server": w.server, "base": w.base, "driver": w.driver} {
			c.of.add(kind+" "+what, w.each(used))
			c.of.add(kind+" "+what+" bare", w.each(used)*1e3/bare)
		}
		c.of.add(kind+" others", w.others.Seconds()/w.took.Seconds())
	}
}

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"castellan/cmd/app/control"
	"castellan/domain/guard/firewall"
)

type wafCountersCmd struct {
	Label  string `help:"List only counters of this rule."`
	Entity string `help:"List only counters of this address, user, country or service."`
	Least  string `help:"Smallest used share of the limit, 0 to 1." default:"0.8"`
	Limit  int    `help:"Number of counters." default:"50"`
}

func (wafCountersCmd) Help() string {
	return `Lists the fullest counters of rate limits on all nodes. It asks the running service of
this data_dir, by the socket control.sock in it. Nodes that do not answer within 500 ms
are listed at the end: their counters are missing.`
}

func (c wafCountersCmd) Run(e *env) error {
	least, err := strconv.ParseFloat(c.Least, 64)
	if err != nil || !(least >= 0 && least <= 1) {
		return errors.New("--least must be a number from 0 to 1")
	}
	a, err := control.Call(e.ctx, e.cfg.DataDir, control.Request{Counters: &firewall.CounterQuery{
		Label: c.Label, Entity: c.Entity, Least: least, Most: c.Limit}})
	if err != nil {
		return err
	}
	w := e.table()
	fmt.Fprintln(w, "LABEL\tENTITY\tUSED\tLIMIT\tPERIOD\tRETRY IN\tNODE\tREPLICA\tSTATE")
	for _, x := range a.Counters {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%v\t%v\t%s\t%s\t%s\n", x.Label, x.Entity, x.Used, x.Limit, x.Period,
			x.Retry.Round(time.Millisecond), x.Node, x.Replica, x.Phase)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, node := range a.Silent {
		fmt.Fprintf(e.out, "no answer from %s: its counters are missing\n", node)
	}
	return nil
}

type wafResetCmd struct {
	Label  string `arg:"" help:"Label of the rate limit."`
	Entity string `arg:"" help:"Address, user, country or service of the counter."`
	Reason string `help:"Reason for the audit log." required:""`
}

func (wafResetCmd) Help() string {
	return `Gives an entity its whole limit again, on every node within one second. It asks the
running service of this data_dir, by the socket control.sock in it.`
}

func (c wafResetCmd) Run(e *env) error {
	if strings.TrimSpace(c.Reason) == "" {
		return errors.New("--reason must not be blank")
	}
	a, err := control.Call(e.ctx, e.cfg.DataDir,
		control.Request{Reset: &control.Reset{Label: c.Label, Entity: c.Entity, Reason: c.Reason}})
	return e.printf(err, "reset %s of %s, which had used %d\n", c.Entity, c.Label, a.UsedBefore)
}

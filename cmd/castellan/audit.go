package main

import (
	"fmt"

	"castellan/cmd/app"
	"castellan/domain/audit"
)

type auditCmd struct {
	Verify auditVerifyCmd `cmd:"" help:"Walk the chain of audit rows and name the first broken one."`
}

type auditVerifyCmd struct {
	AtLeast string `help:"A checkpoint kept outside of the database, which must be there." placeholder:"COUNTER:MAC"`
}

func (auditVerifyCmd) Help() string {
	return `Rows that were changed or taken out are found by themselves. Who cuts off the end
of everything, checkpoints included, is found by a checkpoint that was kept
elsewhere: every minute the service logs "audit checkpoint" with counter and mac,
and posts them to audit.anchor_url.

  castellan audit verify --at-least 5123:9f86d081884c7d65…`
}

func (c auditVerifyCmd) Run(e *env) (err error) {
	var known audit.Anchor
	if c.AtLeast != "" {
		if known, err = audit.ParseAnchor(c.AtLeast); err != nil {
			return fmt.Errorf("--at-least: %w", err)
		}
	}
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	found, err := v.DB.VerifyAuditSince(e.ctx, v.Ring.Audit(), known)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "%d audit rows, every chain unbroken\n", found.Rows)
	switch newest := found.Newest.Counter; {
	case newest == 0:
		fmt.Fprintln(e.out, "there is no checkpoint yet: nothing vouches for the end of the trail")
	case found.Anchored == newest:
		fmt.Fprintf(e.out, "anchored up to the newest checkpoint, %d\n", newest)
	default:
		fmt.Fprintf(e.out, "the newest checkpoint is %d; from checkpoint %d on nothing is anchored: compare with one that "+
			"was kept elsewhere (--at-least)\n", newest, found.Anchored+1)
	}
	return nil
}

package main

import (
	"fmt"

	"castellan/cmd/app"
	"castellan/domain/money/ledger"
	"castellan/persistence/money"
)

type ledgerCmd struct {
	Verify ledgerVerifyCmd `cmd:"" help:"Prove the balances by the transfers and name the first fault."`
}

type ledgerVerifyCmd struct{}

func (ledgerVerifyCmd) Help() string {
	return `Reads the whole ledger while the service goes on: every transfer is as it was
made and stands in the audit, every balance, lock and closed day is what the
transfers and holds say, and the balances of each asset add up to 0. Prints a line
for each asset; the first fault is named with its id, and the exit status is 1.

"castellan audit verify" proves the audit itself.`
}

func (ledgerVerifyCmd) Run(e *env) error {
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	totals, err := ledger.Verify(e.ctx, money.NewLedger(v.DB))
	if err != nil {
		return err
	}
	for _, t := range totals {
		fmt.Fprintln(e.out, t)
	}
	_, err = fmt.Fprintf(e.out, "the ledger of %d assets is whole\n", len(totals))
	return err
}

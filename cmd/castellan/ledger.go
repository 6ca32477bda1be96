package main

import (
	"fmt"

	"castellan/cmd/app"
	"castellan/domain/money/ledger"
	"castellan/persistence/money"
)

type ledgerCmd struct {
	Verify ledgerVerifyCmd `cmd:"" help:"Verify all balances against the transfers."`
}

type ledgerVerifyCmd struct{}

func (ledgerVerifyCmd) Help() string {
	return `Verifies the whole ledger while the service runs. Every transfer must be unchanged and
part of the audit trail. Every balance, lock and closed day must match the transfers and
holds. The balances of each asset must add up to 0. The totals of the money policy must
match the movements. Prints one line per asset. On the first fault, it prints the id and
exits with status 1.

"castellan audit verify" verifies the audit trail itself.`
}

func (ledgerVerifyCmd) Run(e *env, v *app.Deployment) error {
	totals, err := ledger.Verify(e.ctx, money.NewLedger(v.DB))
	if err == nil {
		err = money.NewTransactions(v.DB).VerifyTotals(e.ctx)
	}
	if err != nil {
		return err
	}
	for _, t := range totals {
		fmt.Fprintln(e.out, t)
	}
	return e.printf(nil, "the ledger of %d assets is valid\n", len(totals))
}

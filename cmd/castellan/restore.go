package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/cmd/app/adapters"
	"castellan/domain/kit/audit"
	"castellan/domain/money/transaction"
	"castellan/persistence/kit"
	"castellan/persistence/money"
)

type restoreCmd struct {
	Copy      restoreCopyCmd      `cmd:"" default:"withargs" help:"Restore a backup into an empty place."`
	InPlace   restoreInPlaceCmd   `cmd:"" help:"Complete a restore that another program has made."`
	Reconcile restoreReconcileCmd `cmd:"" help:"Compare the queue of withdrawals with the wallet."`
}

type restoreCopyCmd struct {
	From   string `help:"Folder, or s3://BUCKET/NAME, of castellan backup." required:"" placeholder:"PLACE"`
	Verify bool   `help:"Verify the whole audit trail and ledger, not only their heads."`
}

func (restoreCopyCmd) Help() string {
	return `Restores a backup of "castellan backup" into an empty place: database.url names no
database (SQLite) or an empty one (PostgreSQL), and files.folder or files.s3_url has no
files. keys.master_file is the master key of the backup. A backup that is damaged,
incomplete or of another deployment is refused before anything changes.

  castellan restore --from /backup/2026-11-29 --verify
  castellan restore reconcile --wallet wallet.csv --finish

If the restore is interrupted, "serve" refuses the place: repeat the command. Afterwards
all sessions, open challenges, codes and remembered browsers have ended, the tokens are
signed by a new key, and wrong attempts count as before. No withdrawal can be claimed
until "castellan restore reconcile --finish".`
}

func (c restoreCopyCmd) Run(e *env) error {
	from, err := adapters.BackupFrom(e.cfg.Files, c.From)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	r, err := app.Restore(e.ctx, e.cfg, from, c.Verify, e.progress())
	fmt.Fprintln(e.err)
	if err != nil {
		return err
	}
	return e.restored(r)
}

type restoreInPlaceCmd struct {
	Point  string `help:"Instant to which the database was restored (default: now)." placeholder:"TIME"`
	Verify bool   `help:"Verify the audit trail and the ledger first."`
}

func (restoreInPlaceCmd) Help() string {
	return `For a database that was restored by PostgreSQL from its archive, by Litestream, by
pg_restore or from a copy of the disk. Does what "castellan restore" does after its copy:
ends sessions, challenges and codes, replaces the signing key, and holds withdrawals until
"castellan restore reconcile --finish". Stop every node, and run it before the first
start.

  castellan restore in-place --point 2026-11-29T01:00:00Z --verify`
}

func (c restoreInPlaceCmd) Run(e *env) error {
	point := time.Now()
	if c.Point != "" {
		var err error
		if point, err = time.Parse(time.RFC3339Nano, c.Point); err != nil {
			return fmt.Errorf("--point: want a time such as 2026-11-29T01:00:00Z: %w", err)
		}
		if point.After(time.Now()) {
			return fmt.Errorf("--point: %s is in the future", c.Point)
		}
	}
	r, err := app.AdoptRestored(e.ctx, e.cfg, point, c.Verify)
	if err != nil {
		return err
	}
	return e.restored(r)
}

// restored prints what was restored and what may be lost.
func (e *env) restored(r app.Restored) error {
	for _, t := range r.Books {
		fmt.Fprintln(e.out, t)
	}
	if r.Audit > 0 {
		fmt.Fprintf(e.out, "%d audit rows, all chains are valid\n", r.Audit)
	}
	n := r.Ended
	return e.printf(nil, `restored to %s
ended: %d sessions, %d open challenges, %d remembered browsers, %d password resets,
%d unsent codes; wrong attempts count as before
%d withdrawals wait for "castellan restore reconcile"; none can be claimed before --finish
%d unfinished jobs continue with the service: castellan jobs list, castellan jobs cancel

Lost is everything that a client was told after that instant:
- accounts, passwords, second factors, contacts and consents of then are those of before;
  a used recovery code is valid again
- keys, roles, rules and accounts that were removed or blocked since are active again
- deposits, transfers and withdrawals since are unknown. Repeated with their externalId
  they are made; reconcile first, so that no withdrawal is paid twice
- messages that were sent since may be sent again
- readers of /integration/events get 409 for a newer cursor, and continue with an older one
- audit checkpoints that were anchored since do not match
`, r.Point.UTC().Format(time.RFC3339Nano), n.Sessions, n.Challenges, n.Remembered, n.Resets, n.Messages, n.Withdrawals,
		n.Jobs)
}

type restoreReconcileCmd struct {
	Wallet string `help:"Records of the wallet since the point, as CSV." type:"existingfile" placeholder:"FILE"`
	Finish bool   `help:"Let the wallet claim withdrawals again; every entry must be compared."`
}

func (restoreReconcileCmd) Help() string {
	return `After a restore, every entry of the queue of withdrawals that was not final waits: the
wallet may have paid it since. Without flags, lists these entries. --wallet reads what the
wallet did, also with withdrawals that are unknown here:

  withdrawalId,externalId,state,txId
  01JD3X4Q7V0S8D4T2M6B9N1ZKA,order-17,sent,0x9f86d081
  01JD3X4Q7V0S8D4T2M6B9N1ZKB,order-18,unsent,

state is sent or unsent; txId is required for sent. An entry that was sent gets the status
sent, and the wallet reports its success. One that was not sent can be resumed or
cancelled. A withdrawal that was sent and is unknown was requested after the point: its
externalId is refused from now on; book it by an adjustment. Repeating a file changes
nothing.`
}

func (c restoreReconcileCmd) Run(e *env) error {
	payments, err := readPayments(c.Wallet)
	if err != nil {
		return fmt.Errorf("--wallet %s: %w", c.Wallet, err)
	}
	v, err := app.OpenExisting(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	r := transaction.Reconciliation{Store: money.NewTransactions(v.DB), Claims: kit.NewIntegration(v.DB), Commit: v.DB,
		Now: time.Now}
	counts := map[transaction.Verdict]int{}
	for _, p := range payments {
		verdict, err := r.Settle(e.ctx, audit.Operator, p)
		if err != nil {
			return fmt.Errorf("--wallet: %s %s: %w", p.ID, p.ExternalID, err)
		}
		if counts[verdict]++; verdict == transaction.Lost {
			fmt.Fprintf(e.out, "%s  %s  %s  was sent and is unknown here: book it by an adjustment\n", p.ID, p.ExternalID,
				p.TxID)
		}
	}
	for _, verdict := range []transaction.Verdict{transaction.MarkedSent, transaction.MarkedUnsent, transaction.Lost,
		transaction.Agrees} {
		if c.Wallet != "" {
			fmt.Fprintf(e.out, "%s: %d\n", verdict, counts[verdict])
		}
	}
	left, err := r.Store.Uncompared(e.ctx)
	if err != nil {
		return err
	}
	w := e.table()
	for _, q := range left {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", q.ID, q.ExternalID, q.Former, q.Address)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(e.out, "%d withdrawals wait for the comparison\n", len(left))
	if !c.Finish {
		return nil
	}
	if err := r.Finish(e.ctx, audit.Operator); err != nil {
		return fmt.Errorf("--finish: %w", err)
	}
	return e.print(nil, "withdrawals can be claimed again")
}

// readPayments reads the records of a wallet; "" is no file.
func readPayments(file string) (all []transaction.Payment, err error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	header := []string{"withdrawalId", "externalId", "state", "txId"}
	if len(lines) == 0 || !slices.Equal(lines[0], header) {
		return nil, errors.New("line 1: want " + strings.Join(header, ","))
	}
	for i, l := range lines[1:] {
		p := transaction.Payment{ID: l[0], ExternalID: l[1], Sent: l[2] == "sent", TxID: l[3]}
		switch {
		case p.ID == "" && p.ExternalID == "":
			err = errors.New("withdrawalId or externalId is required")
		case l[2] != "sent" && l[2] != "unsent":
			err = errors.New("state must be sent or unsent")
		case p.Sent && p.TxID == "":
			err = errors.New("txId is required for sent")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		all = append(all, p)
	}
	return all, nil
}

package demo

import (
	"context"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/transaction"
	"castellan/persistence/kit"
)

// recent is the age of pending deposits and of withdrawals in the queue.
const recent = 12 * 24 * time.Hour

// works creates a deposit and a withdrawal of a shown person, with the calls of the wallet and the staff for them.
func (u *purse) works(ctx context.Context) {
	s := sourceOf(u.Seed, "wallet of "+u.ID, 0) // the same one when the transaction is repeated
	from := u.CreatedAt.Add(time.Hour)
	if least := u.Now.Add(-recent); from.Before(least) {
		from = least
	}
	until := u.Now.Add(-3 * time.Hour)
	within("deposit of "+u.ID, func() { u.arrives(ctx, s, s.between(from, until)) })
	within("withdrawal of "+u.ID, func() { u.leaves(ctx, s, s.between(from, until)) })
}

// arrives reports a deposit: with its sender, without it, without it at first, or as final. The treasury credits some
// of those with their sender later.
func (u *purse) arrives(ctx context.Context, s source, at time.Time) {
	d := transaction.Report{ExternalID: u.ref, UserID: u.ID, CurrencyCode: u.a.currency, Network: u.a.network,
		Amount: s.worth(u.a), TxID: s.hex(32), ToAddress: transaction.Address(u.user),
		FromAddress: outside(s, u.a.network), SenderInfo: u.sender()}
	later := d
	switch u.place % 4 {
	case 1:
		d.SenderInfo = ""
	case 2:
		d.SenderInfo, later.SenderInfo = "", ""
	case 3:
		d.Final = !u.credited()
		later.Final = d.Final
	}
	for _, report := range []transaction.Report{d, later} { // the second one changes something only in case 1
		u.Clock.set(at)
		value(u.doors.deposits.Report(ctx, wallet, report))
		at = at.Add(20 * time.Minute)
	}
}

// credited reports whether the treasury credits the person's deposit.
func (p *person) credited() bool { return p.place%8 == 3 }

// treasury credits pending deposits, by the job that the console starts.
func (r *run) treasury(ctx context.Context) {
	claims := kit.NewIntegration(r.DB)
	var ids []string
	for place := range min(r.Users, shown) {
		p := r.byPlace(place)
		if !p.credited() {
			continue
		}
		c, err := claims.Claim(ctx, integration.Deposits, p.ref)
		if fault.CodeOf(err) == fault.RecordNotFound {
			continue // an account without money
		}
		check(err)
		ids = append(ids, c.RecordID)
	}
	if len(ids) == 0 {
		return
	}
	r.Clock.set(r.Now.Add(-2 * time.Hour))
	u := value(r.doors.deposits.UpdateStatus(ctx, r.treasurer(), transaction.Update{IDs: ids,
		To: transaction.FinalizedDeposit, Reason: "the senders are known"}))
	r.runJob(ctx, u.JobID)
}

// step is a call about a withdrawal in the queue.
type step func(ctx context.Context, u *purse, id string)

// The calls about a withdrawal.
var (
	claimed  = moved(transaction.QueueProcessing, "")
	sent     = moved(transaction.QueueSent, "")
	final    = moved(transaction.QueueSuccess, "")
	failed   = moved(transaction.QueueFailed, "the network refuses the address")
	unfunded = moved(transaction.HotWalletIsEmpty, "")
	late     = moved(transaction.TimeOut, "")
	approve  = decided(transaction.QueueSuccess)
	hold     = decided(transaction.QueueWaiting)
)

// paths are the ways through the queue, in turn: each ends in another status or reaches it in another way.
var paths = [][]step{
	{},
	{claimed},
	{claimed, sent},
	{claimed, sent, final},
	{claimed, failed},
	{unfunded},
	{claimed, late},
	{unfunded, hold},
	{late, cancel},
	{claimed, late, approve},
	{unfunded, resume, claimed},
}

// moved is a status change by the wallet.
func moved(to transaction.QueueStatus, reason string) step {
	return func(ctx context.Context, u *purse, id string) {
		m := transaction.WalletMove{ID: id, To: to, Reason: reason}
		if to == transaction.QueueSent {
			m.TxID = sourceOf(u.Seed, "sent "+id, 0).hex(32)
		}
		value(u.doors.withdrawals.Move(ctx, wallet, m))
	}
}

// decided is a decision of the treasury.
func decided(to transaction.QueueStatus) step {
	return func(ctx context.Context, u *purse, id string) {
		value(u.doors.deposits.UpdateQueue(ctx, u.treasurer(), transaction.QueueUpdate{ID: id, To: to,
			CurrencyCode: u.a.currency, Reason: "checked with the wallet"}))
	}
}

func cancel(ctx context.Context, u *purse, id string) {
	value(u.doors.withdrawals.Cancel(ctx, u.treasurer(), id, "the user asks for it"))
}

func resume(ctx context.Context, u *purse, id string) {
	value(u.doors.withdrawals.Resume(ctx, u.treasurer(), id, "the hot wallet is funded"))
}

func (r *run) treasurer() audit.By { return audit.By{UserID: r.team[2].ID} }

// leaves requests a withdrawal, half of them to an entry of the address book, and takes it through the queue. The
// service checks it: if it refuses, there is no withdrawal.
func (u *purse) leaves(ctx context.Context, s source, at time.Time) {
	a := quantity(u.a, 1_000+s.Int64N(29_000))
	if most := u.part(15); most.Cmp(a) < 0 {
		a = most
	}
	w := transaction.WithdrawalRequest{ExternalID: u.ref, UserID: u.ID, CurrencyCode: u.a.currency,
		NetworkCode: u.a.network, Amount: a, Address: outside(s, u.a.network)}
	if u.a.network == "XRP" {
		w.AddressTag = s.number(6)
	}
	if a == (amount.Amount{}) {
		return
	}
	if u.place%2 == 0 || u.Waiting > 0 {
		entered := at.Add(-u.Waiting - time.Hour)
		if entered.Before(u.CreatedAt) {
			entered = u.CreatedAt
		}
		u.Clock.set(entered)
		entry := value(u.doors.books.Add(ctx, audit.By{UserID: u.ID}, addressbook.New{Name: "Kendi cüzdanım",
			CurrencyCode: w.CurrencyCode, NetworkCode: w.NetworkCode, Address: w.Address,
			AddressTag: w.AddressTag}))
		w.AddressID, w.Address = entry.ID, ""
	}
	u.Clock.set(at)
	o, err := u.doors.withdrawals.Request(ctx, wallet, w)
	if refused(err) {
		return
	}
	check(err)
	for _, call := range paths[u.place%len(paths)] {
		at = at.Add(10 * time.Minute)
		u.Clock.set(at)
		call(ctx, u, o.Withdrawal.ID)
	}
}

// refused reports whether a withdrawal was checked and refused.
func refused(err error) bool {
	switch fault.CodeOf(err) {
	case fault.AccountNotActive, fault.WithdrawalProhibited, fault.AMLRisky, fault.PairDisabled, fault.BelowMinimum,
		fault.LimitExceeded, fault.AddressNotAllowed, fault.InsufficientBalance, fault.PolicyDenied,
		fault.OwnerRequired:
		return true
	}
	return false
}

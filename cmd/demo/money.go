package demo

import (
	"fmt"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/sorting"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
)

// asset is a currency of a network with its price, in cents of a dollar.
type asset struct {
	id, currencyID    int64
	currency, network string
	decimals          int
	cents             int64
}

// purse is the history of one person with one asset, in the order of time.
type purse struct {
	*run
	*person
	b    *ledger.Batch
	a    asset
	user ledger.Account
	last *ledger.Transfer // from the house to the user, not reversed yet
}

// money adds a person's movements of the months to the batch.
func (r *run) money(b *ledger.Batch, p *person) {
	if !p.KYCApproved() || p.place < 0 && p.chance(55) {
		return
	}
	moves, assets := 1+p.IntN(4), 1
	if p.place >= 0 {
		moves, assets = 4+p.IntN(8), 1+p.IntN(3)
	}
	if p.named != nil {
		moves, assets = 14, 4
	}
	first := p.IntN(len(r.assets))
	for n := range assets {
		a := r.assets[(first+n)%len(r.assets)]
		u := purse{run: r, person: p, b: b, a: a, user: ledger.Account{Kind: ledger.User, Owner: p.ID, Asset: a.id}}
		within(a.currency+" of "+p.ID, func() {
			u.history(moves)
			if n == 0 && p.place >= 0 && !p.staff() {
				u.block(u.between(p.CreatedAt.Add(time.Hour), r.Now.Add(-2*time.Hour)))
				p.purse = &u
			}
		})
	}
}

func (u *purse) house(k ledger.Kind) ledger.Account { return ledger.Account{Kind: k, Asset: u.a.id} }

// history makes that many movements since the registration, with at least one deposit.
func (u *purse) history(moves int) {
	at := make([]time.Time, moves)
	for i := range at {
		at[i] = u.between(u.CreatedAt.Add(time.Hour), u.Now.Add(-2*time.Hour))
	}
	sorting.Func(at, time.Time.Compare)
	for i, at := range at {
		if i > 0 && !at.After(atOf(u.last, u.CreatedAt)) {
			continue
		}
		switch n := u.IntN(100); {
		case i == 0 || n < 45:
			u.deposit(at)
		case n < 75:
			u.withdraw(at)
		case n < 85:
			u.adjust(at)
		case n < 92:
			u.reverse(at)
		default:
			u.hold(at)
		}
	}
}

func atOf(t *ledger.Transfer, otherwise time.Time) time.Time {
	if t == nil {
		return otherwise
	}
	return t.At
}

// move adds a movement to the batch.
func (u *purse) move(m ledger.Movement) { check(u.b.Do(m)) }

func (u *purse) transfer(at time.Time, kind, ref string, from, to ledger.Account, a amount.Amount) ledger.Transfer {
	t := ledger.Transfer{ID: u.id(at), Kind: kind, Ref: ref, Debit: from, Credit: to, Amount: a, At: at}
	if ref == "" {
		t.Ref = t.ID
	}
	return t
}

// deposit adds money from outside.
func (u *purse) deposit(at time.Time) {
	t := u.transfer(at, kindDeposit, "", u.house(ledger.Treasury), u.user, u.worth(u.a))
	with := []commit.Write{transaction.AddDeposit{Deposit: transaction.Deposit{ID: t.ID, UserID: u.ID, Asset: u.a.id,
		Amount: t.Amount, Status: transaction.Finalized, TxID: u.hex(32), ToAddress: transaction.Address(u.user),
		SenderInfo: u.sender(), TransferID: t.ID, At: at}}}
	if u.b.Balance(u.user).Seq == 0 { // once, because PostgreSQL adds all rows of a chunk at once
		with = append(with, transaction.AddAddress{Account: u.user, At: at})
	}
	u.last = &t
	u.move(ledger.Movement{Transfers: []ledger.Transfer{t}, With: with})
}

// sender returns the sender of a deposit.
func (u *purse) sender() string {
	return fmt.Sprintf(`{"name":%q,"country":%q}`, u.FullName(), u.country)
}

// part returns that many hundredths of the available amount; zero if that is too small.
func (u *purse) part(hundredths int64) amount.Amount {
	hi, lo := u.b.Balance(u.user).Available().Parts()
	micro := hi*1_000_000 + lo/1_000_000_000_000
	n := micro * hundredths / 100
	unit := max(int64(amount.Unit(u.a.decimals))/1_000_000_000_000, 1)
	n -= n % unit
	return value(amount.Of(n/1_000_000, n%1_000_000*1_000_000_000_000))
}

// withdraw sends a part outside, for a fee of a hundredth of the balance.
func (u *purse) withdraw(at time.Time) {
	a, fee := u.part(10+u.Int64N(40)), u.part(1)
	if a.Sign() == 0 || fee.Sign() == 0 {
		u.deposit(at)
		return
	}
	t := u.transfer(at, kindWithdrawal, "", u.user, u.house(ledger.Treasury), a)
	f := u.transfer(at, kindFee, t.ID, u.user, u.house(ledger.Fee), fee)
	with := []commit.Write{transaction.AddWithdrawal{Withdrawal: transaction.Withdrawal{ID: t.ID, UserID: u.ID,
		Asset: u.a.id, Amount: a, Fee: fee, Status: transaction.Finalized, ToAddress: outside(u.source, u.a.network),
		TransferID: t.ID, At: at}}}
	if u.place >= 0 {
		with = append(with, u.process(t.ID, u.hex(32), at.Add(time.Minute)))
	}
	u.move(ledger.Movement{Transfers: []ledger.Transfer{t, f}, With: with})
}

// adjust makes a correction by an administrator, as adjust-balance does.
func (u *purse) adjust(at time.Time) {
	t := u.transfer(at, kindAdjustment, "ADJ-"+u.hex(6), u.house(ledger.Treasury), u.user, quantity(u.a, 2_500))
	u.last = &t
	u.move(ledger.Movement{Transfers: []ledger.Transfer{t}, With: []commit.Write{
		transaction.AddDeposit{Deposit: transaction.Deposit{ID: t.ID, UserID: u.ID, Asset: u.a.id, Amount: t.Amount,
			Status: transaction.Finalized, TxID: t.Ref, ToAddress: transaction.Address(u.user), TransferID: t.ID, At: at}}}})
}

// reverse reverses the last transfer from the house, if that amount is still available.
func (u *purse) reverse(at time.Time) {
	if u.last == nil || u.last.Kind != kindAdjustment || u.b.Balance(u.user).Available().Cmp(u.last.Amount) < 0 {
		u.adjust(at)
		return
	}
	t := ledger.Reversal(at, *u.last, "booked to the wrong account")
	t.ID, u.last = u.id(at), nil
	u.move(ledger.Movement{Transfers: []ledger.Transfer{t}})
}

// hold locks a part for a while. In the end it is free again, taken, or still locked.
func (u *purse) hold(at time.Time) {
	a := u.part(20)
	if a.Sign() == 0 {
		u.deposit(at)
		return
	}
	h := ledger.Hold{ID: u.id(at), Account: u.user, Source: "demo", Type: "order", Amount: a, State: ledger.Active,
		Version: 1}
	h.Ref = h.ID
	if u.move(ledger.Movement{Take: []ledger.Hold{h}}); u.place < 0 {
		return // for most people they stay
	}
	switch u.IntN(3) {
	case 0:
		u.move(ledger.Movement{End: []ledger.End{{Hold: h.ID}}})
	case 1:
		t := u.transfer(at, kindFee, "", u.user, u.house(ledger.Fee), a)
		u.move(ledger.Movement{Transfers: []ledger.Transfer{t}, End: []ledger.End{{Hold: h.ID, Transfer: t.ID}}})
	}
}

// The kinds of transfers, as the service names them.
const (
	kindDeposit    = "deposit"
	kindWithdrawal = "withdrawal"
	kindFee        = "withdrawal-fee"
	kindAdjustment = "adjustment"
)

// process returns the network events of a transaction.
func (u *purse) process(transactionID, txID string, at time.Time) commit.Write {
	return transaction.AddProcess{Process: transaction.Process{ID: u.id(at), TransactionID: transactionID, UserID: u.ID,
		Asset: u.a.id, TxID: txID, Status: transaction.Finalized, At: at}}
}

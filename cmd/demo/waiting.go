package demo

import (
	"time"

	"castellan/domain/commit"
	"castellan/domain/ledger"
	"castellan/domain/transaction"
)

// waiting is what is not finished yet: of those who are shown, in turn, a deposit of
// each status that waits, and an entry of each status of the queue of withdrawals.
func (u *purse) waiting(at time.Time) error {
	if err := u.arrives(at); err != nil {
		return err
	}
	return u.enqueue(at.Add(time.Minute))
}

// arrives is a deposit that waits for the treasury, with or without its sender, or
// for the sender to be told; or one that waited and is credited.
func (u *purse) arrives(at time.Time) error {
	d := transaction.Deposit{ID: u.id(at), UserID: u.ID, Asset: u.a.id, Amount: u.worth(u.a), TxID: u.hex(32),
		ToAddress: transaction.Address(u.user), SenderInfo: u.sender(), At: at}
	var m ledger.Movement
	switch u.place % 4 {
	case 0:
		d.Status = transaction.WaitingTreasury
	case 1:
		d.Status, d.SenderInfo = transaction.WaitingTreasury, ""
	case 2:
		d.Status, d.SenderInfo = transaction.WaitingSender, ""
	default:
		d.Status, d.TransferID = transaction.FinalizedDeposit, d.ID
		m.Transfers = []ledger.Transfer{u.transfer(at, kindDeposit, d.ID, u.house(ledger.Treasury), u.user, d.Amount)}
		m.Transfers[0].ID = d.ID
	}
	m.With = []commit.Write{transaction.AddDeposit{Deposit: d}}
	return u.b.Do(m)
}

// enqueue puts a withdrawal into the queue. One that has succeeded is booked and has
// its process.
func (u *purse) enqueue(at time.Time) error {
	a, fee := u.part(15), u.part(1)
	if a.Sign() == 0 || fee.Sign() == 0 {
		return nil
	}
	status := []transaction.QueueStatus{transaction.QueueWaiting, transaction.HotWalletIsEmpty, transaction.TimeOut,
		transaction.QueueSuccess}[u.place/4%4]
	w := transaction.Withdrawal{ID: u.id(at), UserID: u.ID, Asset: u.a.id, Amount: a,
		ToAddress: outside(u.source, u.a.network), At: at}
	q := transaction.Queued{Status: status, ExternalID: "EXT-" + u.number(8), Attempt: u.hex(8)}
	if u.a.network == "XRP" {
		q.AddressTag = u.number(6)
	}
	if u.chance(30) {
		q.Fee = &fee
	}
	m, err := transaction.Enqueue(w, q, fee)
	if err != nil {
		return err
	}
	added, queued, hold := m.With[0].(transaction.AddWithdrawal), m.With[1].(transaction.AddQueued), &m.Take[0]
	hold.ID = u.id(at) // instead of an accidental one
	added.Withdrawal.HoldID = hold.ID
	if status != transaction.QueueSuccess {
		m.With = []commit.Write{added, queued}
		return u.b.Do(m)
	}
	m.With = nil
	if err := u.b.Do(m); err != nil {
		return err
	}
	sent := at.Add(10 * time.Minute)
	t := u.transfer(sent, kindWithdrawal, w.ID, u.user, u.house(ledger.Treasury), a)
	f := u.transfer(sent, kindFee, w.ID, u.user, u.house(ledger.Fee), fee)
	added.Withdrawal.Status, added.Withdrawal.TransferID, added.Withdrawal.Fee = transaction.Processing, t.ID, fee
	queued.Queued.TxID = u.hex(32)
	return u.b.Do(ledger.Movement{Transfers: []ledger.Transfer{t, f}, End: []ledger.End{{Hold: hold.ID, Transfer: t.ID}},
		With: []commit.Write{added, queued, u.process(w.ID, queued.Queued.TxID, sent)}})
}

// process is what happened to a transaction on its network.
func (u *purse) process(transactionID, txID string, at time.Time) commit.Write {
	return transaction.AddProcess{Process: transaction.Process{ID: u.id(at), TransactionID: transactionID, UserID: u.ID,
		Asset: u.a.id, TxID: txID, Status: transaction.Finalized, At: at}}
}

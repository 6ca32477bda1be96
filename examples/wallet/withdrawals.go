package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"castellan/client"
	"castellan/domain/kit/amount"
)

// The statuses of a withdrawal in the service from which the wallet moves it on.
const (
	queued     = "queued"
	processing = "processing"
	noMoney    = "hotWalletInsufficientBalance"
	timeOut    = "timeOut"
)

// withdrawals advances each withdrawal as far as possible now. Those with a nonce come first, in the order of their
// nonces: the chain accepts no other order.
func (w *Wallet) withdrawals(ctx context.Context) error {
	all := slices.SortedFunc(maps.Values(w.State.Withdrawals), func(a, b Withdrawal) int {
		if a.Step == Signed && b.Step == Signed {
			return cmp.Compare(a.Nonce, b.Nonce)
		}
		return cmp.Or(rank(a.Step)-rank(b.Step), cmp.Compare(a.ID, b.ID))
	})
	check := time.Since(w.checked) >= w.Check
	if check {
		w.checked = time.Now()
	}
	for _, x := range all {
		for x.Step != Done {
			next, err := w.step(ctx, x, check)
			if err != nil {
				return err
			}
			if next == x {
				break
			}
			if err := w.put(entry{Withdrawals: []Withdrawal{next}}); err != nil {
				return err
			}
			slog.Info("withdrawal", "id", next.ID, "step", next.Step, "outcome", next.Outcome)
			x = next
		}
	}
	return nil
}

func rank(s Step) int {
	if s == Signed {
		return 0
	}
	return 1
}

// step executes one step of a withdrawal and returns its new state, to be made durable. Each step may be repeated after
// a crash. An error means that there was no answer.
func (w *Wallet) step(ctx context.Context, x Withdrawal, check bool) (Withdrawal, error) {
	switch x.Step {
	case Queued:
		return w.claim(ctx, x)
	case Failing:
		return w.report(ctx, x, client.WithdrawalMove{From: processing, Status: "failed",
			Reason: "the wallet was configured to fail"}, Done)
	case Empty:
		return w.report(ctx, x, client.WithdrawalMove{From: processing, Status: noMoney}, Parked)
	case Late:
		return w.report(ctx, x, client.WithdrawalMove{From: processing, Status: timeOut}, Parked)
	case Parked:
		if check {
			return w.ask(ctx, x)
		}
	case Signed:
		if err := w.send(x); err != nil {
			return x, err
		}
		return w.report(ctx, x, client.WithdrawalMove{From: processing, Status: "sent", TxID: x.TxID}, Sent)
	case Sent:
		if m, found := w.Chain.Find(x.TxID); found && w.Chain.Confirmations(m) >= w.Confirmations {
			return w.report(ctx, x, client.WithdrawalMove{From: "sent", Status: "finalized"}, Done)
		}
	}
	return x, nil
}

// claim takes a withdrawal from the queue and decides about it. After the claim no administrator can cancel it. The
// decision is durable before it is executed. So a killed wallet never signs a withdrawal that it had begun to refuse,
// and never signs twice.
func (w *Wallet) claim(ctx context.Context, x Withdrawal) (Withdrawal, error) {
	// The journal has no transaction, but the chain may: the journal could be an old copy. Look there first.
	if m, found := w.Chain.FindMemo(w.hotKey, x.ID); found {
		x.Step, x.Nonce, x.TxID = Signed, m.Nonce, m.ID
		return x, nil
	}
	if x.Claim == "" { // it is on the disk before the claim, so that only this wallet can repeat the claim
		x.Claim = rand.Text()
		return x, nil
	}
	const claimed = Step("claimed")
	move := client.WithdrawalMove{From: cmp.Or(x.From, queued), Status: processing, ClaimToken: x.Claim}
	now, r, err := w.move(ctx, x, move, claimed)
	if now.Step != claimed {
		return now, err
	}
	if err := w.ordered(ctx, x, r.Order); err != nil {
		slog.Error("a withdrawal is not signed, because its order does not say so", "id", x.ID, "error", err)
		return x, nil
	}
	x.From = ""
	switch free := w.free(x); {
	case chance(w.Fail):
		x.Step = Failing
	case chance(w.TimeOut):
		x.Step = Late
	case free.Cmp(x.Amount) < 0 || chance(w.Empty):
		x.Step = Empty
	default:
		x.Step, x.Nonce = Signed, w.nextNonce()
		x.TxID = w.tx(x).ID()
	}
	return x, nil
}

// free returns the amount that the hot wallet can pay: its balance less the signed transactions that are not sent.
func (w *Wallet) free(x Withdrawal) amount.Amount {
	has := w.Chain.Balance(addressFor(w.hot), x.Currency, x.Network)
	for _, other := range w.State.Withdrawals {
		if other.Step != Signed || other.Currency != x.Currency || other.Network != x.Network {
			continue
		}
		if _, sent := w.Chain.Find(other.TxID); !sent {
			has, _ = has.Sub(other.Amount)
		}
	}
	return has
}

func (w *Wallet) nextNonce() uint64 {
	next := w.Chain.Next(w.hotKey)
	for _, x := range w.State.Withdrawals {
		if x.Step == Signed {
			next = max(next, x.Nonce+1)
		}
	}
	return next
}

// tx returns the transaction of a withdrawal that has its nonce: the same one at every call.
func (w *Wallet) tx(x Withdrawal) Tx {
	return Tx{Nonce: x.Nonce, To: x.Address, Tag: x.Tag, Currency: x.Currency, Network: x.Network, Amount: x.Amount,
		Memo: x.ID}.Signed(w.hot)
}

// send puts the transaction of a withdrawal on the chain, unless it is there.
func (w *Wallet) send(x Withdrawal) error {
	if _, found := w.Chain.Find(x.TxID); found {
		return nil
	}
	w.mayCrash()
	if err := w.Chain.Send(w.tx(x)); err != nil {
		return ownError{err}
	}
	w.mayCrash()
	return nil
}

// report reports a status change, and returns the withdrawal at its next step. The service answers a repeated change
// with the record. If it refuses the change, the withdrawal has changed without the wallet; then its status decides.
func (w *Wallet) report(ctx context.Context, x Withdrawal, m client.WithdrawalMove, next Step) (Withdrawal, error) {
	x, _, err := w.move(ctx, x, m, next)
	return x, err
}

// move is report, with the record.
func (w *Wallet) move(ctx context.Context, x Withdrawal, m client.WithdrawalMove,
	next Step) (Withdrawal, client.WithdrawalRecord, error) {
	w.mayCrash()
	r, err := w.Service.MoveWithdrawal(ctx, x.ID, m)
	w.mayCrash()
	switch code := client.CodeOf(err); {
	case code == "INVALID_STATE":
		x, err = w.ask(ctx, x)
		return x, r, err
	case code != "":
		slog.Error("a move was refused", "id", x.ID, "status", m.Status, "error", err)
		return x, r, nil
	case err != nil:
		return x, r, err
	}
	if x.Step = next; next == Done {
		x.Outcome = r.Status
	}
	return x, r, nil
}

// ordered checks that the service has signed an order for exactly this withdrawal. Events could be forged by a machine
// in between; the order cannot.
func (w *Wallet) ordered(ctx context.Context, x Withdrawal, order string) error {
	o, err := w.Service.VerifyOrder(ctx, x.ID, order)
	if err != nil {
		return err
	}
	sum, err := amount.Parse(o.Amount.String())
	if err != nil || sum.Cmp(x.Amount) != 0 || o.Address != x.Address || o.Tag != x.Tag || o.Currency != x.Currency ||
		o.Network != x.Network {
		return fmt.Errorf("the order is %+v", o)
	}
	return nil
}

// ask reads the status of a withdrawal and returns it at the step that follows from it.
func (w *Wallet) ask(ctx context.Context, x Withdrawal) (Withdrawal, error) {
	r, err := w.Service.Withdrawal(ctx, x.ID)
	if err != nil {
		return x, err
	}
	switch {
	case r.Status == "finalized" || r.Status == "failed" || r.Status == "cancelled":
		if r.Status != "finalized" && x.TxID != "" {
			slog.Error("a withdrawal with a transaction has ended otherwise", "id", x.ID, "status", r.Status)
		}
		x.Step, x.Outcome = Done, r.Status
	case x.Step == Signed && r.Status == "sent" && r.TxID == x.TxID:
		x.Step = Sent
	case x.Step == Queued && r.Status == queued:
		x.From = ""
	case x.Step == Queued && r.Status != processing: // it waits for an administrator
		x.Step, x.From = Parked, ""
	case x.Step == Parked && (r.Status == noMoney || r.Status == timeOut) && chance(w.Retry):
		x.Step, x.From = Queued, r.Status
	}
	return x, nil
}

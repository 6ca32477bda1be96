package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"

	"castellan/client"
)

// deposits looks for new deposits on the chain and reports the changes.
func (w *Wallet) deposits(ctx context.Context) error {
	users, err := Users(w.Dir, w.Keys) // after the chain was read: an address is older than its payments
	if err != nil {
		return ownError{err}
	}
	e := entry{Scanned: w.State.Scanned}
	for _, m := range w.Chain.Txs[w.State.Scanned:] {
		if m.Block == 0 {
			break
		}
		e.Scanned++
		if user, ours := users[m.To]; ours && m.Key != "" {
			e.Deposits = append(e.Deposits, Deposit{TxID: m.ID, UserID: user, Step: Seen})
		}
	}
	if e.Scanned != w.State.Scanned {
		if err := w.put(e); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.State.Deposits)) {
		if err := w.deposit(ctx, w.State.Deposits[id]); err != nil {
			return err
		}
	}
	return nil
}

// deposit reports a deposit if it has changed.
func (w *Wallet) deposit(ctx context.Context, d Deposit) error {
	if d.Step == Done {
		return nil
	}
	m, found := w.Chain.Find(d.TxID)
	if !found {
		return nil
	}
	sender, err := Sender(w.Dir, d.TxID)
	if err != nil {
		return ownError{err}
	}
	news := sender != nil && !bytes.Equal(sender, d.Sender)
	final := w.Finalize && d.Step == Named && w.Chain.Confirmations(m) >= w.Confirmations
	if d.Step != Seen && !(d.Step == Waiting && news) && !final {
		return nil
	}
	status := "waiting"
	if final {
		status = "finalized"
		sender = d.Sender
	}
	r, err := w.Service.ReportDeposit(ctx, client.Deposit{ExternalID: d.TxID, UserID: d.UserID, CurrencyCode: m.Currency,
		Network: m.Network, Amount: json.Number(m.Amount.String()), TxID: m.ID, ToAddress: m.To, FromAddress: m.From(),
		SenderInfo: sender, Status: status})
	switch code := client.CodeOf(err); {
	case final && code == "INVALID_STATE": // the treasury has credited it
		r.Status = "finalized"
	case code != "":
		slog.Error("a deposit was refused", "tx", d.TxID, "error", err)
		return nil
	case err != nil:
		return err
	}
	d.Sender = sender
	switch {
	case final:
		d.Step, d.Outcome = Done, r.Status
	case sender != nil:
		d.Step = Named
	default:
		d.Step = Waiting
	}
	slog.Info("deposit", "tx", d.TxID, "status", r.Status)
	return w.put(entry{Deposits: []Deposit{d}})
}

// decided records a decision of the treasury. A deposit that waits for its sender again needs another sender than
// before.
func (w *Wallet) decided(ev client.IntegrationEvent, e *entry) {
	d, found := w.State.Deposits[ev.Data["externalId"]]
	if !found || d.Step == Done {
		return
	}
	switch status := ev.Data["status"]; status {
	case "waitingSenderInfo":
		d.Step = Waiting
	case "waitingTreasuryApproval":
		return
	default:
		d.Step, d.Outcome = Done, status
	}
	slog.Info("deposit decided", "tx", d.TxID, "status", ev.Data["status"])
	e.Deposits = append(e.Deposits, d)
}

package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"syscall"
	"time"

	"castellan/client"
)

// Wallet is a running wallet.
type Wallet struct {
	Options
	Service *client.Client
	Chain   *Chain
	State   *State
	Keys    Keys

	hot     ed25519.PrivateKey
	hotKey  string // the public one, hexadecimal
	checked time.Time
}

// Options are the flags of wallet run.
type Options struct {
	Dir           string
	Confirmations uint64
	Finalize      bool // the wallet finalizes deposits; otherwise the treasury decides
	Poll, Mine    time.Duration
	Check         time.Duration // between two looks at withdrawals that wait for an administrator
	Lose          float64       // probabilities
	Fail          float64
	Empty         float64
	TimeOut       float64
	Retry         float64
	Crash         float64
}

// Run works until ctx ends. An error means that the wallet's own files failed; refusals of the service and lost
// connections are logged and retried.
func (w *Wallet) Run(ctx context.Context) error {
	w.unlock()
	mined := time.Now()
	for {
		if err := w.Chain.Refresh(); err != nil {
			return err
		}
		if w.Mine > 0 && time.Since(mined) >= w.Mine {
			mined = time.Now()
			if err := w.Chain.Mine(); err != nil {
				return err
			}
		}
		if err := w.pass(ctx); err != nil {
			if own, ok := errors.AsType[ownError](err); ok {
				return own.error
			}
			if ctx.Err() == nil {
				slog.Warn("a call of the service failed; the next one is in a moment", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.Poll):
		}
	}
}

// unlock derives the key of the hot wallet.
func (w *Wallet) unlock() {
	w.hot = w.Keys.Hot()
	w.hotKey = hex.EncodeToString(w.hot.Public().(ed25519.PublicKey))
}

// ownError is a failure of the wallet's own files.
type ownError struct{ error }

// pass does everything that is possible now. It ends with the first request without an answer: the next pass begins
// where this one stopped.
func (w *Wallet) pass(ctx context.Context) error {
	for _, do := range []func(context.Context) error{w.deposits, w.events, w.withdrawals} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// put makes a change durable.
func (w *Wallet) put(e entry) error {
	w.mayCrash()
	if err := w.State.Put(e); err != nil {
		return ownError{err}
	}
	w.mayCrash()
	return nil
}

// mayCrash ends the process as kill -9 does, if the flags say so.
func (w *Wallet) mayCrash() {
	if chance(w.Crash) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// chance is true with a probability.
func chance(p float64) bool {
	return rand.Float64() < p // #nosec G404: it decides about a simulated failure
}

// events reads the requests of the platform. The cursor and the effects of the events are one line of the journal:
// after a crash none is missed, and none is applied twice.
func (w *Wallet) events(ctx context.Context) error {
	for {
		const limit = 200
		events, cursor, err := w.Service.IntegrationEvents(ctx, w.State.Cursor, limit)
		if err != nil {
			return err
		}
		if cursor == w.State.Cursor {
			return nil
		}
		e := entry{Cursor: cursor}
		for _, ev := range events {
			w.take(ev, &e)
		}
		if err := w.put(e); err != nil {
			return err
		}
		if len(events) < limit {
			return nil
		}
	}
}

// take adds the effect of an event to an entry. It uses the state before the entry, and the entry's content so far.
func (w *Wallet) take(ev client.IntegrationEvent, e *entry) {
	id := ev.Data["withdrawalId"]
	known, found := w.State.Withdrawals[id]
	for _, other := range e.Withdrawals {
		if other.ID == id {
			known, found = other, true
		}
	}
	switch ev.Type {
	case "withdrawal.queued":
		if found {
			return
		}
		known = Withdrawal{ID: id, Currency: ev.Data["currencyCode"], Network: ev.Data["network"],
			Address: ev.Data["address"], Tag: ev.Data["addressTag"], Step: Queued}
		if err := json.Unmarshal([]byte(ev.Data["amount"]), &known.Amount); err != nil {
			slog.Error("an event has no amount", "id", ev.ID, "error", err)
			return
		}
	case "withdrawal.resumed":
		// A signed withdrawal stays signed: its transaction may be on the chain.
		if !found || known.Step != Empty && known.Step != Late && known.Step != Parked {
			return
		}
		known.Step = Queued
	case "withdrawal.cancelled":
		if !found || known.Step == Signed || known.Step == Sent {
			return
		}
		known.Step, known.Outcome = Done, "cancelled"
	case "deposit.decided":
		w.decided(ev, e)
		return
	default:
		return
	}
	e.Withdrawals = append(e.Withdrawals, known)
}

// losing is a connection that loses answers: the service has executed the request, and the wallet does not receive the
// answer.
type losing struct {
	http.RoundTripper
	p float64
}

var errLost = errors.New("the answer was lost because of --lose")

func (l losing) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := l.RoundTripper.RoundTrip(r)
	if err == nil && chance(l.p) {
		_, _ = io.Copy(io.Discard, a.Body)
		_ = a.Body.Close()
		return nil, errLost
	}
	return a, err
}

package office

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"castellan/cmd/app"
	"castellan/config"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	units "castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/money/ledger"
	"castellan/internal/blackbox"
	"castellan/persistence/money"
)

// moverRole makes the test binary a second process that transfers money beside the service. It serves
// operations without an endpoint, through domain/money/ledger, over HTTP.
const moverRole = "mover"

// kindMoved is the kind of the mover's transfers, and the source of its holds.
const kindMoved = "moved"

// order is a request to the mover; a Ref is executed once.
type order struct {
	Do       string // send, hold, settle, release or reverse
	Ref      string
	From, To string // users; To "" is the treasury
	Asset    int64
	Amount   amount.Amount
	Of       string // the hold to settle or release, the transfer to reverse
	Beyond   bool   // of a hold
}

// moved is the mover's answer; ID is that of the transfer or the hold.
type moved struct {
	ID      string
	Refused bool // the balance does not suffice
}

func mover() {
	if err := serveMover(); err != nil {
		fmt.Fprintln(os.Stderr, "mover:", err)
		os.Exit(1)
	}
}

func serveMover() error {
	cfg, err := config.Load("", os.Environ())
	if err != nil {
		return err
	}
	v, err := app.Open(context.Background(), cfg)
	if err != nil {
		return err
	}
	v.DB.EndPatience()
	l := &ledger.Ledger{Store: money.NewLedger(v.DB), Commit: v.DB, Now: time.Now,
		Decimals: func(context.Context, int64) (int, error) { return blackbox.MoneyDecimals, nil }}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "serving addr=%s\n", at.Addr())
	return http.Serve(at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o order
		err := json.NewDecoder(r.Body).Decode(&o)
		var done moved
		if err == nil {
			done, err = o.carryOut(r.Context(), l)
		}
		var f *fault.Error
		switch {
		case errors.Is(err, ledger.ErrInsufficient):
			done.Refused = true
		case errors.Is(err, units.ErrUnknown),
			errors.As(err, &f) && (f.Code == fault.Unavailable || f.Code == fault.Overloaded):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(done)
	}))
}

func (o order) carryOut(ctx context.Context, l *ledger.Ledger) (moved, error) {
	by := audit.By{UserID: moverRole}
	account := func(owner string) ledger.Account {
		if owner == "" {
			return ledger.Account{Kind: ledger.Treasury, Asset: o.Asset}
		}
		return ledger.Account{Kind: ledger.User, Owner: owner, Asset: o.Asset}
	}
	t := ledger.New(time.Now(), kindMoved, o.Ref, account(o.From), account(o.To), o.Amount)
	var r ledger.Result
	var err error
	m := ledger.Movement{Transfers: []ledger.Transfer{t}}
	switch o.Do {
	case "send":
		r, err = l.Do(ctx, by, m)
	case "hold":
		h := ledger.NewHold(time.Now(), kindMoved, o.Ref, "test", account(o.From), o.Amount)
		h.Beyond = o.Beyond
		if r, err = l.Do(ctx, by, ledger.Movement{Take: []ledger.Hold{h}}); err == nil {
			return moved{ID: r.Holds[0].ID}, nil
		}
	case "settle":
		m.End = []ledger.End{{Hold: o.Of, Transfer: t.ID}}
		r, err = l.Do(ctx, by, m)
	case "release":
		_, err = l.Do(ctx, by, ledger.Movement{End: []ledger.End{{Hold: o.Of}}})
		return moved{ID: o.Of}, err
	case "reverse":
		was := ledger.Transfer{ID: o.Of, Debit: t.Credit, Credit: t.Debit, Amount: t.Amount}
		m.Transfers[0] = ledger.Reversal(time.Now(), was, "taken back")
		r, err = l.Do(ctx, by, m)
	default:
		err = fmt.Errorf("no order %q", o.Do)
	}
	if err != nil {
		return moved{}, err
	}
	return moved{ID: r.Transfers[0].ID}, nil
}

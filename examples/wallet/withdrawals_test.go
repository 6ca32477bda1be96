package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/token"
)

// desk simulates the service with one withdrawal. Its status changes are those of docs/neighbours.md, and each must
// name the status that it expects.
type desk struct {
	status, txID string
	moves        []string // that it executed
	drop         string   // the move whose answer is lost, once
	resume       bool     // an administrator resumes the withdrawal after the claim
	forged       bool     // the event names another address than the order
	ring         *keyring.Ring
}

// order is the signed order of the withdrawal.
func (d *desk) order() string {
	type claims struct {
		Issuer   string       `json:"iss"`
		Audience string       `json:"aud"`
		ID       string       `json:"jti"`
		Expires  int64        `json:"exp"`
		Order    client.Order `json:"order"`
		Digest   string       `json:"digest"`
	}
	c := claims{"castellan", "key", "w-1", time.Now().Add(time.Minute).Unix(), client.Order{Address: "0xcold",
		Amount: "0.5", Currency: "ETH", Fee: "0", Network: "ETH"}, ""}
	text, _ := json.Marshal(c.Order)
	sum := sha256.Sum256(text)
	c.Digest = base64.RawURLEncoding.EncodeToString(sum[:])
	signed, _ := token.NewIssuer(d.ring, "castellan", "t", time.Now, 1).SignStatement("withdrawal-order+jwt", c)
	return signed
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	order := ""
	switch {
	case r.URL.Path == "/.well-known/jwks.json":
		_, _ = w.Write(d.ring.JWKS())
		return
	case strings.HasPrefix(r.URL.Path, "/integration/events"):
		event := `{"id":"1","type":"withdrawal.queued","data":{"withdrawalId":"w-1","currencyCode":"ETH","network":"ETH",` +
			`"amount":"0.5","address":"0xcold"}}`
		if d.forged {
			event = strings.Replace(event, "0xcold", "0xthief", 1)
		}
		if r.FormValue("cursor") != "" {
			event = ""
		}
		fmt.Fprintf(w, `{"data":[%s],"cursor":"c1"}`, event)
		return
	case r.Method == http.MethodPatch:
		var m client.WithdrawalMove
		_ = json.NewDecoder(r.Body).Decode(&m)
		from := map[string]string{"processing": "queued hotWalletInsufficientBalance timeOut", "sent": "processing",
			"hotWalletInsufficientBalance": "queued processing", "timeOut": "queued processing", "failed": "queued processing",
			"finalized": "sent"}[m.Status]
		if d.status != m.Status {
			if !strings.Contains(from, d.status) || m.From != d.status {
				w.WriteHeader(http.StatusConflict)
				fmt.Fprint(w, `{"status":409,"code":"INVALID_STATE"}`)
				return
			}
			d.status, d.txID, d.moves = m.Status, m.TxID, append(d.moves, m.Status)
		}
		if m.Status == "processing" && m.ClaimToken != "" {
			order = d.order()
		}
		if d.resume && m.Status == "processing" {
			d.status = "queued"
		}
		if d.drop == m.Status {
			d.drop = ""
			panic(http.ErrAbortHandler)
		}
	}
	fmt.Fprintf(w, `{"data":{"id":"w-1","status":%q,"txId":%q,"order":%q}}`, d.status, d.txID, order)
}

// wallet returns a wallet in a folder with a full purse, which calls the service once.
func wallet(t *testing.T, d *desk, dir string) *Wallet {
	t.Helper()
	if d.ring == nil {
		d.ring = keyringtest.Ring(t, time.Now)
	}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := &Wallet{Service: c.Service("key"), Options: Options{Dir: dir, Confirmations: 1}}
	if w.Keys, err = OpenKeys(dir); err != nil {
		t.Fatal(err)
	}
	if w.State, err = OpenState(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.State.file.Close() })
	w.Chain = open(t, filepath.Join(dir, "chain"))
	w.unlock()
	return w
}

func (w *Wallet) passes(t *testing.T, n int) {
	t.Helper()
	for range n {
		w.checked = time.Time{}
		if err := w.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.Chain.Mine(); err != nil {
			t.Fatal(err)
		}
	}
}

// paid counts the transactions of the withdrawal on the chain.
func (w *Wallet) paid() (n int) {
	for _, m := range w.Chain.Txs {
		if m.Memo == "w-1" {
			n++
		}
	}
	return n
}

func TestWithdrawalSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		desk  desk
		purse string
		with  Options
		then  func(t *testing.T, w *Wallet, d *desk)
		moves string
		end   string
		paid  int
	}{
		{name: "paid", purse: "1", moves: "processing sent finalized", end: "finalized", paid: 1},
		{name: "answers lost", desk: desk{drop: "processing"}, purse: "1", moves: "processing sent finalized",
			end: "finalized", paid: 1},
		{name: "another address than that of the order", desk: desk{forged: true}, purse: "1", moves: "processing"},
		{name: "told to fail", purse: "1", with: Options{Fail: 1}, moves: "processing failed", end: "failed"},
		{name: "cancelled before the claim", desk: desk{status: "cancelled"}, purse: "1", end: "cancelled"},
		{name: "no money", purse: "0.4", moves: "processing hotWalletInsufficientBalance"},
		{name: "timed out", purse: "1", with: Options{TimeOut: 1}, moves: "processing timeOut"},
		{name: "claimed again", desk: desk{status: "timeOut"}, purse: "1", with: Options{Retry: 1},
			moves: "processing sent finalized", end: "finalized", paid: 1},
		{name: "moved by another", desk: desk{status: "timeOut"}, purse: "1"},
		{name: "waits for approval", desk: desk{status: "waitingApproval"}, purse: "1", with: Options{Retry: 1}},
		{name: "resumed before the report", purse: "1", with: Options{TimeOut: 1}, moves: "processing",
			desk: desk{resume: true}},
		{name: "resumed", purse: "0.4", then: func(t *testing.T, w *Wallet, d *desk) {
			if err := w.Chain.Send(money(addressFor(w.hot), "1")); err != nil {
				t.Fatal(err)
			}
			var e entry
			d.status = "queued"
			w.take(client.IntegrationEvent{Type: "withdrawal.resumed", Data: map[string]string{"withdrawalId": "w-1"}}, &e)
			if err := w.put(e); err != nil {
				t.Fatal(err)
			}
		}, moves: "processing hotWalletInsufficientBalance processing sent finalized", end: "finalized", paid: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &c.desk
			if d.status == "" {
				d.status = "queued"
			}
			w := wallet(t, d, t.TempDir())
			w.Fail, w.TimeOut, w.Retry = c.with.Fail, c.with.TimeOut, c.with.Retry
			if err := w.Chain.Send(money(addressFor(w.hot), c.purse)); err != nil {
				t.Fatal(err)
			}
			w.passes(t, 3)
			if c.then != nil {
				c.then(t, w, d)
				w.passes(t, 3)
			}
			if got := strings.Join(d.moves, " "); got != c.moves {
				t.Errorf("moves %q, want %q", got, c.moves)
			}
			if x := w.State.Withdrawals["w-1"]; x.Outcome != c.end || c.end != "" && x.Step != Done || w.paid() != c.paid {
				t.Errorf("%+v, paid %d times, want %q and %d", x, w.paid(), c.end, c.paid)
			}
		})
	}
}

// A withdrawal that the wallet has decided to refuse is never signed, also if the wallet stopped before the report and
// would decide differently now.
func TestDecisionSurvives(t *testing.T) {
	d := &desk{status: "processing"}
	w := wallet(t, d, t.TempDir())
	x := Withdrawal{ID: "w-1", Step: Failing}
	if err := w.put(entry{Cursor: "c1", Withdrawals: []Withdrawal{x}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Chain.Send(money(addressFor(w.hot), "1")); err != nil {
		t.Fatal(err)
	}
	w.passes(t, 2)
	if got := strings.Join(d.moves, " "); got != "failed" || w.paid() != 0 {
		t.Errorf("moves %q, paid %d times", got, w.paid())
	}
}

// A wallet whose journal is an old copy finds its transaction on the chain.
func TestOldJournal(t *testing.T) {
	d := &desk{status: "queued"}
	w := wallet(t, d, t.TempDir())
	if err := w.Chain.Send(money(addressFor(w.hot), "5")); err != nil {
		t.Fatal(err)
	}
	w.passes(t, 1)
	if d.status != "sent" || w.paid() != 1 {
		t.Fatalf("%s, paid %d times", d.status, w.paid())
	}
	w.State.Cursor, w.State.Withdrawals = "", map[string]Withdrawal{}
	w.passes(t, 3)
	if d.status != "finalized" || w.paid() != 1 {
		t.Errorf("%s, paid %d times", d.status, w.paid())
	}
}

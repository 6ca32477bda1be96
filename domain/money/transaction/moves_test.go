package transaction_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// documentedStatuses are the statuses by their names in the documents.
func documentedStatuses() map[string]transaction.QueueStatus {
	all := map[string]transaction.QueueStatus{}
	for s := transaction.QueueSuccess; s <= transaction.QueueCancelled; s++ {
		all[s.String()] = s
	}
	delete(all, transaction.QueueSuccess.String())
	all["finalized"] = transaction.QueueSuccess // the name used by other services
	return all
}

// administrators are the moves of administrators, by their names in the documents.
var administrators = map[string][]transaction.Move{
	"resume":             {{By: transaction.Resume, To: transaction.QueueReady}},
	"cancel":             {{By: transaction.Cancel, To: transaction.QueueCancelled}},
	"the owner's cancel": {{By: transaction.OwnerCancel, To: transaction.QueueCancelled}},
	"hold":               {{By: transaction.Hold, To: transaction.QueueWaiting}},
	"the end of a hold": {{By: transaction.Release, To: transaction.QueueReady},
		{By: transaction.Release, To: transaction.QueueCancelled}},
	"update-wallet-withdrawal-crypto-queue": {{By: transaction.Decision, To: transaction.QueueSuccess},
		{By: transaction.Decision, To: transaction.QueueWaiting}},
}

var remark = regexp.MustCompile(`\([^)]*\)`)

// words returns the parts of a cell, without remarks.
func words(cell string) (all []string) {
	for w := range strings.SplitSeq(remark.ReplaceAllString(cell, ""), ",") {
		if w = strings.TrimSpace(w); w != "" && w != "–" && w != "final" {
			all = append(all, w)
		}
	}
	return all
}

// documentedMoves reads the table of moves from a document. rows holds the statuses that have a row.
func documentedMoves(t *testing.T, path string) (moves []transaction.Move, rows map[transaction.QueueStatus]int) {
	t.Helper()
	text := storetest.Value(os.ReadFile(path))(t)
	_, table, found := strings.Cut(string(text), "| from | wallet | administrator |\n|---|---|---|\n")
	if !found {
		t.Fatalf("%s has no table of moves", path)
	}
	statuses := documentedStatuses()
	status := func(name string) transaction.QueueStatus {
		s, known := statuses[name]
		if !known {
			t.Errorf("%s: there is no status %q", path, name)
		}
		return s
	}
	rows = map[transaction.QueueStatus]int{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 {
			break
		}
		for _, name := range words(cells[1]) {
			from, before := status(name), len(moves)
			for _, to := range words(cells[2]) {
				moves = append(moves, transaction.Move{By: transaction.Wallet, From: from, To: status(to)})
			}
			for _, way := range words(cells[3]) {
				ways := administrators[strings.ReplaceAll(way, "D-TX-08", "update-wallet-withdrawal-crypto-queue")]
				if ways == nil {
					t.Errorf("%s: administrators cannot %q", path, way)
				}
				for _, m := range ways {
					moves = append(moves, transaction.Move{By: m.By, From: from, To: m.To})
				}
			}
			rows[from] += len(moves) - before
		}
	}
	return moves, rows
}

// The tables of the documents match the table of moves. Every status has a row, and every status that is not final has
// a documented move that leads to a final one.
func TestDocumentedMoves(t *testing.T) {
	for _, path := range []string{"../../../docs/neighbours.md"} {
		documented, rows := documentedMoves(t, path)
		for _, m := range transaction.Moves() {
			if !slices.Contains(documented, m) {
				t.Errorf("%s: %s moves %s to %s, which is not documented", path, m.By, m.From, m.To)
			}
		}
		for i, m := range documented {
			if !slices.Contains(transaction.Moves(), m) || slices.Contains(documented[:i], m) {
				t.Errorf("%s: %s does not move %s to %s, or twice", path, m.By, m.From, m.To)
			}
		}
		for name, s := range documentedStatuses() {
			ways, listed := rows[s]
			if !listed || (ways == 0) != s.Final() {
				t.Errorf("%s: %s has %d ways out, listed %v, final %v", path, name, ways, listed, s.Final())
			}
			ends := slices.ContainsFunc(documented, func(m transaction.Move) bool { // at a final status, within three moves
				return m.From == s && leads(documented, m.To, 3)
			})
			if ends == s.Final() {
				t.Errorf("%s: the documented ways of %s end: %v", path, name, ends)
			}
		}
	}
}

// leads reports whether a status is final or reaches a final one within a number of moves.
func leads(moves []transaction.Move, from transaction.QueueStatus, most int) bool {
	return from.Final() || most > 0 && slices.ContainsFunc(moves, func(m transaction.Move) bool {
		return m.From == from && leads(moves, m.To, most-1)
	})
}

// reach returns all statuses reachable from a status, by some movers; none: by any.
func reach(from transaction.QueueStatus, by ...transaction.Mover) map[transaction.QueueStatus]bool {
	seen, next := map[transaction.QueueStatus]bool{}, []transaction.QueueStatus{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		for _, m := range transaction.Moves() {
			if m.From == at && !seen[m.To] && (len(by) == 0 || slices.Contains(by, m.By)) {
				seen[m.To], next = true, append(next, m.To)
			}
		}
	}
	return seen
}

// The table of moves (D-INT-04): every status that is not final has a next one, and money cannot be released once it
// may have been sent.
func TestMoves(t *testing.T) {
	for s := transaction.QueueSuccess; s <= transaction.QueueCancelled; s++ {
		after := reach(s)
		storetest.Equal(t, s.Final(), (len(after) == 0), s, "final", "but leads to", after)
		if !s.Final() && !after[transaction.QueueSuccess] {
			t.Errorf("%s never succeeds", s)
		}
		if s.String() == "unknown" {
			t.Errorf("%d has no name", s)
		}
	}
	sent := reach(transaction.QueueSent)
	for s := range sent {
		if s != transaction.QueueSent && s != transaction.QueueSuccess {
			t.Errorf("after sent: %s", s)
		}
	}
	for _, m := range transaction.Moves() {
		switch {
		case m.From == transaction.QueueProcessing && m.By != transaction.Wallet:
			t.Errorf("%s moves what the wallet has claimed", m.By)
		case m.To == transaction.QueueSent && m.From != transaction.QueueProcessing && m.From != transaction.QueueSent:
			t.Errorf("sent from %s without a claim", m.From)
		}
	}
	stuck := []transaction.QueueStatus{transaction.QueueWaiting, transaction.HotWalletIsEmpty, transaction.TimeOut}
	for _, s := range stuck { // administrators can move it on without the wallet
		if !transaction.Allowed(transaction.Resume, s, transaction.QueueReady) ||
			!transaction.Allowed(transaction.Cancel, s, transaction.QueueCancelled) {
			t.Errorf("%s: neither resumed nor cancelled", s)
		}
	}
	seen := map[transaction.Move]bool{}
	for _, m := range transaction.Moves() {
		if seen[m] {
			t.Errorf("%v twice", m)
		}
		seen[m] = true
	}
}

// setFee changes the fee of bitcoin.
func (d *desk) setFee(fee string) {
	d.t.Helper()
	parameters := kit.NewParameters(d.m.DB)
	storetest.Must(d.t, d.m.DB.InTx(d.t.Context(), func(ctx context.Context) error {
		return parameter.Fee.Change(ctx, parameters, func(parameter.Fees) (parameter.Fees, error) {
			return parameter.Fees{"BTC": amount.Must(fee)}, nil
		})
	}))
	storetest.Must(d.t, d.Parameters.Reload(d.t.Context()))
}

// enqueue puts 0.5 BTC of u into the queue, with its own fee or that of the currency.
func (d *desk) enqueue(id, to string, status transaction.QueueStatus, fee *amount.Amount) {
	d.t.Helper()
	w := transaction.Withdrawal{ID: id, UserID: "u", Asset: d.m.Pair("BTC/BTC").ID, Amount: amount.Must("0.5"),
		ToAddress: to, At: d.now()}
	m, err := transaction.Enqueue(w, transaction.Queued{Status: status, Fee: fee}, amount.Must("0.1"))
	storetest.Must(d.t, err)
	_, err = d.m.Do(d.t.Context(), wallet, m)
	storetest.Must(d.t, err)
}

// D-TX-08: a decision about the queue books the withdrawal with its fee, once, or returns it to the approval.
func TestUpdateQueue(t *testing.T) {
	d, s := newCounter(t)
	s.Changes = admin.Changes{Commit: d.m.DB, Now: d.now}
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "3"))
	own, odd := amount.Must("0.02"), amount.Must("0.000000001")
	zero := amount.Must("0")
	inside := transaction.Address(d.m.Account("u", "BTC/BTC"))
	d.enqueue("currency", addresses["BTC"], transaction.HotWalletIsEmpty, nil)
	d.enqueue("own", inside, transaction.TimeOut, &own)
	d.enqueue("free", addresses["BTC"], transaction.TimeOut, &zero)
	d.enqueue("odd", addresses["BTC"], transaction.TimeOut, &odd)
	update := func(id string, to transaction.QueueStatus, code string) error {
		_, err := s.UpdateQueue(t.Context(), clerk, transaction.QueueUpdate{ID: id, To: to, CurrencyCode: code,
			Reason: "by hand"})
		return err
	}
	storetest.Wants(t, update("none", transaction.QueueSuccess, "BTC"), fault.RecordNotFound)
	storetest.Wants(t, update("own", transaction.QueueCancelled, "BTC"), fault.InvalidState)
	storetest.Wants(t, update("own", transaction.QueueSuccess, "ETH"), fault.InvalidField)
	storetest.Wants(t, update("odd", transaction.QueueSuccess, "BTC"), fault.InvalidState)
	storetest.Must(t, update("odd", transaction.QueueWaiting, ""))
	storetest.Wants(t, update("odd", transaction.QueueSuccess, "BTC"), fault.InvalidState)
	for _, c := range []struct {
		id, code, fee, detail string
		internal              bool
	}{
		{"currency", "btc", "0.01", "hotWalletInsufficientBalance to success: 0.5 BTC, fee 0.01", false},
		{"own", "BTC", "0.02", "timeOut to success: 0.5 BTC, fee 0.02", true},
		{"free", "BTC", "0", "timeOut to success: 0.5 BTC", false},
	} {
		d.advance(time.Millisecond)
		storetest.Must(t, update(c.id, transaction.QueueSuccess, c.code))
		storetest.Wants(t, update(c.id, transaction.QueueSuccess, c.code), fault.InvalidState)
		o, err := d.Get(t.Context(), c.id)
		if err != nil || o.Withdrawal.Status != transaction.Processing || o.Fee().String() != c.fee ||
			o.Queued.Status != transaction.QueueSuccess || o.Withdrawal.TransferID == "" {
			t.Errorf("%s: %+v, %v", c.id, o, err)
		}
		if cost := s.Cost(transaction.Entry{Outgoing: o}); cost.String() != c.fee {
			t.Errorf("%s costs %s", c.id, cost)
		}
		row := persistencetest.Did(t, d.m.DB, "WITHDRAWAL_QUEUE_STATUS")[0]
		if row.Target != c.id || row.UserID != "u" || row.ActorID != "clerk" || !strings.HasPrefix(row.Detail, c.detail) ||
			!strings.HasSuffix(row.Detail, "by hand") {
			t.Errorf("%s: %+v", c.id, row)
		}
		all, err := s.Processes(t.Context(), transaction.ProcessQuery{UserID: "u"}, nil, page.Query[transaction.Place]{})
		if err != nil || all.Records[0].TransactionID != c.id || all.Records[0].Internal != c.internal ||
			all.Records[0].Status != transaction.Finalized {
			t.Errorf("%s: %+v, %v", c.id, all.Records, err)
		}
	}
	if has := d.m.Has("u", "BTC/BTC"); !strings.HasPrefix(has, "1.47 0.6 ") {
		t.Errorf("left: %s", has)
	}
	odd = amount.Must("0.03")
	for fee, want := range map[*amount.Amount]string{nil: "0.01", &odd: "0.03"} {
		e := transaction.Entry{Outgoing: transaction.Outgoing{Queued: transaction.Queued{Asset: d.m.Pair("BTC/BTC").ID,
			Fee: fee}}}
		if cost := s.Cost(e); cost.String() != want {
			t.Errorf("it will cost %s, want %s", cost, want)
		}
	}
}

// D-PRC-04: processes are listed for a user of the type only.
func TestProcessesByUserType(t *testing.T) {
	d, s := newCounter(t)
	u := storetest.Value(d.Users.Get(t.Context(), "u"))(t)
	at := d.now()
	for _, owner := range []string{"u", "gone"} {
		storetest.Must(t, d.m.DB.Commit(t.Context(), transaction.AddProcess{Process: transaction.Process{ID: owner,
			TransactionID: owner, UserID: owner, Asset: 1, Status: transaction.Finalized, At: at}}))
	}
	own, other := string(u.Type), string(u.Type)+"x"
	for _, c := range []struct {
		owner string
		kind  *string
		want  int
	}{{"u", nil, 1}, {"u", &own, 1}, {"u", &other, 0}, {"gone", nil, 1}, {"gone", &own, 0}} {
		got, err := s.Processes(t.Context(), transaction.ProcessQuery{UserID: c.owner}, c.kind,
			page.Query[transaction.Place]{})
		if err != nil || len(got.Records) != c.want {
			t.Errorf("%+v: %+v, %v", c, got.Records, err)
		}
	}
	s.Users = accounts{d.Users, errDown}
	if _, err := s.Processes(t.Context(), transaction.ProcessQuery{UserID: "u"}, &own,
		page.Query[transaction.Place]{}); err == nil {
		t.Error("no error")
	}
}

package transaction_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/persistence/kit"
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

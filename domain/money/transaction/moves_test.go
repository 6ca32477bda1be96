package transaction_test

import (
	"slices"
	"testing"

	"castellan/domain/money/transaction"
)

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
		if s.Final() != (len(after) == 0) {
			t.Errorf("%s: final %v, but leads to %v", s, s.Final(), after)
		}
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

package persistence

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"castellan/domain/amount"
	"castellan/domain/audit"
	"castellan/domain/id"
	"castellan/domain/ledger"
	"castellan/domain/ledger/ledgertest"
	"castellan/domain/storetest"
)

// Random movements come to what an oracle of whole hundredths says, and the ledger
// verifies after them.
func TestLedgerAgainstItsModel(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		l := ledgertest.New(NewLedger(db), db)
		treasury := ledger.Account{Kind: ledger.Treasury, Asset: 1}
		type held struct {
			id   string
			user int
			sum  int64
		}
		rapid.Check(t, func(r *rapid.T) {
			var users [3]ledger.Account
			var posted, locked [3]int64
			var holds []held
			for i := range users {
				users[i] = ledger.Account{Kind: ledger.User, Owner: id.New(time.Now()), Asset: 1}
			}
			sumOf := func(n int64) amount.Amount { return amount.Must(fmt.Sprintf("%d.%02d", n/100, n%100)) }
			do := func(fits bool, m ledger.Movement) (ledger.Result, bool) {
				got, err := l.Do(t.Context(), audit.By{UserID: "op"}, m)
				if (err == nil) != fits {
					r.Fatalf("%+v: %v, fits: %v", m, err, fits)
				}
				return got, err == nil
			}
			for range rapid.IntRange(1, 12).Draw(r, "steps") {
				u := rapid.IntRange(0, 2).Draw(r, "user")
				n := rapid.Int64Range(1, 500).Draw(r, "sum")
				fits := posted[u]-locked[u] >= n
				move := func(from, to ledger.Account) ledger.Movement {
					return ledger.Movement{Transfers: []ledger.Transfer{
						ledger.New(time.Now(), "model", id.New(time.Now()), from, to, sumOf(n))}}
				}
				switch rapid.IntRange(0, 4).Draw(r, "what") {
				case 0:
					m := move(treasury, users[u])
					do(true, m)
					do(true, m) // the same again
					posted[u] += n
				case 1:
					if _, ok := do(fits, move(users[u], treasury)); ok {
						posted[u] -= n
					}
				case 2:
					to := (u + 1) % 3
					if _, ok := do(fits, move(users[u], users[to])); ok {
						posted[u], posted[to] = posted[u]-n, posted[to]+n
					}
				case 3:
					h := ledger.NewHold(time.Now(), "model", id.New(time.Now()), "", users[u], sumOf(n))
					if _, ok := do(fits, ledger.Movement{Take: []ledger.Hold{h}}); ok {
						locked[u] += n
						holds = append(holds, held{h.ID, u, n})
					}
				case 4:
					if len(holds) == 0 {
						continue
					}
					h := holds[0]
					holds, u, n = holds[1:], h.user, h.sum
					m := move(users[u], treasury)
					m.End = []ledger.End{{Hold: h.id, Transfer: m.Transfers[0].ID}}
					do(true, m)
					posted[u], locked[u] = posted[u]-n, locked[u]-n
				}
			}
			for i, u := range users {
				b, err := l.Balance(t.Context(), u.Owner, 1)
				if err != nil || b.Posted != sumOf(posted[i]) || b.Locked != sumOf(locked[i]) {
					r.Fatalf("user %d has %+v, %v, want %d and %d", i, b, err, posted[i], locked[i])
				}
			}
		})
		_, err := ledger.Verify(t.Context(), NewLedger(db))
		storetest.Must(t, err)
	})
}

package office

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Thirty-two clients move money of three users and one treasury, by the service and by a second process, which
// are killed repeatedly. The ledger verifies after every restart. Every acknowledged operation is booked once,
// no unrequested one is booked, and no balance is ever negative.
func TestFaultsMoneyIsNeverLostOrCreated(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		t.Logf("seed %d", seed)
		b := newBank(t, s)
		var all sync.WaitGroup
		for i := range 32 {
			c := &teller{bank: b, name: i, rng: rand.New(rand.NewPCG(seed, uint64(i+1)))}
			all.Go(c.live)
		}
		for i := range b.users {
			all.Go(func() { b.look(i) })
		}
		kills, began := int64(0), time.Now()
		for kills < moneyKills && !b.stop.Load() {
			// The kills are spread over the movements, because the ledger verifies after each.
			for b.acknowledged.Load() < (kills+1)*moneyMoves/moneyKills && !b.stop.Load() {
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Duration(rng.Int64N(int64(moneyPause))))
			both := rng.IntN(2) == 0
			b.server.Load().Kill()
			if both {
				b.mover.Load().Kill()
			}
			b.serve(both)
			kills++
			if err := b.verifies(); err != nil {
				b.broke("after kill %d: %w", kills, err)
			}
		}
		took := time.Since(began)
		b.stop.Store(true)
		all.Wait()
		b.settleDoubts(t)
		storetest.Must(t, errors.Join(b.fault(), b.verifies(), b.balances()))
		s.Succeeds("", "audit", "verify")
		done := map[string]int{}
		for _, d := range b.deeds {
			if d.refused {
				done["refused"]++
			} else {
				done[d.Do]++
			}
		}
		t.Logf("%d kills in %v, %d acknowledged, %d reads: %v", kills, took.Round(time.Second), b.acknowledged.Load(),
			b.reads.Load(), done)
	})
}

// verifies runs castellan ledger verify beside the running service, and looks for the operations acknowledged
// since the last call.
func (b *bank) verifies() error {
	if got := b.Command("", "ledger", "verify"); got.Code != 0 {
		return fmt.Errorf("ledger verify: exit %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
	b.mu.Lock()
	fresh := b.fresh
	b.fresh = nil
	b.mu.Unlock()
	for part := range slices.Chunk(fresh, 500) {
		ids := map[string]bool{}
		for _, d := range part {
			if d.Do == "block" || d.Do == "unblock" {
				if b.Count("blockage WHERE id = "+d.id) != 1 {
					return fmt.Errorf("the blockage %s that was acknowledged is not there", d.id)
				}
				continue
			}
			ids[d.id] = true
		}
		in := " WHERE id IN ('" + strings.Join(slices.Collect(maps.Keys(ids)), "', '") + "')"
		if got := b.Count("transfer"+in) + b.Count("hold"+in); got != len(ids) {
			return fmt.Errorf("of %d acknowledged transfers and holds %d are there", len(ids), got)
		}
	}
	return nil
}

// settleDoubts repeats operations with an unknown result.
func (b *bank) settleDoubts(t *testing.T) {
	for _, d := range b.deeds {
		for end := time.Now().Add(blackbox.Within(10)); d.doubted && time.Now().Before(end); {
			if err := b.ask(d); err != nil && !errors.Is(err, blackbox.ErrLost) {
				t.Fatal(err)
			}
		}
		if !d.done && !d.refused {
			t.Fatalf("%+v: without an answer at the end", d)
		}
	}
}

// balances compares all balances with the acknowledged operations.
func (b *bank) balances() error {
	var posted, locked [3]int64
	transfers, holds := map[string]*deed{}, map[string]*deed{}
	adjustments := 0
	for _, d := range b.deeds {
		if d.refused {
			continue
		}
		switch d.Do {
		case "hold", "block":
			holds[d.id] = d
			locked[d.from] += d.n
			continue
		case "release", "unblock", "settle":
			locked[holds[d.Of].from] -= holds[d.Of].n
			if d.Do != "settle" {
				continue
			}
		case "credit", "debit":
			adjustments++
		}
		if transfers[d.id] != nil {
			return fmt.Errorf("two movements are one transfer: %+v and %+v", d, transfers[d.id])
		}
		transfers[d.id] = d
		if d.from >= 0 {
			posted[d.from] -= d.n
		}
		if d.to >= 0 {
			posted[d.to] += d.n
		}
	}
	db := b.Open()
	defer db.Close()
	rows, err := db.Query("SELECT id, ref, debit_id, credit_id, hi, lo FROM transfer")
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var id, ref, debit, credit string
		var hi, lo int64
		if err := rows.Scan(&id, &ref, &debit, &credit, &hi, &lo); err != nil {
			return err
		}
		d := transfers[id]
		if d == nil {
			return fmt.Errorf("the transfer %s, %s was not requested", id, ref)
		}
		if ref != d.Ref && ref != d.Of || debit != b.account(d.from) || credit != b.account(d.to) ||
			hi*blackbox.MoneyUnit+lo/1e10 != d.n {
			return fmt.Errorf("%+v became the transfer %s, %s of %d.%018d from %s to %s", d, id, ref, hi, lo, debit, credit)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if held := b.Count("hold WHERE source = $1", kindMoved) + b.Count("blockage"); n != len(transfers) ||
		held != len(holds) {
		return fmt.Errorf("%d transfers and %d holds of %d and %d that were acknowledged", n, held, len(transfers),
			len(holds))
	}
	joined := func(table string) int {
		return b.Count(table + " JOIN transfer ON transfer.id = " + table + ".transfer_id")
	}
	if d, w := joined("deposit"), joined("withdrawal"); d+w != adjustments {
		return fmt.Errorf("%d deposits and %d withdrawals of %d adjustments", d, w, adjustments)
	}
	for i := range b.users {
		is := b.Count(fmt.Sprintf("balance WHERE account_id = '%s' AND posted_hi * %d + posted_lo / 10000000000 = %d "+
			"AND locked_hi * %d + locked_lo / 10000000000 = %d", b.account(i), blackbox.MoneyUnit, posted[i], blackbox.MoneyUnit,
			locked[i]))
		if is != 1 {
			return fmt.Errorf("user %d has not what was acknowledged: %d, of which %d is locked", i, posted[i], locked[i])
		}
	}
	return nil
}

func (b *bank) account(user int) string {
	if user < 0 {
		return fmt.Sprintf("treasury/%d/", blackbox.MoneyAsset)
	}
	return fmt.Sprintf("user/%d/%s", blackbox.MoneyAsset, b.users[user].ID)
}

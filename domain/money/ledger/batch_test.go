package ledger_test

import (
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/money/ledger"
)

// A batch writes each balance once per round, with the number of its last transfer. A hold ends in a later round than
// it was taken in. A rejected movement changes nothing.
func TestBatch(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	house := ledger.Account{Kind: ledger.Treasury, Asset: 7}
	ada := ledger.Account{Kind: ledger.User, Owner: "ada", Asset: 7}
	b := &ledger.Batch{By: audit.Operator, Units: map[int64]int64{7: int64(amount.Unit(2))}}
	move := func(ref string, from, to ledger.Account, a string) ledger.Movement {
		return ledger.Movement{Transfers: []ledger.Transfer{ledger.New(now, "test", ref, from, to, amount.Must(a))}}
	}
	must := func(m ledger.Movement, want error) {
		t.Helper()
		if err := b.Do(m); !errors.Is(err, want) {
			t.Fatalf("%v instead of %v", err, want)
		}
	}
	must(move("1", house, ada, "10"), nil)
	must(move("2", ada, house, "4"), nil)
	must(move("3", ada, house, "7"), ledger.ErrInsufficient)
	must(move("4", house, ada, "0.001"), ledger.ErrPrecision)
	must(move("5", ledger.Account{Kind: ledger.Treasury, Asset: 8}, ada, "1"), ledger.ErrNoAsset)
	h := ledger.NewHold(now, "test", "1", "order", ada, amount.Must("5"))
	must(ledger.Movement{Take: []ledger.Hold{h}}, nil)
	must(move("6", ada, house, "2"), ledger.ErrInsufficient)
	last := move("7", ada, house, "5")
	last.End = []ledger.End{{Hold: h.ID, Transfer: last.Transfers[0].ID}}
	must(last, nil)
	must(ledger.Movement{End: []ledger.End{{Hold: h.ID}}}, ledger.ErrEnded)
	if err := b.Do(ledger.Movement{End: []ledger.End{{Hold: "none"}}}); fault.CodeOf(err) != fault.RecordNotFound {
		t.Error(err)
	}
	rounds := b.Rounds()
	if len(rounds) != 3 || len(rounds[0]) != 2 {
		t.Fatalf("%d rounds, the first opens %d accounts", len(rounds), len(rounds[0]))
	}
	for i, want := range []ledger.Balance{
		{Account: ada, Posted: amount.Must("6"), Locked: amount.Must("5"), Seq: 2, Version: 1, Unit: b.Units[7]},
		{Account: ada, Posted: amount.Must("1"), Seq: 3, Version: 2, Unit: b.Units[7]},
	} {
		saves, sum := savesOf(rounds[i+1])
		if len(saves) != 1 || saves[0] != want {
			t.Errorf("round %d saves %v instead of %v", i+1, saves, want)
		}
		if sum != 1 {
			t.Errorf("round %d adds to %d accounts", i+1, sum)
		}
	}
	if got := b.Balance(ada).Posted; got != amount.Must("1") {
		t.Errorf("ada has %s", got)
	}
}

func savesOf(round []commit.Write) (saves []ledger.Balance, adds int) {
	for _, w := range round {
		switch w := w.(type) {
		case ledger.Save:
			saves = append(saves, w.Balance)
		case ledger.Add:
			adds++
		}
	}
	return saves, adds
}

package ledger

import (
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// Batch decides many movements one after the other, by the same rules as Ledger.Do, without reads: its accounts are new
// or unbounded. It is for imports that alone move these accounts, such as demo data. It does not check references, so
// the caller ensures that each counts once.
//
// It returns writes in rounds, which the caller commits in order in one transaction: an account is opened before it is
// moved, and a hold is taken before it ends.
type Batch struct {
	By audit.By
	// Units are the smallest amounts of the assets, in units of 10⁻¹⁸.
	Units map[int64]int64

	balances map[Account]Balance
	holds    map[string]Hold
	taken    map[string]bool // in the current round
	saves    map[Account]Balance
	adds     map[Account]Add
	opens    []commit.Write
	round    []commit.Write
	rounds   [][]commit.Write
}

// Do decides a movement. Errors: those of Ledger.Do about amounts, funds and holds; then the movement has no effect.
func (b *Batch) Do(m Movement) error {
	if b.balances == nil {
		b.balances, b.holds = map[Account]Balance{}, map[string]Hold{}
		b.begin()
	}
	for i := range m.Transfers {
		m.Transfers[i].Group = m.Transfers[0].ID
	}
	ended := make([]Hold, len(m.End))
	for i, e := range m.End {
		if b.taken[e.Hold] {
			b.end()
		}
		h, known := b.holds[e.Hold]
		if !known {
			return fault.New(fault.RecordNotFound, "no such hold")
		}
		ended[i] = h
	}
	accounts := m.accounts(ended)
	balances := make([]Balance, len(accounts))
	for i, a := range accounts {
		if b.Units[a.Asset] == 0 {
			return ErrNoAsset
		}
		was, open := b.balances[a]
		if !open {
			was = Balance{Account: a, Version: 1, Unit: b.Units[a.Asset]}
			b.balances[a] = was
			b.opens = append(b.opens, Open{a})
		}
		balances[i] = was
	}
	writes, err := decide(m, balances, ended, b.By)
	if err != nil {
		return err
	}
	for _, w := range writes {
		b.write(w)
	}
	return nil
}

// write adds a write to the round. Each balance is written once per round.
func (b *Batch) write(w commit.Write) {
	switch w := w.(type) {
	case Save:
		b.balances[w.Balance.Account], b.saves[w.Balance.Account] = w.Balance, w.Balance
		return
	case Add:
		sum, ok := b.adds[w.Account].Plus(w)
		if !ok { // the database adds them one after the other, or rejects them
			b.round = append(b.round, b.adds[w.Account])
			sum = w
		}
		sum.Account = w.Account
		b.adds[w.Account] = sum
		return
	case Take:
		b.holds[w.Hold.ID], b.taken[w.Hold.ID] = w.Hold, true
	case EndHold:
		b.holds[w.Hold.ID] = w.Hold
	}
	b.round = append(b.round, w)
}

func (b *Batch) begin() {
	b.round, b.taken, b.saves, b.adds = nil, map[string]bool{}, map[Account]Balance{}, map[Account]Add{}
}

// end closes the round. A save increments the version of its row.
func (b *Batch) end() {
	for a, saved := range b.saves {
		b.round = append(b.round, Save{saved})
		saved.Version++
		b.balances[a] = saved
	}
	for _, a := range b.adds {
		b.round = append(b.round, a)
	}
	b.rounds = append(b.rounds, b.round)
	b.begin()
}

// Rounds ends the batch and returns its writes.
func (b *Batch) Rounds() [][]commit.Write {
	if b.balances == nil {
		return nil
	}
	b.end()
	return append([][]commit.Write{b.opens}, b.rounds...)
}

// Balance returns the balance of an account after the movements so far.
func (b *Batch) Balance(a Account) Balance { return b.balances[a] }

package ledgertest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/money/ledger"
)

// Memory stores a ledger in memory, with the same checks as the schema: it decides a million movements in seconds. It
// passes Run.
type Memory struct {
	mu sync.Mutex
	books
}

// books is the content of Memory. A pair is a kind or a source with its reference.
type books struct {
	units     map[int64]int64
	balances  map[ledger.Account]ledger.Balance
	transfers map[string]ledger.Transfer
	holds     map[string]ledger.Hold
	refs      map[[2]string]string // of transfers
	sources   map[[2]string]string // of holds
	reversed  map[string]bool
}

var (
	_ ledger.Store     = (*Memory)(nil)
	_ commit.Committer = (*Memory)(nil)
	_ commit.Fence     = ledger.Save{}
)

// NewMemory returns an empty ledger.
func NewMemory() *Memory {
	return &Memory{books: books{map[int64]int64{}, map[ledger.Account]ledger.Balance{}, map[string]ledger.Transfer{},
		map[string]ledger.Hold{}, map[[2]string]string{}, map[[2]string]string{}, map[string]bool{}}}
}

var (
	errNone  = fault.New(fault.RecordNotFound, "no such record")
	errTwice = fault.New(fault.RecordAlreadyExist, "it exists")
	errRule  = errors.New("the schema refuses it")
)

// Commit checks all writes, then applies them.
func (m *Memory) Commit(_ context.Context, writes ...commit.Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range writes {
		if f, ok := w.(commit.Fence); ok && !m.stands(f) {
			return commit.ErrFenced
		}
	}
	for _, w := range writes {
		if err := m.judge(w); err != nil {
			return err
		}
	}
	for _, w := range writes {
		m.write(w)
	}
	return nil
}

func (m *Memory) stands(w commit.Fence) bool {
	switch w := w.(type) {
	case ledger.Save:
		return m.balances[w.Balance.Account].Version == w.Balance.Version
	case ledger.EndHold:
		h := m.holds[w.Hold.ID]
		return h.Version == w.Hold.Version && h.State == ledger.Active
	}
	return true
}

func (m *Memory) judge(w commit.Write) error {
	switch w := w.(type) {
	case ledger.Save:
		was, is := m.balances[w.Balance.Account], w.Balance
		before, err := was.Posted.Sub(was.Locked)
		after, err2 := is.Posted.Sub(is.Locked)
		takes := is.Posted.Cmp(was.Posted) < 0 && after.Sign() < 0 && after.Cmp(before) < 0
		if err != nil || err2 != nil || !is.Bounded() || is.Posted.Sign() < 0 || is.Locked.Sign() < 0 || takes {
			return errRule
		}
	case ledger.Add:
		b, open := m.balances[w.Account]
		if _, err := b.Posted.Add(w.Amount); err != nil {
			return commit.ErrCheck
		}
		if !open || w.Account.Bounded() {
			return errRule
		}
	case ledger.Post:
		t := w.Transfer
		was, known := m.transfers[t.Reverses]
		if _, taken := m.refs[[2]string{t.Kind, t.Ref}]; taken || m.reversed[t.Reverses] {
			return errTwice
		}
		if t.Reverses != "" && (!known || was.Debit != t.Credit || was.Credit != t.Debit || was.Amount != t.Amount) {
			return errRule
		}
	case ledger.Take:
		if _, taken := m.sources[[2]string{w.Hold.Source, w.Hold.Ref}]; taken {
			return errTwice
		}
	}
	return nil
}

func (m *Memory) write(w commit.Write) {
	switch w := w.(type) {
	case ledger.AddAsset:
		if unit := m.units[w.ID]; unit == 0 || w.Unit < unit {
			m.units[w.ID] = w.Unit
		}
	case ledger.Open:
		if _, open := m.balances[w.Account]; !open {
			m.balances[w.Account] = ledger.Balance{Account: w.Account, Version: 1}
		}
	case ledger.Save:
		w.Balance.Version++
		m.balances[w.Balance.Account] = w.Balance
	case ledger.Add:
		b := m.balances[w.Account]
		b.Posted, _ = b.Posted.Add(w.Amount)
		b.Seq, b.Version = b.Seq+w.Count, b.Version+1
		m.balances[w.Account] = b
	case ledger.Post:
		t := w.Transfer
		m.transfers[t.ID], m.refs[[2]string{t.Kind, t.Ref}] = t, t.ID
		if t.Reverses != "" {
			m.reversed[t.Reverses] = true
		}
	case ledger.Take:
		h := w.Hold
		h.Beyond = false
		m.holds[h.ID], m.sources[[2]string{h.Source, h.Ref}] = h, h.ID
	case ledger.EndHold:
		w.Hold.Version++
		m.holds[w.Hold.ID] = w.Hold
	}
}

// InTx supports one caller at a time.
func (m *Memory) InTx(ctx context.Context, fn func(ctx context.Context) error) error {
	was := books{maps.Clone(m.units), maps.Clone(m.balances), maps.Clone(m.transfers), maps.Clone(m.holds),
		maps.Clone(m.refs), maps.Clone(m.sources), maps.Clone(m.reversed)}
	err := fn(ctx)
	if err != nil {
		m.books = was
	}
	return err
}

func (m *Memory) Balances(_ context.Context, accounts ...ledger.Account) (out []ledger.Balance, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range accounts {
		if b, open := m.balances[a]; open {
			b.Unit = m.units[a.Asset]
			out = append(out, b)
		}
	}
	return out, nil
}

func (m *Memory) Owned(ctx context.Context, userID string) ([]ledger.Balance, error) {
	var accounts []ledger.Account
	m.mu.Lock()
	for a := range m.balances {
		if a.Kind == ledger.User && a.Owner == userID {
			accounts = append(accounts, a)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(accounts, func(a, b ledger.Account) int { return cmp.Compare(a.Asset, b.Asset) })
	return m.Balances(ctx, accounts...)
}

func (m *Memory) Unit(_ context.Context, asset int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.units[asset], nil
}

func (m *Memory) ByRef(_ context.Context, kind, ref string) (ledger.Transfer, error) {
	id, _ := one(m, m.refs, [2]string{kind, ref})
	return one(m, m.transfers, id)
}

func (m *Memory) Hold(_ context.Context, id string) (ledger.Hold, error) {
	return one(m, m.holds, id)
}

func (m *Memory) HoldByRef(_ context.Context, source, ref string) (ledger.Hold, error) {
	id, _ := one(m, m.sources, [2]string{source, ref})
	return one(m, m.holds, id)
}

func one[K comparable, V any](m *Memory, of map[K]V, key K) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, known := of[key]
	if !known {
		return v, errNone
	}
	return v, nil
}

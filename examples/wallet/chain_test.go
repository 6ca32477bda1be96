package main

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"castellan/domain/kit/amount"
)

func open(t *testing.T, path string) *Chain {
	t.Helper()
	c, err := OpenChain(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.file.Close() })
	return c
}

func money(to, n string) Tx {
	return Tx{To: to, Currency: "ETH", Network: "ETH", Amount: amount.Must(n)}
}

func TestChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chain")
	c, other := open(t, path), open(t, path)
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	us := addressFor(key)
	send := func(c *Chain, want error, all ...Tx) {
		t.Helper()
		if err := c.Send(all...); !errors.Is(err, want) {
			t.Errorf("send: %v, want %v", err, want)
		}
	}
	first := money("0xa", "2")
	first.Memo = "w-1"
	send(c, errFunds, first.Signed(key))
	send(c, nil, money(us, "3"), first.Signed(key)) // pays with money from the same call
	send(other, nil, first.Signed(key))             // the same one again
	second := money("0xb", "1")
	send(other, errNonce, second.Signed(key))
	second.Nonce = 2
	send(other, errNonce, second.Signed(key))
	second.Nonce = 1
	forged := second.Signed(key)
	forged.To = "0xc"
	if err := other.Send(forged); err == nil {
		t.Error("a forged transaction was accepted")
	}
	send(other, nil, second.Signed(key))
	send(c, nil, first.Signed(key))
	if got := c.Balance(us, "ETH", "ETH"); got.Sign() != 0 || len(c.Txs) != 3 {
		t.Errorf("%s is left after %d transactions", got, len(c.Txs))
	}
	m, found := c.FindMemo(first.Signed(key).Key, "w-1")
	if !found || c.Confirmations(m) != 0 {
		t.Errorf("%+v %t", m, found)
	}
	for range 2 {
		if err := other.Mine(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Refresh(); err != nil {
		t.Fatal(err)
	}
	if m, _ = c.Find(m.ID); c.Confirmations(m) != 2 {
		t.Errorf("%d confirmations", c.Confirmations(m))
	}
}

// A line that a crash truncated is not part of the chain, and the next writer removes it.
func TestChainAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chain")
	c := open(t, path)
	if err := c.Send(money("0xa", "1")); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"tx":{"to":"0xb","amount":1`); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	if len(again.Txs) != 1 {
		t.Fatalf("%d transactions", len(again.Txs))
	}
	if err := again.Send(money("0xc", "1")); err != nil {
		t.Fatal(err)
	}
	if all := open(t, path).Txs; len(all) != 2 || all[1].To != "0xc" {
		t.Errorf("%+v", all)
	}
}

func TestStateAfterACrash(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := Withdrawal{ID: "w", Step: Signed, Nonce: 7, Amount: amount.Must("0.5")}
	if err := s.Put(entry{Cursor: "c1", Withdrawals: []Withdrawal{w}}); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenState(dir); err == nil {
		t.Error("two wallets in one folder")
	}
	if _, err := s.file.WriteString(`{"cursor":"c2","withdra`); err != nil {
		t.Fatal(err)
	}
	s.file.Close()
	for range 2 {
		if s, err = OpenState(dir); err != nil {
			t.Fatal(err)
		}
		if s.Cursor != "c1" || s.Withdrawals["w"] != w {
			t.Errorf("%+v", s)
		}
		if err := s.Put(entry{Scanned: 3}); err != nil {
			t.Fatal(err)
		}
		s.file.Close()
	}
	if s.Scanned != 3 {
		t.Errorf("scanned %d", s.Scanned)
	}
}

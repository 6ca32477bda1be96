package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"castellan/domain/kit/amount"
)

// Tx is a transaction: money moves from the address of Key to another one. A transaction without a key creates money;
// it represents everything that happens outside the example.
type Tx struct {
	Key      string        `json:"key,omitempty"` // public key of the sender, hexadecimal
	Nonce    uint64        `json:"nonce"`         // each sender counts its transactions from 0
	To       string        `json:"to"`
	Tag      string        `json:"tag,omitempty"`
	Currency string        `json:"currency"`
	Network  string        `json:"network"`
	Amount   amount.Amount `json:"amount"`
	Memo     string        `json:"memo,omitempty"`
	Sig      string        `json:"sig,omitempty"`
}

// line is a line of the chain's file: a transaction, or a block that confirms all transactions before it.
type line struct {
	Tx    *Tx    `json:"tx,omitempty"`
	Block uint64 `json:"block,omitempty"`
}

// ID is the hash of the transaction. Signatures are deterministic, so signing the same intent again gives the same
// transaction.
func (t Tx) ID() string {
	sum := sha256.Sum256(t.text())
	return "0x" + hex.EncodeToString(sum[:])
}

func (t Tx) text() []byte {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return text
}

// From returns the address of the sender, "" for new money.
func (t Tx) From() string {
	if t.Key == "" {
		return ""
	}
	key, _ := hex.DecodeString(t.Key)
	return addressOf(key)
}

// addressOf returns the address of a public key. It has the form of an Ethereum address.
func addressOf(public []byte) string {
	sum := sha256.Sum256(public)
	return "0x" + hex.EncodeToString(sum[:20])
}

// Signed returns the transaction with the signature of its sender.
func (t Tx) Signed(key ed25519.PrivateKey) Tx {
	t.Key, t.Sig = hex.EncodeToString(key.Public().(ed25519.PublicKey)), ""
	t.Sig = hex.EncodeToString(ed25519.Sign(key, t.text()))
	return t
}

func (t Tx) verify() error {
	key, err := hex.DecodeString(t.Key)
	sig, sigErr := hex.DecodeString(t.Sig)
	t.Sig = ""
	if err != nil || sigErr != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, t.text(), sig) {
		return errors.New("the signature is wrong")
	}
	return nil
}

// The errors of a refused transaction.
var (
	errNonce = errors.New("the nonce is not the next one of the sender")
	errFunds = errors.New("the sender does not have the amount")
)

// Mined is a transaction on the chain. Block is 0 until a block confirms it.
type Mined struct {
	Tx
	ID    string
	Block uint64
}

type purse struct{ address, currency, network string }

// Chain is a blockchain in a file of JSON lines. Several processes may use it at once: a writer holds a lock on the
// file, and an accepted line is on the disk. A line that a crash truncated was never accepted; the next writer removes
// it.
type Chain struct {
	file   *os.File
	offset int64 // of the first unread byte

	Txs    []Mined
	Height uint64

	byID     map[string]int
	byMemo   map[string]int // key of the sender and memo
	next     map[string]uint64
	balances map[purse]amount.Amount
}

// OpenChain opens the chain in a file, and creates the file if it is missing.
func OpenChain(path string) (*Chain, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	c := &Chain{file: f, byID: map[string]int{}, byMemo: map[string]int{}, next: map[string]uint64{},
		balances: map[purse]amount.Amount{}}
	return c, c.Refresh()
}

// Refresh reads the lines that other processes have added.
func (c *Chain) Refresh() error {
	r := bufio.NewReader(io.NewSectionReader(c.file, c.offset, 1<<62))
	for {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the rest is not a complete line yet
		}
		if err != nil {
			return err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("the chain at byte %d: %w", c.offset, err)
		}
		c.offset += int64(len(text))
		c.apply(l)
	}
}

func (c *Chain) apply(l line) {
	if l.Tx == nil {
		c.Height = l.Block
		for i := len(c.Txs) - 1; i >= 0 && c.Txs[i].Block == 0; i-- {
			c.Txs[i].Block = c.Height
		}
		return
	}
	t := Mined{Tx: *l.Tx, ID: l.Tx.ID()}
	c.byID[t.ID] = len(c.Txs)
	if t.Key != "" {
		if t.Memo != "" {
			c.byMemo[t.Key+t.Memo] = len(c.Txs)
		}
		c.next[t.Key] = t.Nonce + 1
		from := purse{t.From(), t.Currency, t.Network}
		c.balances[from], _ = c.balances[from].Sub(t.Amount)
	}
	to := purse{t.To, t.Currency, t.Network}
	c.balances[to], _ = c.balances[to].Add(t.Amount)
	c.Txs = append(c.Txs, t)
}

// Balance returns the balance of an address.
func (c *Chain) Balance(address, currency, network string) amount.Amount {
	return c.balances[purse{address, currency, network}]
}

// Next returns the nonce of the sender's next transaction.
func (c *Chain) Next(key string) uint64 { return c.next[key] }

// Find finds a transaction by its id.
func (c *Chain) Find(id string) (Mined, bool) { return c.at(c.byID, id) }

// FindMemo finds a transaction by its sender and its memo.
func (c *Chain) FindMemo(key, memo string) (Mined, bool) { return c.at(c.byMemo, key+memo) }

func (c *Chain) at(index map[string]int, key string) (Mined, bool) {
	i, found := index[key]
	if !found {
		return Mined{}, false
	}
	return c.Txs[i], true
}

// Confirmations returns the number of blocks since a transaction, including its own.
func (c *Chain) Confirmations(m Mined) uint64 {
	if m.Block == 0 {
		return 0
	}
	return c.Height - m.Block + 1
}

// Send adds transactions, all or none. A transaction that is on the chain is not added again, so sending twice is
// harmless. Errors: errNonce, errFunds, those of the file.
func (c *Chain) Send(all ...Tx) error {
	return c.write(func() (lines []line, err error) {
		for _, t := range all {
			if _, known := c.Find(t.ID()); known {
				continue
			}
			if err := c.accept(t, lines); err != nil {
				return nil, err
			}
			lines = append(lines, line{Tx: &t})
		}
		return lines, nil
	})
}

// accept checks a transaction that follows others.
func (c *Chain) accept(t Tx, before []line) error {
	if t.Amount.Sign() <= 0 {
		return errors.New("the amount is not positive")
	}
	if t.Key == "" {
		return nil
	}
	has, next := c.Balance(t.From(), t.Currency, t.Network), c.Next(t.Key)
	for _, l := range before {
		if l.Tx.To == t.From() && l.Tx.Currency == t.Currency && l.Tx.Network == t.Network {
			has, _ = has.Add(l.Tx.Amount)
		}
	}
	switch {
	case t.Nonce != next:
		return errNonce
	case has.Cmp(t.Amount) < 0:
		return errFunds
	}
	return t.verify()
}

// Mine adds a block.
func (c *Chain) Mine() error {
	return c.write(func() ([]line, error) { return []line{{Block: c.Height + 1}}, nil })
}

func (c *Chain) write(plan func() ([]line, error)) error {
	fd := int(c.file.Fd())
	if err := syscall.Flock(fd, syscall.LOCK_EX); err != nil {
		return err
	}
	defer func() { _ = syscall.Flock(fd, syscall.LOCK_UN) }()
	if err := c.Refresh(); err != nil {
		return err
	}
	lines, err := plan()
	if err != nil || len(lines) == 0 {
		return err
	}
	var text bytes.Buffer
	for _, l := range lines {
		if err := json.NewEncoder(&text).Encode(l); err != nil {
			return err
		}
	}
	if err := c.file.Truncate(c.offset); err != nil { // a line that a crash truncated
		return err
	}
	if _, err := c.file.WriteAt(text.Bytes(), c.offset); err != nil {
		return err
	}
	if err := c.file.Sync(); err != nil {
		return err
	}
	return c.Refresh()
}

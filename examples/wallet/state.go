package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"castellan/domain/kit/amount"
)

// Step is the wallet's progress with a withdrawal or a deposit.
type Step string

// The steps of a withdrawal. Failing, Empty, Late and Signed are decisions: each is on the disk before it is
// executed, and a withdrawal that is Failing or Signed never goes back.
const (
	Queued  Step = "queued"  // read from the events; claim it next
	Failing Step = "failing" // it will not be signed; report failed next
	Empty   Step = "empty"   // the hot wallet has too little; report that next
	Late    Step = "late"    // its transaction can no longer appear on the network; report timeOut next
	Parked  Step = "parked"  // reported; withdrawal.resumed puts it back to Queued
	Signed  Step = "signed"  // its nonce and its transaction are decided; send it, report sent
	Sent    Step = "sent"    // reported; report finalized when it is confirmed
)

// The steps of a deposit.
const (
	Seen    Step = "seen"    // on the chain; report waiting next
	Waiting Step = "waiting" // reported without a sender
	Named   Step = "named"   // reported with its sender
)

// Done is the last step of both; Outcome is the status in the service.
const Done Step = "done"

// Withdrawal is the wallet's record of a withdrawal.
type Withdrawal struct {
	ID       string        `json:"id"`
	Currency string        `json:"currency"`
	Network  string        `json:"network"`
	Amount   amount.Amount `json:"amount"`
	Address  string        `json:"address"`
	Tag      string        `json:"tag,omitempty"`
	Step     Step          `json:"step"`
	Claim    string        `json:"claim,omitempty"` // the token of its claim; "" before the first one
	From     string        `json:"from,omitempty"`  // status that the claim of a Queued one expects; "": queued
	Nonce    uint64        `json:"nonce"`           // of a Signed one
	TxID     string        `json:"txId,omitempty"`
	Outcome  string        `json:"outcome,omitempty"`
}

// Deposit is the wallet's record of a deposit.
type Deposit struct {
	TxID    string          `json:"txId"`
	UserID  string          `json:"userId"`
	Sender  json.RawMessage `json:"sender,omitempty"`
	Step    Step            `json:"step"`
	Outcome string          `json:"outcome,omitempty"`
}

// entry is a line of the journal: a change, together with the read positions of the events and the chain at that time.
type entry struct {
	Cursor      string       `json:"cursor,omitempty"`
	Scanned     int          `json:"scanned,omitempty"`
	Withdrawals []Withdrawal `json:"withdrawals,omitempty"`
	Deposits    []Deposit    `json:"deposits,omitempty"`
}

// State is the wallet's memory, in a journal of JSON lines. A change is on the disk before Put returns. Only one
// process can open it.
type State struct {
	Cursor      string
	Scanned     int // transactions of the chain
	Withdrawals map[string]Withdrawal
	Deposits    map[string]Deposit // by TxID

	file *os.File
}

// OpenState reads the journal of a folder and locks it against other processes.
func OpenState(dir string) (*State, error) {
	f, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another wallet runs in %s: %w", dir, err)
	}
	s := &State{Withdrawals: map[string]Withdrawal{}, Deposits: map[string]Deposit{}, file: f}
	whole := int64(0)
	for r := bufio.NewReader(f); ; {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // a crash truncated the rest before Put returned
		}
		if err != nil {
			return nil, err
		}
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("the journal at byte %d: %w", whole, err)
		}
		whole += int64(len(text))
		s.apply(e)
	}
	if err := f.Truncate(whole); err != nil {
		return nil, err
	}
	_, err = f.Seek(whole, io.SeekStart)
	return s, err
}

func (s *State) apply(e entry) {
	if e.Cursor != "" {
		s.Cursor = e.Cursor
	}
	if e.Scanned != 0 {
		s.Scanned = e.Scanned
	}
	for _, w := range e.Withdrawals {
		s.Withdrawals[w.ID] = w
	}
	for _, d := range e.Deposits {
		s.Deposits[d.TxID] = d
	}
}

// Put makes a change durable, then visible. After an error the process must exit: the journal may or may not have the
// change, and the next start reads which.
func (s *State) Put(e entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := s.file.Write(append(text, '\n')); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.apply(e)
	return nil
}

// Keys are the wallet's keys, all derived from one seed.
type Keys struct{ seed []byte }

// OpenKeys reads the seed of a folder, and creates one in a new folder.
func OpenKeys(dir string) (Keys, error) {
	if err := os.MkdirAll(filepath.Join(dir, "senders"), 0o700); err != nil {
		return Keys{}, err
	}
	path := filepath.Join(dir, "seed")
	seed := make([]byte, 32)
	_, _ = rand.Read(seed)
	err := writeOnce(path, []byte(hex.EncodeToString(seed)+"\n"))
	if err != nil && !errors.Is(err, os.ErrExist) {
		return Keys{}, err
	}
	text, err := os.ReadFile(path)
	if err == nil {
		seed, err = hex.DecodeString(strings.TrimSpace(string(text)))
	}
	return Keys{seed}, err
}

// writeOnce creates a file with its whole content, or fails with os.ErrExist.
func writeOnce(path string, text []byte) error {
	temporary, err := writeTemporary(path, text)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary) }()
	return os.Link(temporary, path)
}

func writeTemporary(path string, text []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	return f.Name(), errors.Join(err, f.Sync(), f.Close())
}

func (k Keys) derive(name string) ed25519.PrivateKey {
	mac := hmac.New(sha256.New, k.seed)
	mac.Write([]byte(name))
	return ed25519.NewKeyFromSeed(mac.Sum(nil))
}

// Hot returns the key of the hot wallet, which pays withdrawals.
func (k Keys) Hot() ed25519.PrivateKey { return k.derive("hot") }

// Deposit returns the key of a user's deposit address.
func (k Keys) Deposit(userID string) ed25519.PrivateKey { return k.derive("deposit/" + userID) }

func addressFor(key ed25519.PrivateKey) string { return addressOf(key.Public().(ed25519.PublicKey)) }

// AddUser adds the user's deposit address to the watched addresses. It is on the disk before AddUser returns, hence
// before the address can receive a payment.
func AddUser(dir, userID string) error {
	f, err := os.OpenFile(filepath.Join(dir, "users"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(userID + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// Users returns the users with a deposit address, by the address.
func Users(dir string, k Keys) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "users"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	users := map[string]string{}
	for id := range strings.Lines(string(text)) {
		if id, whole := strings.CutSuffix(id, "\n"); whole {
			users[addressFor(k.Deposit(id))] = id
		}
	}
	return users, nil
}

// SetSender stores the sender of a deposit for the running wallet.
func SetSender(dir, txID string, sender json.RawMessage) error {
	path := senderFile(dir, txID)
	temporary, err := writeTemporary(path, sender)
	if err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// Sender returns the sender of a deposit, nil if it is unknown.
func Sender(dir, txID string) (json.RawMessage, error) {
	text, err := os.ReadFile(senderFile(dir, txID))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func senderFile(dir, txID string) string {
	return filepath.Join(dir, "senders", filepath.Base(txID)+".json")
}

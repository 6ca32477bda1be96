// Command wallet simulates the wallet of a platform beside Castellan. It detects deposits on a chain and reports them.
// It takes withdrawals from the events, signs, sends and reports them. It is an example and a test counterpart, not a
// wallet for real money.
//
// The one idea: a decision is on the disk before it is executed. Events and chain data are stored together with their
// read positions, and a nonce is stored before its signature. So the wallet can be killed at any instant and continues
// without losing or doubling anything.
//
// Start reading at Wallet.pass in wallet.go, then withdrawals.go.
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"castellan/client"
	"castellan/domain/kit/amount"
)

const usage = `wallet simulates the wallet of a platform, with a blockchain in a file.

Usage: wallet <command> [flags]

  run       report deposits and pay withdrawals until it is stopped
  address   print the address of the hot wallet, or with --user that of a user
  pay       pay to an address from outside, and print the id of the transaction
  sender    say who sent a deposit
  mine      add blocks to the chain

A first try, beside a service on http://127.0.0.1:8080:

  export WALLET_SERVICE_AUTH=wallet.…        # printed by castellan service-key add
  wallet run --finalize &
  wallet pay --to $(wallet address) --amount 10           # fill the hot wallet
  wallet pay --to $(wallet address --user USER_ID) --amount 1
  wallet sender --tx 0x… --name 'Ada Lovelace'

The folder --dir holds the seed of all keys, the journal and the chain. Run one wallet in a
folder; the other commands may be used beside it. "wallet <command> --help" lists the flags.
`

func main() {
	err := command(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "wallet:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		fmt.Print(usage)
		return nil
	}
	do, known := map[string]func(*flag.FlagSet, []string) error{"run": run, "address": address, "pay": pay,
		"sender": sender, "mine": mine}[args[0]]
	if !known {
		return fmt.Errorf("there is no command %q; see wallet --help", args[0])
	}
	return do(flag.NewFlagSet("wallet "+args[0], flag.ContinueOnError), args[1:])
}

// folder adds the flags that every command has.
func folder(f *flag.FlagSet) (dir, chain *string) {
	dir = f.String("dir", "wallet-data", "`folder` of the wallet")
	chain = f.String("chain", "", "`file` of the chain (default: chain.jsonl in the folder)")
	return dir, chain
}

func openChain(dir, path string) (*Chain, error) {
	if path == "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		path = dir + "/chain.jsonl"
	}
	return OpenChain(path)
}

func run(f *flag.FlagSet, args []string) error {
	w := &Wallet{}
	dir, chain := folder(f)
	base := f.String("url", "http://127.0.0.1:8080", "base `URL` of the service")
	f.Uint64Var(&w.Confirmations, "confirmations", 2, "blocks after which a transaction is final")
	f.BoolVar(&w.Finalize, "finalize", false,
		"finalize deposits that are confirmed and have a sender; otherwise the treasury decides")
	f.DurationVar(&w.Poll, "poll", time.Second, "interval between checks of the service and the chain")
	f.DurationVar(&w.Options.Mine, "mine", time.Second, "time between two blocks; 0: wallet mine adds them")
	f.DurationVar(&w.Check, "check", 2*time.Second,
		"interval between checks of withdrawals that an administrator must decide on")
	f.Float64Var(&w.Lose, "lose", 0, "`probability` that the answer to a request is lost")
	f.Float64Var(&w.Fail, "fail", 0, "`probability` that a withdrawal is reported failed")
	f.Float64Var(&w.Empty, "empty", 0, "`probability` that the hot wallet is reported empty")
	f.Float64Var(&w.TimeOut, "timeout", 0, "`probability` that a withdrawal is reported timed out")
	f.Float64Var(&w.Retry, "retry", 0,
		"`probability` that a withdrawal that waits for an administrator is claimed again, at each look")
	f.Float64Var(&w.Crash, "crash", 0, "`probability` of a kill -9 of itself at each step")
	if err := f.Parse(args); err != nil {
		return err
	}
	key := os.Getenv("WALLET_SERVICE_AUTH")
	if key == "" {
		return errors.New("set WALLET_SERVICE_AUTH to the key that castellan service-key add printed")
	}
	c, err := client.New(*base)
	if err != nil {
		return err
	}
	c.HTTP = &http.Client{Transport: losing{http.DefaultTransport, w.Lose}}
	w.Service, w.Dir = c.Service(key), *dir
	if w.Chain, err = openChain(*dir, *chain); err != nil {
		return err
	}
	if w.Keys, err = OpenKeys(*dir); err != nil {
		return err
	}
	if w.State, err = OpenState(*dir); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	slog.Info("the wallet runs", "service", *base, "hot", addressFor(w.Keys.Hot()), "chain", w.Chain.Height)
	return w.Run(ctx)
}

func address(f *flag.FlagSet, args []string) error {
	dir, _ := folder(f)
	user := f.String("user", "", "`id` of the user whose deposit address is wanted")
	if err := f.Parse(args); err != nil {
		return err
	}
	keys, err := OpenKeys(*dir)
	if err != nil {
		return err
	}
	if *user == "" {
		fmt.Println(addressFor(keys.Hot()))
		return nil
	}
	if err := AddUser(*dir, *user); err != nil {
		return err
	}
	fmt.Println(addressFor(keys.Deposit(*user)))
	return nil
}

func pay(f *flag.FlagSet, args []string) error {
	dir, path := folder(f)
	to := f.String("to", "", "`address` to pay to")
	text := f.String("amount", "", "amount")
	currency := f.String("currency", "ETH", "code of the currency")
	network := f.String("network", "ETH", "code of the network")
	if err := f.Parse(args); err != nil {
		return err
	}
	paid, err := amount.Parse(*text)
	if err != nil || paid.Sign() <= 0 || *to == "" {
		return errors.New("--to and a positive --amount are needed")
	}
	chain, err := openChain(*dir, *path)
	if err != nil {
		return err
	}
	_, outsider, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	money := Tx{To: addressFor(outsider), Currency: *currency, Network: *network, Amount: paid}
	tx := Tx{To: *to, Currency: *currency, Network: *network, Amount: paid}.Signed(outsider)
	if err := chain.Send(money, tx); err != nil {
		return err
	}
	fmt.Println(tx.ID())
	return nil
}

func sender(f *flag.FlagSet, args []string) error {
	dir, _ := folder(f)
	tx := f.String("tx", "", "`id` of the deposit's transaction")
	name := f.String("name", "", "name of the sender")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *tx == "" || *name == "" {
		return errors.New("--tx and --name are needed")
	}
	if _, err := OpenKeys(*dir); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]string{"name": *name})
	if err != nil {
		return err
	}
	return SetSender(*dir, *tx, text)
}

func mine(f *flag.FlagSet, args []string) error {
	dir, path := folder(f)
	blocks := f.Int("blocks", 1, "how many blocks")
	if err := f.Parse(args); err != nil {
		return err
	}
	chain, err := openChain(*dir, *path)
	for range *blocks {
		if err == nil {
			err = chain.Mine()
		}
	}
	return err
}

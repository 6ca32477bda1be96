package office

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"castellan/client"
	"castellan/domain/money/transaction"
)

// killWallet kills the wallet, and starts it again whenever it has ended.
func (x *exchange) killWallet() {
	for !x.stop.Load() {
		select {
		case <-x.wallet.process.Ended():
			x.walletCrashed++
		case <-time.After(rand.N(walletPause)):
			if x.walletKilled.Load() >= walletKills {
				continue
			}
			x.wallet.kill()
			x.walletKilled.Add(1)
		}
		if err := x.wallet.start(x.flags(true)...); err != nil {
			x.broke("start the wallet: %w", err)
		}
	}
}

func thousandths(n int64) string { return fmt.Sprintf("%d.%03d", n/1000, n%1000) }

// more waits while the wallet is behind, and reports whether traffic goes on.
func (x *exchange) more() bool {
	for x.behind.Load() && !x.stop.Load() {
		time.Sleep(100 * time.Millisecond)
	}
	return !x.stop.Load()
}

// pay sends deposits to users and identifies their sender in the wallet.
func (x *exchange) pay() {
	for x.more() {
		user, n := rand.IntN(traders), 1+rand.Int64N(200)
		tx, err := x.wallet.run("pay", "--to", x.addresses[user], "--amount", thousandths(n))
		if err != nil {
			x.broke("%w", err)
			return
		}
		x.payments, x.paid[user] = x.payments+1, x.paid[user]+n
		time.Sleep(rand.N(300 * time.Millisecond))
		if _, err := x.wallet.run("sender", "--tx", tx, "--name", "Ada Lovelace"); err != nil {
			x.broke("%w", err)
			return
		}
	}
}

// request requests withdrawals, each until it is answered.
func (x *exchange) request(name int) {
	for n := 0; x.more(); n++ {
		w := wish{user: rand.IntN(traders), thousands: 1 + rand.Int64N(50)}
		r := client.WithdrawalRequest{ExternalID: fmt.Sprintf("wish-%d-%d", name, n), UserID: x.users[w.user],
			CurrencyCode: "ETH", Network: "ETH", Amount: json.Number(thousandths(w.thousands)), Address: coldWallet}
		for again := true; again; {
			got, err := x.platform.RequestWithdrawal(context.Background(), r)
			switch e, answered := errors.AsType[*client.Error](err); {
			case err == nil:
				w.id, again = got.ID, false
				x.mu.Lock()
				x.accepted = append(x.accepted, w)
				x.mu.Unlock()
				x.wishes.Add(1)
			case answered && e.Code == "INSUFFICIENT_BALANCE":
				again = false
				x.mu.Lock()
				x.refused++
				x.mu.Unlock()
			case answered && e.Status < 500:
				x.broke("withdrawal %s: %w", r.ExternalID, err)
				return
			}
		}
		pause := time.Second
		if x.wishes.Load() > walletWishes { // a slow wallet must not fall behind
			pause *= 5
		}
		time.Sleep(rand.N(pause))
	}
}

// administer decides about withdrawals until the end.
func (x *exchange) administer() {
	for !x.stop.Load() {
		time.Sleep(100 * time.Millisecond)
		if err := x.decide(x.decision); err != nil {
			x.broke("%w", err)
		}
	}
}

// decision returns a decision about a withdrawal in a status that leads to a move which has not happened yet, if there
// is one. Otherwise it returns any decision. "" leaves the withdrawal to the wallet.
func (x *exchange) decision(status string) string {
	missing := x.missing.Load()
	if missing == nil {
		return anyDecision(status)
	}
	var all []string
	for _, m := range *missing {
		word := fmt.Sprint(m.To)
		switch {
		case fmt.Sprint(m.From) != status:
			continue
		case m.By == transaction.Resume || m.By == transaction.Cancel:
			word = string(m.By)
		case m.To == transaction.QueueProcessing:
			word = ""
		}
		all = append(all, word)
	}
	if len(all) == 0 {
		return anyDecision(status)
	}
	return all[rand.IntN(len(all))]
}

// anyDecision returns one of the decisions about a withdrawal in a status, "" for none.
func anyDecision(status string) string {
	var all []string
	switch status {
	case "queued": // seldom, for the wallet comes first
		if rand.IntN(10) > 0 {
			return ""
		}
		all = []string{"cancel", timedOut, noMoney, "failed"}
	case "waitingApproval":
		all = []string{"", "resume", "resume", "cancel"}
	default: // seldom, so that the wallet can try again
		if rand.IntN(4) > 0 {
			return ""
		}
		all = []string{"", "", "", "resume", "resume", "resume", "cancel", "failed", "success", "waitingApproval"}
	}
	return all[rand.IntN(len(all))]
}

// resumed returns the decision that lets the wallet finish a withdrawal.
func resumed(status string) string {
	if status == "queued" {
		return ""
	}
	return "resume"
}

const (
	noMoney  = "hotWalletInsufficientBalance"
	timedOut = "timeOut"
)

// decide decides about each withdrawal that an administrator can move.
func (x *exchange) decide(choose func(status string) string) error {
	for number, status := range map[int]string{5: "waitingApproval", 6: noMoney, 7: timedOut, 8: "queued"} {
		path := fmt.Sprint("/admin/get-withdrawal-crypto-queue?limit=100&statusCode=", number)
		got, err := x.caller.Try("GET", path, nil, x.boss.with)
		if err != nil || got.Status >= 500 {
			return nil // its node was killed
		}
		var list []struct{ ID string }
		if got.Status != 200 || json.Unmarshal(got.Body, &list) != nil {
			return fmt.Errorf("the queue: %s", got)
		}
		for _, q := range list {
			if err := x.execute(q.ID, status, choose(status)); err != nil {
				return err
			}
		}
	}
	return nil
}

// execute executes a decision about a withdrawal, unless it has another status by now.
func (x *exchange) execute(id, status, what string) error {
	path, body := "/admin/withdrawals/"+id+"/"+what, map[string]any{}
	switch what {
	case "":
		return nil
	case timedOut, noMoney, "failed":
		_, err := x.sidekick.MoveWithdrawal(context.Background(), id,
			client.WithdrawalMove{From: status, Status: what, Reason: "decided beside the wallet"})
		if e, answered := errors.AsType[*client.Error](err); answered && e.Status < 500 && e.Code != "INVALID_STATE" {
			return fmt.Errorf("%s of %s: %w", what, id, err)
		}
		return nil
	case "success", "waitingApproval":
		path = "/admin/update-wallet-withdrawal-crypto-queue"
		body = map[string]any{"withdrawalId": id, "status": 5}
		if what == "success" {
			body["status"], body["currencyCode"] = 4, "ETH"
		}
	}
	got, err := x.caller.Try("POST", path, body, x.boss.with)
	if err == nil && got.Status != 200 && got.Status < 500 && got.Code() != "INVALID_STATE" {
		return fmt.Errorf("%s of %s: %s", what, id, got)
	}
	return nil
}

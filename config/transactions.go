package config

import (
	"fmt"
	"slices"
)

// Transactions are the numbers of statuses that the interface names without a number (D-TX-01, D-TX-02).
type Transactions struct {
	FinalizedDeposit int `key:"status.finalized_deposit" range:"-1000..1000" default:"2"`
	HotWallet        int `key:"queue.hot_wallet_insufficient_balance" range:"-1000..1000" default:"6"`
	TimeOut          int `key:"queue.time_out" range:"-1000..1000" default:"7"`
}

// transactions refuses a number that means another status.
func (k *checker) transactions() {
	t := k.c.Transactions
	for _, n := range []struct {
		key    string
		number int
		taken  []int
	}{
		{"transactions.status.finalized_deposit", t.FinalizedDeposit, []int{-9, -5, 1, 4, 5}},
		{"transactions.queue.hot_wallet_insufficient_balance", t.HotWallet, []int{4, 5, 8, 9, 10, 11, 12}},
		{"transactions.queue.time_out", t.TimeOut, []int{4, 5, 8, 9, 10, 11, 12, t.HotWallet}},
	} {
		k.refuse(slices.Contains(n.taken, n.number), n.key, fmt.Sprintf("%d is the number of another status", n.number))
	}
}

//go:build faults

package office

import "time"

// How often the processes of TestFaultsMoneyIsNeverLostOrCreated are killed, how much is moved, and the most time from
// a movement to its kill. TestFaultsAdjustmentIsBookedOnce kills adjustRounds times.
const (
	moneyKills   = 50
	moneyMoves   = 100_000
	adjustRounds = 10
	moneyPause   = 2 * time.Second
)

// How often TestFaultsWalletAndLedgerAgreeAfterKills kills the service and the wallet each, how long they run at
// most in between, and the minimum number of withdrawals.
const (
	walletKills  = 200
	walletPause  = 1200 * time.Millisecond
	walletWishes = 300
)

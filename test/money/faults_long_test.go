//go:build faults

package money

import (
	"time"
)

// How often the processes of TestFaultsMoney are killed, after how long at least, and
// how much is moved; how often TestFaultsAdjustOnce kills.
const (
	moneyKills   = 50
	moneyMoves   = 100_000
	adjustRounds = 10
	moneyPause   = 2 * time.Second
)

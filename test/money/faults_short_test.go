//go:build !faults

package money

import "time"

// How often the processes of TestFaultsMoney are killed, after how long at least, and
// how much is moved; how often TestFaultsAdjustOnce kills.
const (
	moneyKills   = 4
	moneyMoves   = 500
	adjustRounds = 2
	moneyPause   = 300 * time.Millisecond
)

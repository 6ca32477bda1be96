package challenge

import (
	"slices"
	"time"
)

// Budget holds the wrong values of one user in one flow, over all challenges (D-2FA-13): the instants, in
// milliseconds, of those that still count.
type Budget struct {
	Subject string
	Flow    Flow
	Version int64 // of its row; 0: it has no row yet
	OTP     []int64
	TOTP    []int64
	// OTPRow and TOTPRow are the numbers of consecutive wrong values, without a window: a right value resets them.
	OTPRow, TOTPRow int
}

// Row returns the number of consecutive wrong values of this kind.
func (b Budget) Row(n Name) int {
	switch n.of().counts {
	case timedCodes:
		return b.TOTPRow
	case sentCodes:
		return b.OTPRow
	}
	return 0
}

// Off reports whether a factor is off: after too many consecutive wrong values none is right until another factor
// proves the user (NIST SP 800-63B).
func (b Budget) Off(r Rules, n Name) bool {
	return r.FactorAttempts > 0 && b.Row(n) >= r.FactorAttempts
}

// EndRow returns the budget after a right value of this kind.
func (b Budget) EndRow(n Name) Budget { return b.withRow(n, 0) }

func (b Budget) withRow(n Name, row int) Budget {
	switch n.of().counts {
	case timedCodes:
		b.TOTPRow = row
	case sentCodes:
		b.OTPRow = row
	}
	return b
}

// Left returns how many more wrong values of this kind are evaluated before the user has to wait.
func (b Budget) Left(now time.Time, r Rules, n Name) int {
	times, limit, window := b.of(r, n)
	return max(0, limit-len(recent(times, now, window)))
}

// Wait returns how long the user has to wait before a value of this kind is evaluated again; 0 means it may be now.
// The windows roll: an instant leaves when it is as old as the window.
func (b Budget) Wait(now time.Time, r Rules, n Name) time.Duration {
	times, limit, window := b.of(r, n)
	times = recent(times, now, window)
	if limit == 0 || len(times) < limit {
		return 0
	}
	// The oldest of the newest `limit` instants must leave first.
	return time.Duration(times[len(times)-limit]+window-now.UnixMilli()) * time.Millisecond
}

// Spend counts one more wrong value of this kind.
func (b Budget) Spend(now time.Time, r Rules, n Name) Budget {
	times, limit, window := b.of(r, n)
	if limit == 0 {
		return b
	}
	if !b.Off(r, n) {
		b = b.withRow(n, b.Row(n)+1)
	}
	times = append(slices.Clone(recent(times, now, window)), now.UnixMilli())
	if n.of().counts == timedCodes {
		b.TOTP = times
	} else {
		b.OTP = times
	}
	return b
}

func (b Budget) of(r Rules, n Name) (times []int64, limit int, windowMs int64) {
	switch n.of().counts {
	case timedCodes:
		return b.TOTP, r.TOTPBudget, r.TOTPBudgetWindowMs
	case sentCodes:
		return b.OTP, r.OTPBudget, r.OTPBudgetWindowMs
	}
	return nil, 0, 0
}

func recent(times []int64, now time.Time, windowMs int64) []int64 {
	from := now.UnixMilli() - windowMs
	i, _ := slices.BinarySearch(times, from+1)
	return times[i:]
}

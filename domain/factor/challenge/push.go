package challenge

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

type PushState int16

// The states. A push whose challenge was completed by other methods counts as approved, because its starter has
// proved to be the owner.
const (
	PushSent PushState = iota
	PushApproved
	PushDenied
)

// Push is a push that was offered to the devices of a user. It outlives its challenge, because a push shown on a
// phone counts whatever happened to the challenge (D-EXT-06).
type Push struct {
	ChallengeID string
	UserID      string // or the subject of a decoy
	// Number counts the pushes of a user and is unique for the user. If two owners of a user have read different
	// rows, only one of them can send the next push.
	Number int64
	SentAt int64 // ms
	State  PushState
	// SettledAt is when it was approved or denied, in ms.
	SettledAt int64
}

// SendPush adds a push that is about to be sent. It is fenced by its number.
type SendPush struct{ Push }

func (SendPush) Table() string            { return "push" }
func (s SendPush) Fence() (string, int64) { return s.UserID + "/" + strconv.FormatInt(s.Number, 10), 0 }

// SettlePush records that the push of a challenge was approved or denied. It does nothing for a push that was not
// counted.
type SettlePush struct {
	ChallengeID string
	State       PushState
	At          int64 // ms
}

func (SettlePush) Table() string { return "push" }

// push returns the state of the challenge's push; false if it has none.
func (c Challenge) push() (PushState, bool) {
	i := slices.IndexFunc(c.Methods, func(m Method) bool { return m.Name == PUSH })
	switch {
	case i < 0:
		return PushSent, false
	case c.Methods[i].Order > 0 || c.Completed():
		return PushApproved, true
	case c.State == Denied:
		return PushDenied, true
	}
	return PushSent, true
}

// SettlesPush returns the write when a step from c to next decides the push; false if it does not.
func (c Challenge) SettlesPush(now time.Time, next Challenge) (SettlePush, bool) {
	before, _ := c.push()
	after, has := next.push()
	return SettlePush{next.ID, after, now.UnixMilli()}, has && after != before
}

// PushRules bound the pushes of a user (SEC-16, D-EXT-06); 0 means no bound.
type PushRules struct {
	Sent         int           // sent and not approved …
	Window       time.Duration // … in this rolling window
	SentDay      int           // and in a day
	Denials      int           // denied …
	DenialWindow time.Duration // … in this window …
	Pause        time.Duration // … stop them for this time
}

const pushDay = 24 * time.Hour

// PushMemory is how long a push can count: no window and no pause exceeds a day. The hour allows for clock
// differences.
const PushMemory = pushDay + time.Hour

// Most returns how many of the newest pushes matter.
func (r PushRules) Most() int { return max(r.Sent, r.SentDay, r.Denials) }

// Wait returns how long no push may be sent, given the sent ones; 0 means now. Approved ones do not count.
func (r PushRules) Wait(now time.Time, pushes []Push) time.Duration {
	var sent, denied []int64
	for _, p := range pushes {
		if p.State != PushApproved {
			sent = append(sent, p.SentAt)
		}
		if p.State == PushDenied {
			denied = append(denied, p.SettledAt)
		}
	}
	slices.Sort(sent)
	slices.Sort(denied)
	return max(full(now, sent, r.Sent, r.Window), full(now, sent, r.SentDay, pushDay), r.paused(now, denied))
}

// full returns how long a rolling window is full, given ascending instants.
func full(now time.Time, at []int64, limit int, window time.Duration) time.Duration {
	if limit <= 0 || len(at) < limit {
		return 0
	}
	return max(0, time.UnixMilli(at[len(at)-limit]).Add(window).Sub(now))
}

// paused returns how long the pause after so many denials in a window lasts.
func (r PushRules) paused(now time.Time, denied []int64) (wait time.Duration) {
	for i := r.Denials - 1; r.Denials > 0 && i < len(denied); i++ {
		last := time.UnixMilli(denied[i])
		if last.Sub(time.UnixMilli(denied[i-r.Denials+1])) < r.DenialWindow {
			wait = max(wait, last.Add(r.Pause).Sub(now))
		}
	}
	return wait
}

// Missing returns pushes that count as sent although their rows are missing. Another owner of the user may have
// assigned their numbers, and their rows may still arrive. Their numbers lie below a push sent since the instant, and
// above all pushes sent before it. pushes is the list of Store.Pushes, and most is PushRules.Most: the first numbers
// of a user are no higher.
func Missing(pushes []Push, since time.Time, most int) (missing []Push) {
	sorted := slices.SortedFunc(slices.Values(pushes), func(a, b Push) int { return cmp.Compare(a.Number, b.Number) })
	last := int64(0)
	if len(sorted) > 0 && sorted[0].Number > int64(most) { // those below were purged
		last = sorted[0].Number - 1
	}
	for _, p := range sorted {
		if p.SentAt >= since.UnixMilli() {
			for n := last + 1; n < p.Number; n++ {
				missing = append(missing, Push{UserID: p.UserID, Number: n, SentAt: p.SentAt})
			}
		} else {
			missing = nil // an owner never assigns a number below one that it has read
		}
		last = p.Number
	}
	return missing
}

// NextPush returns the number of the push after those.
func NextPush(pushes []Push) int64 {
	if len(pushes) == 0 {
		return 1
	}
	return 1 + slices.MaxFunc(pushes, func(a, b Push) int { return cmp.Compare(a.Number, b.Number) }).Number
}

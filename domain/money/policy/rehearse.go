package policy

import (
	"slices"
	"time"

	"castellan/domain/kit/amount"
)

// Rehearsal is what a rule alone would have done. Value is in TRY, and like Accounts of the movements that it stops:
// denied, held and those of which the owner is asked. Waits are from the judgement to their end; Found sorts them.
// Unknown are movements without a stored fact that the rule asks for; they are not judged.
type Rehearsal struct {
	Considered, Denied, Held, Owner, Unknown int64
	Value                                    amount.Sum
	Accounts                                 int
	Waits                                    []time.Duration
	Examples                                 []string // ids of movements, at most maxExamples
}

const maxExamples = 5

// A rule is wide if it stops more than one of wideOf movements; of fewer than wideLeast, none is.
const (
	wideOf    = 100
	wideLeast = 100
)

// wide counts a movement of which a fact is unknown as stopped: the rule is not known to be narrow.
func (h Rehearsal) wide() bool {
	return h.Considered >= wideLeast && (h.Denied+h.Held+h.Unknown)*wideOf > h.Considered
}

// Rehearser judges stored facts by one rule, as if it were active. Its sums are of the facts that it is given.
type Rehearser struct {
	Rehearsal
	set      *Set
	wants    Wants
	history  map[scope]*rolling
	accounts map[string]bool
}

// scope are movements that one sum adds up.
type scope struct {
	sum       int
	kind      Kind
	direction Direction
	common    string
}

// rolling are the movements of a window.
type rolling struct {
	all      []Facts // from the oldest
	sum      amount.Sum
	accounts map[string]int
}

// NewRehearser returns a Rehearser of a valid rule.
func NewRehearser(r Rule) *Rehearser {
	r.Status, r.ExpiresAt = Active, time.Time{}
	return &Rehearser{set: Compile([]Rule{r}), wants: r.wants(), history: map[scope]*rolling{},
		accounts: map[string]bool{}}
}

// Add judges the next movement, by its request. Those before the rehearsed time only count in sums, and those that were
// cancelled or failed do not.
func (h *Rehearser) Add(movementID string, f Facts, rehearsed, counts bool) {
	totals := make([]Total, len(h.set.Sums()))
	for i, key := range h.set.Sums() {
		totals[i] = h.roll(i, key, f, counts)
	}
	if !rehearsed || !slices.Contains(h.set.rules[0].Kinds, f.Kind) {
		return
	}
	h.Considered++
	if f.Initiator.Type != User {
		f.Device, f.Read.Device = NoDevice, true
	}
	if f.Read.and(h.wants) != f.Read.and(Wants{Any: true}) {
		h.Unknown++
		return
	}
	v := h.set.Judge(f, totals)
	switch {
	case v.Passes():
		return
	case v.Deny:
		h.Denied++
	case v.Owner.Asked:
		h.Owner++
	default:
		h.Held++
	}
	if !v.Until.IsZero() {
		h.Waits = append(h.Waits, v.Until.Sub(f.At))
	}
	h.Value = h.Value.Add(f.Value.Sum())
	h.accounts[f.Account.ID] = true
	if h.Accounts = len(h.accounts); len(h.Examples) < maxExamples {
		h.Examples = append(h.Examples, movementID)
	}
}

// Found returns what the rule would have done with all movements, with the shortest wait first.
func (h *Rehearser) Found() Rehearsal {
	slices.Sort(h.Waits)
	return h.Rehearsal
}

// roll returns the total of a sum with a movement, which joins the window if it counts.
func (h *Rehearser) roll(i int, key SumKey, f Facts, counts bool) (t Total) {
	at := scope{i, f.Kind, f.Direction, f.Common(key.Per)}
	w := h.history[at]
	if w == nil {
		w = &rolling{accounts: map[string]int{}}
		h.history[at] = w
	}
	for len(w.all) > 0 && !w.all[0].At.After(f.At.Add(-time.Duration(key.Window))) {
		old := w.all[0]
		w.all, w.sum = w.all[1:], w.sum.Sub(key.Term(old))
		if w.accounts[old.Account.ID]--; w.accounts[old.Account.ID] == 0 {
			delete(w.accounts, old.Account.ID)
		}
	}
	t = Total{Sum: w.sum.Add(key.Term(f)), Number: int64(len(w.all)) + 1}
	if key.Of == Accounts {
		t.Number = int64(len(w.accounts))
		if w.accounts[f.Account.ID] == 0 {
			t.Number++
		}
	}
	if counts {
		w.all, w.sum = append(w.all, f), w.sum.Add(key.Term(f))
		w.accounts[f.Account.ID]++
	}
	return t
}

// Common returns what the movements of a sum have in common with a movement. As initiators, owners are one each.
func (f Facts) Common(per Per) string {
	switch {
	case per == PerDestination:
		return f.Destination.Key
	case per == PerInitiator && f.Initiator.Type != User:
		return f.Initiator.String()
	case per == PerAsset:
		return f.Asset.CurrencyCode
	case per == PerPlatform:
		return ""
	}
	return f.Account.ID
}

package passkey

import (
	"slices"
	"time"
)

// Trust is how far the registration of a passkey is trusted. A passkey that was registered by a code of an SMS is as
// strong as that code. So it counts for policies with phishingResistant only after some time, in which the owner can
// object.
type Trust struct {
	// Since is when the passkey began to settle; zero: it was settled at its registration.
	Since time.Time `json:"since,omitzero"`
	// Restarted is when a factor of the account was last changed without a passkey; zero: never.
	Restarted time.Time `json:"restarted,omitzero"`
}

// From returns the instant from which the passkey meets a need; zero: it always did.
func (t Trust) From(need Need, settle time.Duration) (from time.Time) {
	if need != Any {
		from = t.Since
	}
	if need == Resistant && t.Restarted.After(from) {
		from = t.Restarted
	}
	if !from.IsZero() {
		from = from.Add(settle)
	}
	return from
}

// Counts reports whether the passkey counts for phishingResistant.
func (t Trust) Counts(now time.Time, settle time.Duration) bool {
	return !now.Before(t.From(Resistant, settle))
}

// Need is what a challenge requires of a passkey.
type Need int8

// The needs. Resistant is that of a policy with phishingResistant. Changing is that of a change of the account's
// factors: a passkey that has settled by its own registration. So one that a thief has added can neither remove the
// others nor add more before the owner could object.
const (
	Any Need = iota
	Resistant
	Changing
)

// For returns the passkeys of one account, which are all in have, that meet a need.
func For(need Need, have []Credential, now time.Time, settle time.Duration) []Credential {
	return slices.DeleteFunc(slices.Clone(have), func(c Credential) bool { return now.Before(c.From(need, settle)) })
}

// firstWithin is how soon after its registration an account's first passkey is settled at once, if the account has no
// factor but messages. Nothing stronger could be taken over by it.
const firstWithin = time.Hour

// Joining returns the trust of a passkey that is added to an account at now. have are its passkeys so far, and
// registered is when the account was made; zero if it has another factor than messages. by is the device of the passkey
// that approved the addition: the new one is trusted as it is. It is "" without one; recovered reports whether a
// recovery code replaced it.
func Joining(now, registered time.Time, have []Credential, by string, recovered bool) Trust {
	t := Trust{Since: now}
	for _, c := range have {
		if c.Restarted.After(t.Restarted) {
			t.Restarted = c.Restarted
		}
		if c.DeviceID == by && !recovered {
			t.Since = c.Since
		}
	}
	if len(have) == 0 && !recovered && now.Before(registered.Add(firstWithin)) {
		t.Since = time.Time{}
	}
	return t
}

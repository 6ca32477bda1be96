package challenge

import (
	"crypto/subtle"
	"slices"
	"time"

	"castellan/domain/kit/fault"
)

// Verdict is the result of judging an answer.
type Verdict int8

// The verdicts. Undecided makes the state machine compare digests itself, as for SMS and MAIL: Right is wrong for
// them. TOTP and PUSH are judged by the holder of the secret or the public key, and arrive decided.
const (
	Undecided Verdict = iota
	Right
	Wrong
	Refusal // a signed DENIED
)

// Use names a resource that a right answer uses up beyond its challenge, such as the time step of a TOTP. The judge
// of the answer names it. It commits, fenced, with the step of the challenge that accepts the answer. When answers of
// several challenges need the same resource, only one of them succeeds (SEC-06).
type Use struct {
	Key   string // opaque to all but the code of the method
	Value int64
}

// CodeDigits is the number of digits of a code of every method.
const CodeDigits = 6

// Code reports whether a text can be a code. Any other costs no attempt.
func Code(text string) bool {
	if len(text) != CodeDigits {
		return false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// Answer is one value for one method.
type Answer struct {
	MethodID string
	Method   Name
	// Digests of the value, one per active keyed-hash key.
	Digests []Digest
	Verdict Verdict
	// Use accompanies the verdict Right of a method whose values are used up.
	Use *Use
	// Intent is the claim int of the answer's proof; "" without one.
	Intent string
	// Proof is the evidence of a signed answer.
	Proof *Proof
	// Remember asks to have the client of the challenge remembered, if this answer completes it.
	Remember bool
}

// Step is the result of an evaluated answer: the state to save, and the answer to return once it is saved.
type Step struct {
	Next    Challenge
	Verdict Verdict
	// Budget is set when the answer was wrong and counts for the user, or was right and ended a series of wrong ones.
	Budget *Budget
	// Row is the number of consecutive wrong values of the factor; 0 when this answer did not increase it.
	Row int
	// Refusal is the answer to a wrong value. Return it only after Next and Budget are saved.
	Refusal error
}

// Repeat reports whether a is the exact repeat of the answer that ended the challenge: the same method and the same
// value (D-2FA-14).
func (c Challenge) Repeat(a Answer) bool {
	if c.Last == "" || c.Last != a.MethodID || c.State == Pending || c.State == Closed {
		return false
	}
	m, _ := c.Method(a.MethodID)
	return m.Name == a.Method && m.Digest.matches(a.Digests)
}

// Complete evaluates an answer. An error is a refusal that changes nothing: METHOD_NOT_FOUND, INVALID_FIELD,
// CHALLENGE_EXPIRED, CHALLENGE_CLOSED, METHOD_ALREADY_COMPLETED, METHOD_LOCKED, METHOD_EXPIRED or RATE_LIMITED.
// Otherwise the Step must be saved before any part of it is returned to a client.
func (c Challenge) Complete(now time.Time, r Rules, b Budget, a Answer) (Step, error) {
	i, err := c.find(a.MethodID, a.Method)
	if err != nil {
		return Step{}, err
	}
	m := c.Methods[i]
	switch {
	case c.Expired(now):
		return Step{}, c.Open(now)
	case c.State == Executing, c.State != Denied && c.State != Closed && m.Order > 0:
		return Step{}, fault.New(fault.MethodAlreadyCompleted, "the method is already completed")
	case c.State != Pending:
		return Step{}, closed()
	case m.Wrong >= r.MethodAttempts && !(m.Name == PUSH && a.Verdict == Refusal): // a locked push may still be denied
		return Step{}, fault.New(fault.MethodLocked, "too many wrong values for this method")
	case now.UnixMilli() >= m.ExpiresAt:
		return Step{}, fault.New(fault.MethodExpired, "the method has expired")
	case !c.signed(m.Name, a), !c.resists(m.Name, a):
		return Step{}, fault.New(fault.DeviceSignatureInvalid, "the device signature is not valid")
	case m.Name == PUSH && a.Verdict == Refusal:
		return c.deny(now, i, a), nil
	}
	if wait := b.Wait(now, r, m.Name); wait > 0 {
		return Step{}, fault.New(fault.RateLimited, "too many wrong values; try later").After(wait)
	}
	// A given verdict counts only for methods judged elsewhere. Sent codes are always compared here.
	decided := a.Verdict == Right && !m.Name.Sent()
	right := decided || a.Verdict == Undecided && m.Digest.matches(a.Digests)
	off := b.Off(r, m.Name) && c.Flow != FlowRegister
	switch right = right && !off; { // as for an unknown code: a stranger sees no difference
	case right && m.Number != "" && !a.Proof.Assertion() && !m.Digest.matches(a.Digests):
		// signed, but not with the number the starter sees
		return c.wrong(now, r, b, i), nil
	case right:
		step := c.right(now, i, a)
		if b.Row(m.Name) > 0 {
			ended := b.EndRow(m.Name)
			step.Budget = &ended
		}
		return step, nil
	case m.Name == PUSH: // an unsigned push is no attempt: nothing to count
		return Step{Next: c.clone(), Verdict: Wrong, Refusal: fault.New(fault.DeviceSignatureInvalid,
			"the device signature is not valid")}, nil
	}
	return c.wrong(now, r, b, i), nil
}

func (c Challenge) right(now time.Time, i int, a Answer) Step {
	next, m := c.complete(now, i)
	m.Proof, m.Digest = a.Proof, a.answered(m.Digest)
	return Step{Next: next, Verdict: Right}
}

// complete returns the challenge with one more completed method, and that method.
func (c Challenge) complete(now time.Time, i int) (next Challenge, m *Method) {
	next = c.clone()
	m = &next.Methods[i]
	m.Order, m.CompletedAt = 1+len(c.CompletedMethods()), now.UnixMilli()
	if next.ready() {
		next.State, next.Last = Executing, m.ID
	}
	return next, m
}

// Recall completes a method of a new challenge because its client is remembered (D-AUTH-17). No value was given, so
// none can repeat it.
func (c Challenge) Recall(now time.Time, method int, client string) Challenge {
	next, m := c.complete(now, method)
	m.Remembered, m.Number, m.Digest = client, "", Digest{}
	return next
}

// signed reports whether a proof covers the intent of the challenge: a claim must be right, and may be absent unless
// the policy requires it of a push (D-EXT-09).
func (c Challenge) signed(n Name, a Answer) bool {
	if a.Intent == "" {
		return n != PUSH || !c.SignIntent
	}
	return subtle.ConstantTimeCompare([]byte(a.Intent), []byte(c.IntentDigest)) == 1
}

// resists reports whether the proof of an approval is of a kind that the challenge accepts. A denial needs none.
// The browser of the starter makes an assertion, so a passkey needs no number.
func (c Challenge) resists(n Name, a Answer) bool {
	switch {
	case n != PUSH || a.Verdict != Right:
		return !a.Proof.Assertion()
	case a.Proof.Assertion():
		return c.Passkeys && c.Entry != Key
	}
	return !c.Resistant && c.Entry != Alone
}

func (c Challenge) deny(now time.Time, i int, a Answer) Step {
	next := c.clone()
	m := &next.Methods[i]
	m.CompletedAt, m.Proof = now.UnixMilli(), a.Proof
	m.Digest = a.answered(m.Digest)
	next.State, next.Last = Denied, m.ID
	return Step{Next: next, Verdict: Refusal}
}

func (c Challenge) wrong(now time.Time, r Rules, b Budget, i int) Step {
	next := c.clone()
	m := &next.Methods[i]
	m.Wrong++
	next.Wrong++
	left := max(0, min(r.MethodAttempts-m.Wrong, r.ChallengeAttempts-next.Wrong))
	if next.Wrong >= r.ChallengeAttempts {
		next.State, next.Reason = Closed, TooManyWrong
	}
	refusal := fault.New(fault.OTPInvalid, "the value is wrong")
	refusal.Field, refusal.AttemptsLeft = "value", &left
	step := Step{Next: next, Verdict: Wrong, Refusal: refusal}
	if m.Name != PUSH { // only the holder of the device guesses its number: it counts for the challenge alone
		spent := b.Spend(now, r, m.Name)
		step.Budget = &spent
		if spent.Row(m.Name) > b.Row(m.Name) {
			step.Row = spent.Row(m.Name)
		}
	}
	return step
}

// answered returns the digest of an accepted answer, to recognise its exact repeat.
func (a Answer) answered(stored Digest) Digest {
	for _, d := range a.Digests {
		if d.Key == stored.Key {
			return d
		}
	}
	if len(a.Digests) > 0 {
		return a.Digests[0]
	}
	return stored
}

// matches compares in constant time. A method may lack an OTP, because a cap held its message back or the challenge
// is a decoy. Then it has no sum, or one that no value has, and matches nothing.
func (d Digest) matches(values []Digest) bool {
	i := slices.IndexFunc(values, func(v Digest) bool { return v.Key == d.Key })
	return i >= 0 && len(d.Sum) > 0 && subtle.ConstantTimeCompare(d.Sum, values[i].Sum) == 1
}

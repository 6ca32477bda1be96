package stepup

import (
	"context"
	"slices"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/device"
)

// keys are the passkeys of the account of a start that may approve its push. The zero value is an account without any.
type keys struct {
	device.Allowed
	read bool // false: the account has none, or whether it has must not show
}

// passkeys reads the passkeys of an account. A start without a proof has none: whether it had would show.
func (s *Starter) passkeys(ctx context.Context, r challenge.StartRequest, plan mfa.Plan) (k keys, err error) {
	if r.Account.Passkeys && r.Proven && s.Devices != nil {
		k.read = true
		k.Allowed, err = s.Devices.Allowed(ctx, r.Account.UserID, need(r.Action, r.Service, plan.PhishingResistant))
	}
	return k, err
}

// need returns what a challenge of an action, started by a service client or "", requires of a passkey.
func need(action, service string, resistant bool) passkey.Need {
	switch {
	case service == "" && mfa.ChangesFactors(action):
		return passkey.Changing
	case resistant:
		return passkey.Resistant
	}
	return passkey.Any
}

// required returns what an action requires of an account, and its passkeys that may approve it.
func (s *Starter) required(ctx context.Context, now time.Time, r *challenge.StartRequest) (mfa.Plan, keys, error) {
	plan := s.plan(now, r)
	k, err := s.passkeys(ctx, *r, plan)
	return s.byPasskeyToo(*r, k, plan), k, err
}

// byPasskeyToo returns the plan of a start. One that changes the factors of an account with a settled passkey requires
// a passkey, unless a recovery code replaced it. Until one has settled, the account is as one without. A passkey that a
// thief has added by a code would otherwise lock out the owner, who can still answer that code.
func (s *Starter) byPasskeyToo(r challenge.StartRequest, k keys, plan mfa.Plan) mfa.Plan {
	if k.Request != nil && r.Service == "" && !r.Recovered && mfa.ChangesFactors(r.Action) {
		return s.Catalog().ByPasskeyToo(plan)
	}
	return plan
}

// plan returns what the policy of an action requires of an account. A login by a passkey that needs no further method
// gets the entry Alone.
func (s *Starter) plan(now time.Time, r *challenge.StartRequest) mfa.Plan {
	userID := r.Account.UserID
	if !r.Proven { // a rule for one user only would distinguish the user from a decoy (D-PWD-01)
		userID = ""
	}
	plan := s.Catalog().Plan(now, r.Action, userID, r.Starter.IP)
	if r.Entry == challenge.Key && plan.PasskeyAlone && (r.Counts || !plan.PhishingResistant) {
		r.Entry, plan = challenge.Alone, plan.ByPasskey()
	}
	return plan
}

// owns reports whether the account can complete a method of a challenge with an entry.
func (k keys) owns(a challenge.Account, plan mfa.Plan, entry challenge.Entry, n challenge.Name) bool {
	if n == challenge.PUSH && entry == challenge.Key { // its passkey has been used; another device may approve
		return a.Owns(n) && !k.Only && !plan.PhishingResistant
	}
	if n == challenge.PUSH && (plan.PhishingResistant || k.Only) && k.read && entry != challenge.Alone {
		return a.Owns(n) && k.Request != nil
	}
	return owns(a, plan, n)
}

// lacking adds to the refusal of a start when a passkey of the account will count, if none does yet.
func (k keys) lacking(err error, plan mfa.Plan) error {
	if err == nil || k.From.IsZero() || !plan.PhishingResistant && !(k.Only && plan.Lists(challenge.PUSH)) {
		return err
	}
	return fault.New(fault.MFANotAvailable, "no passkey of the account counts for this action before %s",
		k.From.UTC().Format(time.RFC3339))
}

// owns reports whether an account can complete a method of a plan.
func owns(a challenge.Account, plan mfa.Plan, n challenge.Name) bool {
	return a.Owns(n) && (n != challenge.PUSH || a.Passkeys || !plan.PhishingResistant)
}

// mark records in a new challenge what its passkeys may do.
func (k keys) mark(c *challenge.Challenge, plan mfa.Plan) {
	c.Settling = k.read && k.Request == nil && c.Service == "" && mfa.ChangesFactors(c.Action)
	if slices.ContainsFunc(c.Methods, isPush) {
		c.Passkeys, c.Resistant = k.Request != nil && c.Entry != challenge.Key, plan.PhishingResistant
	}
}

// wake reports whether the push of a challenge may reach a device other than a passkey. Only such a push counts for the
// bounds on pushes: a passkey is never woken.
func (k keys) wake(c challenge.Challenge) bool { return !k.Only && approvable(c) }

// approvable reports whether a device other than a passkey can approve the push of a challenge.
func approvable(c challenge.Challenge) bool { return !c.Resistant && c.Entry != challenge.Alone }

// options returns the request options of a new challenge; nil if no passkey may approve its push.
func (k keys) options(c challenge.Challenge) []byte {
	if k.Request == nil || !c.Passkeys || c.Entry != challenge.Password {
		return nil
	}
	return k.Request(c.IntentDigest)
}

// judgePasskey judges a push that a passkey of the challenge's user approves. The owner of the challenge compares the
// signed challenge with the digest of the intent.
func (s *Answerer) judgePasskey(ctx context.Context, a Answer, in *challenge.Answer) error {
	if s.Devices == nil || a.Value != approved {
		return device.Refused()
	}
	got, err := s.Devices.Assert(ctx, a.Assertion)
	if err != nil {
		return err
	}
	userID, err := s.userOf(ctx, a)
	if err == nil && (userID == "" || userID != got.Passkey.UserID) {
		err = device.Refused()
	}
	if err == nil && !got.Counts {
		err = s.meets(ctx, a.ChallengeID, got)
	}
	if err == nil {
		err = s.Devices.Counted(ctx, got, a.By)
	}
	in.Intent, in.Proof = got.Challenge, proofOf(got)
	in.Use, in.Verdict = &challenge.Use{Key: got.Use.Key(), Value: got.Use.At.UnixMilli()}, challenge.Right
	return err
}

// meets refuses a passkey that does not count yet, if the challenge needs one that does.
func (s *Answerer) meets(ctx context.Context, challengeID string, a device.Asserted) error {
	c, err := s.Store.Load(ctx, challengeID)
	if err != nil {
		return err
	}
	ok, err := s.Devices.Meets(ctx, a, need(c.Action, c.Service, c.Resistant))
	if err == nil && !ok {
		err = device.Refused()
	}
	return err
}

func proofOf(a device.Asserted) *challenge.Proof {
	return &challenge.Proof{DeviceID: a.Passkey.DeviceID, JWS: a.Kept, JWK: a.Passkey.Key.JWK()}
}

// Conclude completes the challenge of a login by a passkey that needs no further method, and returns its outcome; nil
// if the action has not reported yet. The assertion was made before the challenge, so it covers the ticket of the login
// and no intent.
func (s *Answerer) Conclude(ctx context.Context, c challenge.Challenge, by device.Asserted,
	who audit.By) (*challenge.Result, error) {
	m, use := c.Methods[0], by.Use
	use.Seen = use.Count // the counter was spent with the ticket; the passkey must still exist
	in := challenge.Answer{MethodID: m.ID, Method: m.Name, Verdict: challenge.Right, Intent: c.IntentDigest,
		Proof: proofOf(by), Use: &challenge.Use{Key: use.Key(), Value: use.At.UnixMilli()}}
	for _, sum := range s.Ring.Hashes("otp", c.ID, m.ID, approved) {
		in.Digests = append(in.Digests, challenge.Digest(sum))
	}
	got, err := s.Challenges.Complete(ctx, c.ID, in, s.Config.ExecWait, who)
	if err != nil {
		return nil, err
	}
	done, err := s.completion(c.ID, got)
	return done.Result, err
}

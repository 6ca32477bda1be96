package stepup

import (
	"context"
	"encoding/json"
	"slices"

	"castellan/domain/access/challenge"
	"castellan/domain/access/device"
	"castellan/domain/access/mfa"
	"castellan/domain/kit/audit"
)

// keys are the passkeys of the account of a start. The zero value is an account without any.
type keys struct {
	request func(digest string) json.RawMessage // nil: no passkey
	only    bool                                // the account has no other device
}

// passkeys reads the passkeys of an account. A start without a proof has none: whether it had would show.
func (s *Starter) passkeys(ctx context.Context, r challenge.StartRequest) (k keys, err error) {
	if r.Account.Passkeys && r.Proven && s.Devices != nil {
		k.request, k.only, err = s.Devices.Allowed(ctx, r.Account.UserID)
	}
	return k, err
}

// owns reports whether the account can complete a method of a challenge with an entry.
func (k keys) owns(a challenge.Account, plan mfa.Plan, entry challenge.Entry, n challenge.Name) bool {
	if n == challenge.PUSH && entry == challenge.Key { // its passkey has been used; another device may approve
		return a.Owns(n) && !k.only && !plan.PhishingResistant
	}
	return owns(a, plan, n)
}

// owns reports whether an account can complete a method of a plan.
func owns(a challenge.Account, plan mfa.Plan, n challenge.Name) bool {
	return a.Owns(n) && (n != challenge.PUSH || a.Passkeys || !plan.PhishingResistant)
}

// mark records in a new challenge what its passkeys may do.
func (k keys) mark(c *challenge.Challenge, plan mfa.Plan) {
	if slices.ContainsFunc(c.Methods, isPush) {
		c.Passkeys, c.Resistant = k.request != nil && c.Entry != challenge.Key, plan.PhishingResistant
	}
}

// wake reports whether the push of a challenge may reach a device other than a passkey. Only such a push counts for the
// bounds on pushes: a passkey is never woken.
func (k keys) wake(c challenge.Challenge) bool { return !k.only && approvable(c) }

// approvable reports whether a device other than a passkey can approve the push of a challenge.
func approvable(c challenge.Challenge) bool { return !c.Resistant && c.Entry != challenge.Alone }

// options returns the request options of a new challenge; nil if no passkey may approve its push.
func (k keys) options(c challenge.Challenge) []byte {
	if k.request == nil || !c.Passkeys || c.Entry != challenge.Password {
		return nil
	}
	return k.request(c.IntentDigest)
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
	if err == nil {
		err = s.Devices.Counted(ctx, got, a.By)
	}
	in.Intent, in.Proof = got.Challenge, proofOf(got)
	in.Use, in.Verdict = &challenge.Use{Key: got.Use.Key(), Value: got.Use.At.UnixMilli()}, challenge.Right
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
		in.Digests = append(in.Digests, challenge.Digest{Key: sum.Key, Sum: sum.Sum})
	}
	got, err := s.Challenges.Complete(ctx, c.ID, in, s.Config.ExecWait, who)
	if err != nil {
		return nil, err
	}
	done, err := s.completion(c.ID, got)
	return done.Result, err
}

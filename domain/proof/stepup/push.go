package stepup

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/device"
)

// The decisions that a device signs. If the policy requires number matching, an approval is APPROVED:NN, with the
// number that the starter sees.
const (
	approved = "APPROVED"
	denied   = "DENIED"
)

// numberDigits is the number of digits for number matching.
const numberDigits = 2

func isPush(m challenge.Method) bool { return m.Name == challenge.PUSH && m.Order == 0 }

// checkDecision refuses a value that is no decision before any proof is verified (D-AUTH-06). It compares the value
// as sent, including case and spaces.
func (s *Answerer) checkDecision(ctx context.Context, a Answer) error {
	if a.Value == approved || a.Value == denied {
		return nil
	}
	number, found := strings.CutPrefix(a.Value, approved+":")
	if found && len(number) == numberDigits && strings.Trim(number, "0123456789") == "" && s.Store != nil {
		c, err := s.Store.Load(ctx, a.ChallengeID)
		if m, _ := c.Method(a.MethodID); err == nil && m.Number != "" {
			return nil
		}
		if err != nil && fault.CodeOf(err) != fault.ChallengeNotFound {
			return err
		}
	}
	return fault.Invalid("value", "must be APPROVED or DENIED")
}

// judgePush judges a push: a decision signed by a device of the challenge's user. It verifies the proof before it looks
// for the challenge, so a caller without a device learns nothing of challenges. A decision uses the device, which must
// still exist at the commit. The owner of the challenge compares the claim about its intent.
func (s *Answerer) judgePush(ctx context.Context, a Answer, in *challenge.Answer) error {
	if a.Assertion != nil {
		return s.judgePasskey(ctx, a, in)
	}
	d, err := s.signer(ctx, a, in)
	if err != nil {
		return err
	}
	in.Use, in.Verdict = &challenge.Use{Key: d.ID, Value: s.Now().UnixMilli()}, challenge.Right
	if a.Value == denied {
		in.Verdict = challenge.Refusal
	}
	return nil
}

// signer returns the device that signed an answer, which must belong to the challenge's user, and adds the evidence to
// the answer.
func (s *Answerer) signer(ctx context.Context, a Answer, in *challenge.Answer) (device.Device, error) {
	switch {
	case a.Signed.Proof == "":
		return device.Device{}, device.Required()
	case s.Devices == nil:
		return device.Device{}, device.Refused()
	}
	d, claims, err := s.Devices.Answered(ctx, a.Signed, device.Answer{DeviceID: a.DeviceID, ChallengeID: a.ChallengeID,
		MethodID: a.MethodID, Value: a.Value,
		Decides: a.Method == challenge.PUSH})
	if err != nil {
		return device.Device{}, err
	}
	userID, err := s.userOf(ctx, a)
	if err == nil && (userID == "" || userID != d.UserID) {
		err = device.Refused()
	}
	in.Intent, in.Proof = claims.Intent, &challenge.Proof{DeviceID: d.ID, JWS: a.Signed.Proof, JWK: d.Key.JWK()}
	return d, err
}

// Use returns the writes that record the use of the device whose decision was accepted (actors.Uses). They fail if it
// was removed meanwhile.
func Use(c challenge.Challenge, use challenge.Use) []commit.Write {
	if w, ok := passkey.UseOf(use.Key); ok {
		w.UserID, w.At = c.UserID, time.UnixMilli(use.Value)
		return []commit.Write{w}
	}
	return []commit.Write{device.Use{UserID: c.UserID, ID: use.Key, At: time.UnixMilli(use.Value)}}
}

// bounded applies the bounds on pushes to a new challenge. It returns the writes of its push, or removes the push and
// returns the notice of that to the owner. A start without a proof causes no notice, because it proves nothing about
// the owner's password.
func (s *Starter) bounded(ctx context.Context, c *challenge.Challenge, letters []letter, owner challenge.Account,
	grant Grant) (writes []commit.Write, err error) {
	switch {
	case grant.NoPush && c.Proven:
		writes = s.Notice(owner, message.PushBound, nil, c.Starter.IP)
		fallthrough
	case grant.NoPush:
		err = withoutPush(c, letters, grant.PushWait)
		if err != nil && writes != nil { // they have no challenge to commit with
			err = cmp.Or(s.Commit.Commit(ctx, writes...), err)
		}
	case grant.PushNumber > 0:
		writes = []commit.Write{challenge.SendPush{Push: challenge.Push{ChallengeID: c.ID, UserID: c.Owner(),
			Number: grant.PushNumber, SentAt: c.CreatedAt}}}
	}
	return writes, err
}

// withoutPush removes the push from a challenge because the bounds on pushes allow none. It returns RATE_LIMITED if
// too few methods remain: the required number is never lowered (D-2FA-11).
func withoutPush(c *challenge.Challenge, letters []letter, wait time.Duration) error {
	i := slices.IndexFunc(c.Methods, isPush)
	if len(c.Methods)-1 < c.Required {
		return fault.New(fault.RateLimited, "too many pushes were not approved; try later").After(max(wait, time.Second)).
			By("limits.push_pending, limits.push_per_day or limits.push_denials")
	}
	c.Methods = slices.Delete(c.Methods, i, i+1)
	for j := range letters {
		if letters[j].method > i {
			letters[j].method--
		}
	}
	return nil
}

// newNumber draws a number of two digits, all equally likely.
func newNumber() string {
	n, err := rand.Int(rand.Reader, big.NewInt(90))
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return fmt.Sprint(10 + n.Int64())
}

// wakeMessage is the message to a device. It contains nothing of use to a carrier: the approving device reads the rest
// with a proof.
type wakeMessage struct {
	ChallengeID string `json:"challengeId"`
	Action      string `json:"action"`
	Expire      int64  `json:"expire"` // seconds
}

// wakes returns the messages to the devices of a user whose challenge has a push. A service without a sender for them
// works the same: devices poll.
func (s *Starter) wakes(ctx context.Context, c challenge.Challenge) ([]letter, error) {
	i := slices.IndexFunc(c.Methods, isPush)
	if i < 0 || c.State != challenge.Pending || !approvable(c) || s.Devices == nil ||
		!s.Dispatch.Offers(message.Push) {
		return nil, nil
	}
	devices, err := s.Devices.Wakes(ctx, c.Owner()) // of a decoy too
	if err != nil {
		return nil, err
	}
	m := c.Methods[i]
	text, err := json.Marshal(wakeMessage{c.ID, c.Action, m.LifetimeMs / 1000})
	if err != nil {
		return nil, err
	}
	out := make([]letter, len(devices))
	for n, d := range devices {
		one := m
		one.MadeAt, one.Generation = c.CreatedAt, n // a payload opens for its own row only
		l := letter{method: i, to: d.Target, row: s.row(c, one, c.UserID, d.Target, c.Starter.IP)}
		l.row.Channel, l.row.Dial, l.row.Proven, l.row.Uncounted = message.Push, "", c.Proven, true
		l.text = message.Rendered{Channel: message.Push, To: d.Target, Text: string(text)}
		plain, _ := l.text.AppendBinary(nil) // never fails
		l.row.Payload = s.Ring.Seal(plain, challenge.PayloadData(c.ID, m.ID, n))
		out[n] = l
	}
	return out, nil
}

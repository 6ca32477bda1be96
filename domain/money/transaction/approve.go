package transaction

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
)

// ActionWithdraw is the action of the challenge with which an owner approves a withdrawal.
const ActionWithdraw = mfa.Withdraw

// Approvals asks owners to approve the withdrawals that other services request for them (D-INT-10). Nothing is held
// before the owner has approved. All fields are required. It is safe for concurrent use.
type Approvals struct {
	*Withdrawals
	Engine interface {
		challenge.Starts
		// Again returns a challenge with a new token. CHALLENGE_NOT_FOUND.
		Again(ctx context.Context, challengeID string) (challenge.Started, error)
	}
	// Account reads an account that may be used. RECORD_NOT_FOUND.
	Account func(ctx context.Context, userID string) (challenge.Account, error)
	// Known reports whether an account used the client of a completed challenge before an instant: its session, or a
	// registered device that signed the approval. It is called if rules ask for the device.
	Known func(ctx context.Context, c challenge.Challenge, before time.Time) (bool, error)
}

// Approval is the state of a request that its owner must approve.
type Approval struct {
	Made *Outgoing // nil until the owner has approved
	// Challenge waits for the owner if Made is nil. Repeated is true if an equal request had started it.
	Challenge challenge.Started
	Repeated  bool
}

// order is the command of the action.
type order struct {
	Request WithdrawalRequest `json:"request"`
	Fee     amount.Amount     `json:"fee"`
	To      string            `json:"to"`
	Tag     string            `json:"tag,omitempty"` // of the entry of the address book, or of the request
}

// pending is the prefix of the record of an external id until the owner has approved; the id of the challenge follows.
const pending = "challenge/"

// maxFenced limits how often a start is decided again.
const maxFenced = 5

// Start checks a request of r.UserID and starts the challenge of its owner, who is identified by from. The external id
// is bound to the challenge until Execute binds it to the withdrawal. An equal request gets the open challenge, or the
// withdrawal; if the challenge ended without a withdrawal, a new one is started. A rejected request stores nothing.
//
// Errors: those of Withdrawals.Request; MFA_NOT_AVAILABLE, RATE_LIMITED, UNAVAILABLE and OVERLOADED of the engine.
func (s *Approvals) Start(ctx context.Context, by audit.By, r WithdrawalRequest,
	from challenge.Starter) (a Approval, err error) {
	if r.Amount.Sign() <= 0 {
		return a, ledger.ErrAmount
	}
	err = commit.Retry(maxFenced, func() error {
		if a, err = s.start(ctx, by, r, from); fault.CodeOf(err) == fault.RecordAlreadyExist {
			return commit.ErrFenced // another request with the external id was first
		}
		return err
	})
	return a, s.Denied(ctx, by, err)
}

func (s *Approvals) start(ctx context.Context, by audit.By, r WithdrawalRequest,
	from challenge.Starter) (none Approval, err error) {
	// A request with approval by the owner differs from the same request without.
	c := integration.Claim{Kind: integration.Withdrawals, ExternalID: r.ExternalID, At: s.Now(),
		Digest: integration.Digest(struct {
			Request  WithdrawalRequest
			Approved bool
		}{r, true})}
	first, err := integration.Find(ctx, s.Claims, c)
	if err != nil {
		return none, err
	}
	if first.RecordID != "" {
		if a, settled, err := s.follow(ctx, first.RecordID); settled || err != nil {
			return a, err
		}
	}
	o, pair, err := s.judged(ctx, r)
	if err != nil {
		return none, err
	}
	command, err := json.Marshal(o)
	if err != nil {
		return none, fmt.Errorf("withdrawal: %w", err)
	}
	account, err := s.Account(ctx, r.UserID)
	if err != nil {
		return none, err
	}
	bind := func(made challenge.Challenge) []commit.Write {
		row := by.Did(audit.Record{At: c.At, Action: "WITHDRAWAL_START", UserID: r.UserID, Target: made.ID,
			Detail: r.detail(pair, o.Fee)})
		c.RecordID = pending + made.ID
		if first.RecordID == "" {
			return []commit.Write{integration.Add{Claim: c}, row}
		}
		return []commit.Write{integration.Rebind{Kind: c.Kind, ExternalID: c.ExternalID, From: first.RecordID,
			To: c.RecordID}, row}
	}
	started, err := s.Engine.Start(ctx, challenge.StartRequest{Action: ActionWithdraw, Account: account, Starter: from,
		Proven: true, Command: command, Bind: bind})
	return Approval{Challenge: started}, err
}

// follow returns the record of an external id: a withdrawal, or a challenge that can still become one. settled is false
// for a challenge that cannot.
func (s *Approvals) follow(ctx context.Context, recordID string) (a Approval, settled bool, err error) {
	challengeID, waits := strings.CutPrefix(recordID, pending)
	if !waits {
		o, err := s.Get(ctx, recordID)
		return Approval{Made: &o}, true, err
	}
	a = Approval{Repeated: true}
	a.Challenge, err = s.Engine.Again(ctx, challengeID)
	if fault.CodeOf(err) == fault.ChallengeNotFound { // it was deleted after its end
		return a, false, nil
	}
	return a, err == nil && !a.Challenge.Challenge.Ended(s.Now()), err
}

// judged checks a request at this moment without storing anything, and returns its order.
func (s *Approvals) judged(ctx context.Context, r WithdrawalRequest) (o order, pair currency.Listed, err error) {
	if pair, err = s.pair(ctx, r); err != nil {
		return o, pair, err
	}
	fee, err := feeOf(s.Parameters, Queued{}, pair)
	if err != nil {
		return o, pair, err
	}
	has, err := s.Ledger.Balance(ctx, r.UserID, pair.ID)
	if err != nil {
		return o, pair, err
	}
	u, to, tag, err := s.judge(ctx, r, pair, fee, has)
	if err == nil { // what the owner must do is judged when the challenge is complete
		now := s.Now().UTC().Truncate(time.Millisecond)
		_, err = s.asked(ctx, u, r, terms{By: Owner, Begins: true}, pair, to, tag, now)
	}
	return order{Request: r, Fee: fee, To: to, Tag: tag}, pair, err
}

// Describe returns the data of an order that the owner sees before approving it.
func (s *Approvals) Describe(command []byte) []challenge.Detail {
	var o order
	if json.Unmarshal(command, &o) != nil {
		return nil
	}
	r, tag := o.Request, cmp.Or(o.Tag, o.Request.AddressTag)
	return Order{Amount: r.Amount.String(), Currency: r.CurrencyCode, ExternalID: r.ExternalID, Fee: o.Fee.String(),
		Network: r.NetworkCode, Tag: tag}.details(strings.TrimSpace(o.To + " " + tag))
}

// briefTail is how many of the last characters of a destination an SMS shows.
const briefTail = 6

// Brief returns amount, currency and the end of the destination, for the SMS and the mail of a code.
func (s *Approvals) Brief(command []byte) string {
	var o order
	if json.Unmarshal(command, &o) != nil {
		return ""
	}
	return o.Request.Amount.String() + " " + o.Request.CurrencyCode + " …" + o.To[max(0, len(o.To)-briefTail):]
}

// Execute executes the order of a challenge that its owner has completed, in the transaction of ctx. It checks the
// request again, with the fee and the address that the owner approved, and puts it into the queue.
//
// Errors: INVALID_STATE if the external id is no longer bound to the challenge; those of Withdrawals.Request. After
// POLICY_DENIED the caller rolls back and calls Denied.
func (s *Approvals) Execute(ctx context.Context, x challenge.Execution) (Outgoing, error) {
	var o order
	if err := json.Unmarshal(x.Command, &o); err != nil {
		return Outgoing{}, fmt.Errorf("withdrawal: command: %w", err)
	}
	// Orders of one user are executed one after the other, and the address cannot change meanwhile.
	if _, err := s.Books.Hold(ctx, o.Request.UserID); err != nil {
		return Outgoing{}, err
	}
	from := pending + x.Challenge.ID
	first, err := s.Claims.Claim(ctx, integration.Withdrawals, o.Request.ExternalID)
	if err != nil {
		return Outgoing{}, err
	}
	if first.RecordID != from || o.Request.UserID != x.Challenge.UserID {
		return Outgoing{}, fault.New(fault.InvalidState,
			"the withdrawal is pending in another challenge, or was already requested")
	}
	var methods []string
	resistant := false
	for _, m := range x.Challenge.CompletedMethods() {
		methods = append(methods, string(m.Name))
		resistant = resistant || m.Name == challenge.PUSH && x.Challenge.Resistant
	}
	approved := terms{By: Owner, Fee: &o.Fee, To: o.To, Tag: cmp.Or(o.Tag, o.Request.AddressTag),
		Methods: strings.Join(methods, "+"), Resistant: resistant,
		Device: func(ctx context.Context) (policy.Device, error) { return s.device(ctx, x.Challenge) }}
	return s.enqueue(ctx, approver(x), o.Request, approved, func(recordID string, _ time.Time) commit.Write {
		return integration.Rebind{Kind: first.Kind, ExternalID: first.ExternalID, From: from, To: recordID}
	})
}

// approver returns the owner who has completed a challenge, with the client that started it.
func approver(x challenge.Execution) audit.By {
	starter := x.Challenge.Starter
	return audit.By{UserID: x.Challenge.UserID, IP: starter.IP, RequestID: starter.RequestID}
}

// knownAfter is the age of a session or of a registered device from which its client is known.
const knownAfter = 24 * time.Hour

// device returns what is known of the client of a completed challenge.
func (s *Approvals) device(ctx context.Context, c challenge.Challenge) (policy.Device, error) {
	if c.Remembered() {
		return policy.RememberedDevice, nil
	}
	known, err := s.Known(ctx, c, s.Now().Add(-knownAfter))
	if err != nil || !known {
		return policy.NewDevice, err
	}
	return policy.KnownDevice, nil
}

// Refused writes the audit row of an order that the money policy has refused at the end of its challenge.
func (s *Approvals) Refused(ctx context.Context, x challenge.Execution, refusal error) error {
	if err := s.Denied(ctx, approver(x), refusal); fault.CodeOf(err) == fault.Internal {
		return err
	}
	return nil
}

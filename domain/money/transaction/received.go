package transaction

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/currency"
	"castellan/domain/money/policy"
)

// received is the kind of the claims that prevent a transfer on a blockchain from being reported under two external
// ids. Their own external ids are the keys below.
const received integration.Kind = "deposit-received"

// receivedKey identifies a transfer on a blockchain in all its spellings (address.Canonical).
func receivedKey(d Deposit) string {
	return hashed(fmt.Sprintf("2\n%d\n%q\n%q", d.Asset, address.Canonical(d.TxID), address.Canonical(d.ToAddress)))
}

// paidKey identifies what a transaction pays to a user, whatever the address.
func paidKey(d Deposit) string {
	return hashed(fmt.Sprintf("3\n%d\n%q\n%q\n%s", d.Asset, address.Canonical(d.TxID), d.UserID, d.Amount))
}

// own is the internal address of a deposit, which a report without an address gets; unnamed reports that it is the
// address of d, so that any address of the user may be meant.
func (d Deposit) own() string { return Address(account(d.UserID, d.Asset)) }

func (d Deposit) unnamed() bool { return address.Same(d.ToAddress, d.own()) }

// spellingKey identifies one spelling of a transfer, without regard to case. Programs up to 0.9 know only this key, and
// may work beside this one.
func spellingKey(d Deposit) string {
	return hashed(strings.ToLower(fmt.Sprintf("%d\n%q\n%q", d.Asset, d.TxID, d.ToAddress)))
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// SameTransfer reports whether two deposits are one transfer on a blockchain.
func (d Deposit) SameTransfer(o Deposit) bool { return receivedKey(d) == receivedKey(o) }

// claimed returns the claims of the transfer of a deposit.
func (d Deposit) claimed(digest []byte) []commit.Write {
	c := integration.Claim{Kind: received, RecordID: d.ID, At: d.At, Digest: digest}
	canonical, spelling := c, c
	canonical.ExternalID, spelling.ExternalID = receivedKey(d), spellingKey(d)
	return []commit.Write{integration.Add{Claim: canonical}, integration.Add{Claim: spelling}}
}

// paid returns the claim of what a transaction pays to the user of a deposit. A deposit to the internal address claims
// it alone. Those to other addresses may share it, as outputs of one amount, so only the first of them claims it. The
// claim is read before free reads the deposits: a claim that is found has a deposit that free sees.
func (s *Service) paid(ctx context.Context, d Deposit, digest []byte) ([]commit.Write, error) {
	c := integration.Claim{Kind: received, ExternalID: paidKey(d), RecordID: d.ID, At: d.At, Digest: digest}
	switch _, err := s.Claims.Claim(ctx, c.Kind, c.ExternalID); {
	case err == nil && !d.unnamed():
		return nil, nil
	case err != nil && fault.CodeOf(err) != fault.RecordNotFound:
		return nil, err
	}
	return []commit.Write{integration.Add{Claim: c}}, nil
}

// readable checks the characters of the texts that identify the transfer of a new deposit. INVALID_FIELD.
func (d Deposit) readable() error {
	var ps fault.Problems
	const visible = "must have visible ASCII characters only"
	ps.Require(address.Plain(d.TxID), "txId", visible)
	ps.Require(address.Plain(d.ToAddress), "toAddress", visible)
	ps.Require(address.Plain(d.FromAddress), "fromAddress", visible)
	return fault.All(ps)
}

// free returns errReceived if the transfer of a new deposit was reported before, in any spelling. So it does if one of
// the two has the internal address and their amounts are the same. The claims cannot say so alone: programs up to 0.9
// claim only the spelling that they were sent.
func (s *Service) free(ctx context.Context, d Deposit) error {
	to := []string{d.ToAddress, d.own()}
	if d.unnamed() {
		to = nil
	}
	all, err := s.Store.Received(ctx, d.Asset, d.TxID, to...)
	for _, was := range all {
		if was.SameTransfer(d) || paidKey(was) == paidKey(d) && (was.unnamed() || d.unnamed()) {
			return errReceived
		}
	}
	return err
}

// respelled returns a report in the spelling of the first report of its external id; ok is false if they differ in more
// than spelling, or not at all.
func (s *Service) respelled(ctx context.Context, r Report, d Deposit) (_ Report, ok bool) {
	first, err := s.Claims.Claim(ctx, integration.Deposits, r.ExternalID)
	if err != nil {
		return r, false
	}
	was, err := s.Deposit(ctx, first.RecordID)
	if err != nil || !was.SameTransfer(d) || !address.Same(was.FromAddress, d.FromAddress) ||
		was.TxID == d.TxID && was.ToAddress == d.ToAddress && was.FromAddress == d.FromAddress {
		return r, false
	}
	r.TxID, r.ToAddress, r.FromAddress = was.TxID, was.ToAddress, was.FromAddress
	return r, true
}

// credited judges the credit of a deposit by its initiator, at the instant of the credit.
func (s *Service) credited(ctx context.Context, u user.User, d Deposit, at time.Time) (ruling, error) {
	pair, _ := s.Currencies.Catalog().Pair(d.Asset)
	m := s.movementOf(u, pair, policy.Deposit, policy.In, at)
	m.facts.Amount, m.facts.Requested, m.facts.Initiator = d.Amount, d.At, d.Initiator.facts()
	return s.Judge.judge(ctx, m)
}

// judgedCredit judges a deposit that would be credited at an instant. If rules hold it, it waits, for its sender or for
// the treasury.
func (s *Service) judgedCredit(ctx context.Context, u user.User, d Deposit, at time.Time) (Deposit, ruling, error) {
	a, err := s.credited(ctx, u, d, at)
	if d.Facts = stored(a.facts); err != nil || a.Passes() {
		return d, a, err
	}
	d.Status = WaitingSender
	if d.SenderInfo != "" {
		d.Status = WaitingTreasury
	}
	return d, a, nil
}

// row returns the audit row of a deposit that rules hold.
func (r ruling) row(by audit.By, d Deposit, at time.Time) []commit.Write {
	if len(r.Rules) == 0 {
		return nil
	}
	return []commit.Write{by.Did(audit.Record{At: at, Action: "MONEY_HOLD", UserID: d.UserID, Target: d.ID,
		Detail: "POLICY " + named(r.Rules)})}
}

// firstHeld is row for a later report; nothing if an earlier one was judged, which may be repeated often.
func (s *Service) firstHeld(ctx context.Context, by audit.By, d Deposit, r ruling, at time.Time) ([]commit.Write,
	error) {
	rows := r.row(by, d, at)
	if len(rows) == 0 {
		return nil, nil
	}
	_, known, err := s.Judge.Past.Judged(ctx, d.ID)
	if err != nil || known {
		return nil, err
	}
	return rows, nil
}

// decided is the event of a deposit that was credited, or returned to wait for its sender.
func (s *Service) decided(d Deposit, now time.Time) integration.Publish {
	pair, _ := s.Currencies.Catalog().Pair(d.Asset)
	data := map[string]string{"depositId": d.ID, "status": d.Status.String(), "amount": d.Amount.String(),
		"currencyCode": pair.Currency.Code, "network": pair.Network.Code}
	if d.ExternalID != "" {
		data["externalId"] = d.ExternalID
	}
	return integration.Publish{Event: integration.Event{ID: id.New(now), Type: integration.DepositDecided,
		UserID: d.UserID, Data: data, At: now}}
}

func (s *Service) movementOf(u user.User, pair currency.Listed, kind policy.Kind, to policy.Direction,
	at time.Time) movement {
	return movement{asset: pair.ID, commits: true, facts: policy.Facts{Kind: kind, At: at.UTC(), Direction: to,
		Asset:   policy.Asset{CurrencyCode: pair.Currency.Code, Network: pair.Network.Code},
		Account: factsOf(u), Device: policy.NoDevice}}
}

// concerns reports whether a rule is about movements of a kind in a currency, or counts them.
func (j *Judge) concerns(kind policy.Kind, currencyCode string) bool {
	return j != nil && (j.Rules().Wants(kind, currencyCode).Any || len(j.Rules().Counts(kind)) > 0)
}

// approve refuses a movement that rules hold and that its approver may not let pass: POLICY_DENIED, INVALID_STATE
// during a wait, FORBIDDEN. Of a group that must approve, the approver must be a member, and another person than owner
// and initiator.
func (j *Judge) approve(ctx context.Context, r ruling, approver, owner string, by Initiator) error {
	switch {
	case r.Deny:
		return errDenied
	case !r.Until.IsZero():
		return errHeld
	case len(r.Approvals) == 0:
		return nil
	}
	roles, err := j.approver(ctx, approver, owner, by, nil)
	if err != nil {
		return err
	}
	for _, q := range r.Approvals {
		if !slices.Contains(roles, q.Group) {
			return errGroup
		}
	}
	return nil
}

// released judges the credit of a deposit that an operator has decided, and returns the gates for its unit. That
// decision is the approval that rules ask for.
func (s *Service) released(ctx context.Context, by audit.By, d Deposit, at time.Time) ([]commit.Write, error) {
	if !s.Judge.concerns(policy.Deposit, s.code(d.Asset)) {
		return nil, nil
	}
	u, err := s.Users.Get(ctx, d.UserID)
	if err != nil {
		return nil, err
	}
	r, err := s.credited(ctx, u, d, at)
	if err != nil {
		return nil, err
	}
	return r.gates, s.Judge.approve(ctx, r, by.UserID, d.UserID, d.Initiator)
}

// errSecond refuses an adjustment that rules permit with an approval alone.
var errSecond = fault.New(fault.PolicyDenied,
	"the money policy asks for the approval of a second person (mfa.four_eyes)")

// adjusted judges an adjustment, and returns its facts and the gates for its unit. One that needs an approval passes as
// a request that a second person has approved, who is a member of the group. So does the repetition of one that was
// made.
func (s *Service) adjusted(ctx context.Context, by audit.By, a Adjustment, p planned) (r ruling, err error) {
	to := policy.In
	if a.Direction == Debit {
		to = policy.Out
	}
	m := s.movementOf(p.owner, p.pair, policy.Adjustment, to, p.transfer.At)
	m.facts.Amount, m.facts.Requested, m.facts.Initiator = a.Amount, m.facts.At, initiatorOf(by).facts()
	r, err = s.Judge.judge(ctx, m)
	if err != nil || r.Passes() {
		return r, err
	}
	_, err = s.Ledger.Store.ByRef(ctx, kindAdjustment, a.UniqueID)
	if fault.CodeOf(err) != fault.RecordNotFound {
		return r, err
	}
	d := denied{errDenied, a.UserID, a.UniqueID, r.Rules}
	switch approver := audit.Approver(ctx); {
	case r.Deny:
	case approver == audit.Rehearsed:
		return r, nil
	case approver == "":
		d.refusal = errSecond
	default:
		return r, s.Judge.approve(ctx, r, approver, a.UserID, initiatorOf(by))
	}
	s.Judge.hit(r.Verdict)
	return r, d
}

// Governed judges a decision of an operator, or a change of a setting. It reports whether another person must approve
// it. While no other administrator is active, no approval is asked for. A call that a person has approved
// (audit.Approver) passes if that person is in the group; otherwise FORBIDDEN. POLICY_DENIED, with an audit row.
func (j *Judge) Governed(ctx context.Context, c commit.Committer, by audit.By, kind policy.Kind, setting string,
	now time.Time) (second bool, err error) {
	if !j.concerns(kind, "") {
		return false, nil
	}
	r, err := j.judge(ctx, movement{facts: policy.Facts{Kind: kind, At: now.UTC(), Requested: now.UTC(), Setting: setting,
		Initiator: initiatorOf(by).facts()}})
	approver := audit.Approver(ctx)
	switch {
	case err != nil || r.Passes():
		return false, err
	case r.Deny && commit.Inside(ctx): // it is rolled back
		return false, errDenied
	case r.Deny:
		j.hit(r.Verdict)
		target := strings.TrimSpace(string(kind) + " " + setting)
		return false, deniedBy(ctx, c, now, by, denied{errDenied, "", target, r.Rules})
	case approver != "":
		return false, j.approve(ctx, r, approver, "", initiatorOf(by))
	}
	others, err := policy.Members(ctx, j.Users, user.RoleAdmin, by.UserID)
	if err == nil && others > 0 {
		j.hit(r.Verdict)
	}
	return others > 0, err
}

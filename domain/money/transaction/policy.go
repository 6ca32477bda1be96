package transaction

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/money/currency"
	"castellan/domain/money/policy"
)

// Refusals by the money policy. They name no rule: the caller may be the one whom the rule is about.
var (
	errDenied = fault.New(fault.PolicyDenied, "the money policy does not permit this")
	errOwner  = fault.New(fault.OwnerRequired, "the owner must approve the withdrawal: send userToken in place of userId")
	errGroup  = fault.New(fault.Forbidden, "the caller may not give an approval that is missing")
)

// denied is a refusal by rules, which the audit names.
type denied struct {
	refusal        *fault.Error
	userID, target string
	rules          []policy.Named
}

func (d denied) Error() string { return d.refusal.Error() }
func (d denied) Unwrap() error { return d.refusal }

// Denied writes the audit row of a refusal by the money policy, outside of the transaction that was refused, and
// returns the refusal. Any other error is returned as it is.
func (s *Withdrawals) Denied(ctx context.Context, by audit.By, err error) error {
	return deniedBy(ctx, s.Ledger.Commit, s.Now(), by, err)
}

func deniedBy(ctx context.Context, c commit.Committer, now time.Time, by audit.By, err error) error {
	var d denied
	if !errors.As(err, &d) {
		return err
	}
	row := audit.Record{At: now, Action: "MONEY_DENY", UserID: d.userID, Target: d.target, Outcome: audit.Refused,
		Detail: string(d.refusal.Code) + ": " + named(d.rules)}
	if failed := c.Commit(ctx, by.Did(row)); failed != nil {
		return failed
	}
	return d.refusal
}

// maxNamed is how many rules an audit row and a hold name.
const maxNamed = 8

func named(rules []policy.Named) string {
	var all []string
	for _, r := range rules[:min(len(rules), maxNamed)] {
		all = append(all, fmt.Sprintf("%s (%d)", r.Label, r.Version))
	}
	if more := len(rules) - maxNamed; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}

// Asks are what rules ask for before a held withdrawal may leave. Approved is the number of approvals of one that has
// left its hold.
type Asks struct {
	Rules     []policy.Named  `json:"rules,omitempty"`
	Approvals []policy.Quorum `json:"approvals,omitempty"`
	From      time.Time       `json:"from,omitzero"` // since when they are asked for; zero: since the hold
	Approved  int             `json:"approved,omitempty"`
}

// Asked returns what the rules of a hold ask for.
func (h Held) Asked() (a Asks) {
	_ = json.Unmarshal([]byte(h.Asks), &a) // "" for none
	return a
}

// askedSince returns the instant from which the approvals of a hold expire.
func (h Held) askedSince() time.Time { return cmp.Or(h.Asked().From, h.Since) }

func (h Held) detail() string {
	a := h.Asked()
	said := strings.TrimSpace(string(h.Reason) + " " + named(a.Rules))
	for _, q := range a.Approvals {
		said += fmt.Sprintf("; %d of %s", q.Required, q.Group)
	}
	if !h.Until.IsZero() {
		said += "; until " + h.Until.UTC().Format(time.RFC3339)
	}
	return said
}

// heldBy returns the hold that a verdict asks for. Approvals expire counted from asked.
func heldBy(v policy.Verdict, since, asked time.Time) Held {
	text, _ := json.Marshal(Asks{Rules: v.Rules[:min(len(v.Rules), maxNamed)], Approvals: v.Approvals, From: asked})
	h := Held{Reason: HeldPolicy, Since: since, Until: v.Until, Asks: string(text)}
	if h.Until.IsZero() && !v.Deny {
		h.Until = expiry(v.Approvals, asked)
	}
	return h
}

// expiry returns when approvals expire that were asked for at an instant; zero without any.
func expiry(all []policy.Quorum, asked time.Time) (at time.Time) {
	for _, q := range all {
		if end := asked.Add(time.Duration(q.Expires)); at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}

// withdrawalOf returns the movement of a withdrawal.
func (s *Withdrawals) withdrawalOf(u user.User, pair currency.Listed, to, tag string, a amount.Amount, requested,
	now time.Time) movement {
	d := Destination{Key: policy.DestinationKey(pair.Network.Code, to, tag), Address: to, Tag: tag,
		Assets: s.Currencies.Catalog().IDs(func(l currency.Listed) bool { return l.NetworkID == pair.NetworkID })}
	return movement{to: d, asset: pair.ID, facts: policy.Facts{Kind: policy.Withdrawal, At: now, Requested: requested,
		Asset: policy.Asset{CurrencyCode: pair.Currency.Code, Network: pair.Network.Code}, Direction: policy.Out,
		Amount: a, Destination: policy.DestinationFacts{Key: d.Key}, Account: factsOf(u)}}
}

// gives reports whether the methods of an owner satisfy a plan.
func gives(by Initiator, methods string, resistant bool, plan policy.OwnerPlan) bool {
	n := 0
	if methods != "" {
		n = strings.Count(methods, "+") + 1
	}
	return by == Owner && n >= max(plan.Required, 1) && (resistant || !plan.PhishingResistant)
}

// asked judges a request. Its verdict asks for approvals and a wait at most.
func (s *Withdrawals) asked(ctx context.Context, u user.User, r WithdrawalRequest, by terms, pair currency.Listed, to,
	tag string, now time.Time) (ruling, error) {
	m := s.withdrawalOf(u, pair, to, tag, r.Amount, now, now)
	m.facts.Initiator, m.device, m.commits = by.By.facts(), by.Device, true
	if by.By != Owner {
		m.facts.Device = policy.NoDevice
	}
	a, err := s.Judge.judge(ctx, m)
	if err != nil {
		return a, err
	}
	d := denied{errDenied, u.ID, r.ExternalID, a.Rules}
	switch {
	case a.Deny:
		s.Judge.hit(a.Verdict)
		return a, d
	case a.Owner.Asked && !by.Begins && !gives(by.By, by.Methods, by.Resistant, a.Owner):
		if by.By != Owner {
			d.refusal = errOwner
		}
		s.Judge.hit(a.Verdict)
		return a, d
	}
	a.Owner = policy.OwnerPlan{}
	return a, nil
}

// step is a move of an entry: the mover, the entry after it, and further writes of its unit. With refused the entry is
// held instead, and the caller gets this error. Without a mover nothing is to be done. Moves that judge set owner.
type step struct {
	mover   Mover
	signed  Signed // by the operator who resumes the entry
	next    Outgoing
	owner   user.User
	with    []commit.Write
	refused error
	hit     policy.Verdict // that holds a claim
}

// hold makes a step the hold of an entry.
func (t step) hold(o Outgoing, h Held) step {
	t.mover, t.next.Queued, t.refused = Hold, o.Queued, errHeld
	t.next.Queued.Status, t.next.Queued.Held = QueueWaiting, h
	return t
}

// since returns since when an entry is held that is held now.
func (q Queued) since(now time.Time) time.Time {
	if q.Status == QueueWaiting && !q.Held.Since.IsZero() {
		return q.Held.Since
	}
	return now
}

// unannounced reports whether the wallet does not know an entry yet: it is held since its request.
func (q Queued) unannounced() bool { return q.Held.Reason != "" && q.Held.Since.Equal(q.At) }

// again judges an entry again before it leaves: at its claim, at a resume and at the end of its hold. It also holds an
// entry for the job of a blocked account.
func (s *Withdrawals) again(ctx context.Context, by audit.By, t step, o Outgoing, repeated bool) (step, error) {
	mover, now := t.mover, s.Now().UTC().Truncate(time.Millisecond)
	u, err := s.owner(ctx, o.Queued.UserID)
	if err != nil {
		return t, err
	}
	t.owner, t.with = u, []commit.Write{watched(u)}
	why := s.cause(u, o)
	_, barred := s.barred(u)
	if why == HeldDigest && mover != Resume && s.Altered != nil {
		s.Altered(o.Queued.ID)
	}
	switch held := o.Queued.Held; {
	case mover == Release && (held.Reason != HeldPolicy || held.Until.IsZero() || held.Until.After(now)):
		return step{}, nil // another node was faster
	case mover == Resume && why == HeldDigest:
		return t, errAltered
	case mover == Resume && t.signed.Order != "" && t.signed.Order != s.order(o).Digest():
		return t, errShown
	case mover == Resume && barred != nil:
		return t, barred
	case mover == Hold && why == "":
		return step{}, nil
	case mover == Wallet && why != "" && repeated:
		return t, errHeld
	case mover != Resume && why != "":
		return t.hold(o, Held{Reason: why, Since: o.Queued.since(now)}), nil
	case s.Judge == nil:
		return t, nil
	}
	return s.governed(ctx, by, t, o, u, repeated, now)
}

// governed is again for an entry whose account may withdraw.
func (s *Withdrawals) governed(ctx context.Context, by audit.By, t step, o Outgoing, u user.User, repeated bool,
	now time.Time) (step, error) {
	q, w := o.Queued, o.Withdrawal
	pair, _ := s.Currencies.Catalog().Pair(q.Asset)
	m := s.withdrawalOf(u, pair, q.Address, q.AddressTag, w.Amount, q.At, now)
	m.facts.Initiator, m.facts.Device, m.id, m.left = w.Initiator.facts(), w.device(), q.ID, t.mover == Wallet
	if m.commits = m.left && !repeated; m.commits {
		m.facts.At = t.next.Queued.LeftAt
	}
	r, err := s.Judge.judge(ctx, m)
	if err != nil {
		return t, err
	}
	v, before := r.Verdict, q.Held.Asked()
	t.with = append(t.with, r.gates...)
	if v.Owner.Asked && !gives(w.Initiator, w.OwnerMethods, w.OwnerResistant, v.Owner) {
		v.Approvals = policy.Join(v.Approvals, policy.Quorum{Group: user.RoleAdmin, Required: 1, Expires: ownerExpiry})
	}
	if q.Held.Reason == HeldPolicy && slices.ContainsFunc(before.Rules, s.Judge.Rules().InForce) {
		v.Approvals = policy.Join(v.Approvals, before.Approvals...)
		if len(v.Rules) == 0 {
			v.Rules = before.Rules
		}
	}
	all := v.Approvals
	given, err := s.given(ctx, by, t.mover, o, v.Approvals)
	switch {
	case err != nil:
		return t, err
	case given.altered && t.mover == Resume:
		return t, errAltered
	case given.altered && repeated:
		return t, errHeld
	case given.altered && s.Altered != nil:
		s.Altered(q.ID)
		fallthrough
	case given.altered:
		return t.hold(o, Held{Reason: HeldDigest, Since: q.since(now)}), nil
	case given.now:
		t.with = append(t.with, AddApproval{q.ID, by.UserID, s.order(o).Digest(), now, t.signed})
	}
	v.Approvals = given.missing
	passes := !v.Deny && len(v.Approvals) == 0 && v.Until.IsZero()
	from := now
	if len(before.Approvals) > 0 {
		from = q.Held.askedSince()
	}
	expires := expiry(v.Approvals, from)
	v.Approvals = all // the hold says what is asked for; who has approved is known apart
	held := heldBy(v, q.since(now), from)
	switch {
	case passes:
		t.next.Queued.Held = approved(cmp.Or(given.count, before.Approved))
	case t.mover == Resume && v.Deny:
		return t, denied{errDenied, u.ID, q.ID, v.Rules}
	case repeated:
		return t, errHeld
	case t.mover == Resume && q.Status == QueueWaiting && given.now:
		t.mover, t.next.Queued = Approve, q
		t.next.Queued.Held = held
	case t.mover == Resume && q.Status == QueueWaiting && v.Until.IsZero():
		return t, errGroup
	case t.mover == Resume && q.Status == QueueWaiting:
		return t, errHeld
	case t.mover == Release && !v.Deny && v.Until.IsZero() && !expires.After(now):
		t.next.Queued.Status, t.next.Queued.Reason = QueueCancelled, "the approvals have expired"
	default:
		if m.left {
			t.hit = r.Verdict
		}
		t = t.hold(o, held)
	}
	return t, nil
}

// told returns the notice to the owner about a hold by rules that begins, gets another end, is over, or expired
// (D-POL-19). Other holds are not reported: their reason may be a finding about the owner.
func (s *Withdrawals) told(by audit.By, u user.User, was Queued, o Outgoing) []commit.Write {
	timed := func(h Held) bool { return h.Reason == HeldPolicy && !h.Until.IsZero() }
	v, kind := message.Values{}, message.Kind("")
	switch q := o.Queued; {
	case timed(q.Held) && !(timed(was.Held) && q.Held.Until.Equal(was.Held.Until)):
		kind, v["expire"] = message.WithdrawalHeld, q.Held.Until.UTC().Format("2006-01-02 15:04 UTC")
	case !timed(was.Held) || u.ID == "":
		return nil
	case q.Status == QueueReady:
		kind = message.WithdrawalReleased
	case q.Status == QueueCancelled:
		kind = message.WithdrawalExpired
	default:
		return nil
	}
	pair, _ := s.Currencies.Catalog().Pair(o.Queued.Asset)
	v["amount"] = o.Withdrawal.Amount.String() + " " + pair.Currency.Code
	return s.Notices.Notice(u.Account(), kind, v, by.IP)
}

// dueAtOnce is how many holds EndHolds ends in a call.
const dueAtOnce = 100

// EndHolds judges the entries again whose wait has ended or whose approvals have expired. Each is released, held on, or
// cancelled if its approvals have expired. An entry that fails does not keep the others. It may run on several nodes at
// once.
func (s *Withdrawals) EndHolds(ctx context.Context) (failed error) {
	ids, err := s.Judge.Past.Due(ctx, s.Now(), dueAtOnce)
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := s.change(ctx, audit.By{UserID: job.ScheduleActor}, step{mover: Release}, id, QueueReady, give(""))
		if err != nil && fault.CodeOf(err) != fault.InvalidState {
			failed = errors.Join(failed, fmt.Errorf("end the hold of %s: %w", id, err))
		}
	}
	return failed
}

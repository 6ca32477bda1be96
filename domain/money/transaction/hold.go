package transaction

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/policy"
)

// HeldFor is why an entry of the queue is held back from the wallet.
type HeldFor string

// The reasons, from the account of the entry. HeldAlarm: the owner raised the alarm after the entry was requested.
const (
	HeldAccount    HeldFor = "ACCOUNT"
	HeldProhibited HeldFor = "PROHIBITED"
	HeldAML        HeldFor = "AML"
	HeldAlarm      HeldFor = "ALARM"
	HeldDigest     HeldFor = "DIGEST" // its rows were altered since the request; it can only be cancelled
	HeldPolicy     HeldFor = "POLICY" // rules of the money policy ask for more (policy.go)
)

// Held is why and since when an entry in QueueWaiting is held; without a Reason it is not. With HeldPolicy, Until is
// when a wait ends, or else when the approvals expire; zero: never. Asks is what the rules ask for, as JSON.
type Held struct {
	Reason       HeldFor
	Since, Until time.Time
	Asks         string
}

// errHeld refuses the claim of an entry that is held, or of an account that may not withdraw now.
var errHeld = fault.New(fault.InvalidState, "the withdrawal is held")

// barred returns why an account may not withdraw, with the refusal of a request; "" if it may.
func (s *Withdrawals) barred(u user.User) (HeldFor, error) {
	ignored := parameter.AMLControl.In(s.Parameters.Set()).IgnoredUsers
	switch {
	case !u.Active():
		return HeldAccount, fault.New(fault.AccountNotActive, "the account is not active")
	case u.WithdrawProhibited:
		return HeldProhibited, fault.New(fault.WithdrawalProhibited, "withdrawals are prohibited for the account")
	case u.AMLStatus != user.NotRisky && !slices.Contains(ignored, u.ID):
		return HeldAML, fault.New(fault.AMLRisky, "the AML status of the account does not permit withdrawals")
	}
	return "", nil
}

// cause returns why an entry must not leave now; "" if it may. An alarm concerns the entries that were requested before
// it, until an operator resumes them.
func (s *Withdrawals) cause(u user.User, o Outgoing) HeldFor {
	if s.altered(o) {
		return HeldDigest
	}
	if why, _ := s.barred(u); why != "" {
		return why
	}
	q := o.Queued
	seen := q.At
	if q.ResumedAt.After(seen) {
		seen = q.ResumedAt
	}
	if !u.AlarmedAt.IsZero() && !u.AlarmedAt.Before(seen) {
		return HeldAlarm
	}
	return ""
}

// owner reads an account whose unit is watched. Inside a transaction of the caller it locks the account: a guard that
// fails there could not be decided again.
func (s *Withdrawals) owner(ctx context.Context, userID string) (user.User, error) {
	if commit.Inside(ctx) {
		return s.Users.Hold(ctx, userID)
	}
	return s.Users.Get(ctx, userID)
}

// watched returns the guard that refuses a unit if what u says about money changes before its commit.
func watched(u user.User) commit.Guard {
	return commit.Guard{On: commit.UserMoney, Key: u.ID, Version: u.MoneyVersion}
}

// HoldKind is the kind of the jobs that hold the entries of an account.
const HoldKind = "hold-queued"

// holding are the parameters of such a job.
type holding struct {
	UserID string
	By     audit.By
}

// HoldQueued returns a function that makes the write of the job that holds the queued withdrawals of an account. It
// belongs into the unit that blocks the account.
func HoldQueued(jobs *job.Service) func(by audit.By, userID string) (commit.Write, error) {
	return func(by audit.By, userID string) (commit.Write, error) {
		return jobs.Later(by, job.Request{Kind: HoldKind, Params: holding{userID, by}})
	}
}

// holdPage is how many entries a step of the job moves.
const holdPage = 20

// Holding returns the kind of the jobs that move the entries of a blocked account to QueueWaiting, and ask the wallet
// to stop those that it has claimed. A claim is refused without them; they show operators what is held.
func (s *Withdrawals) Holding() job.Kind { return job.Kind{Name: HoldKind, Step: s.holdPart} }

func (s *Withdrawals) holdPart(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
	var p holding
	if err := j.Into(&p); err != nil {
		return j, nil, err
	}
	open := true
	from := page.Query[Place]{Limit: holdPage}
	if j.Cursor != "" {
		from.After = &Place{j.Cursor}
	}
	found, err := s.Store.Queue(ctx, QueueQuery{UserID: &p.UserID, Active: &open}, from)
	if err != nil {
		return j, nil, err
	}
	var recalls []commit.Write
	for _, e := range found.Records {
		recall, err := s.holdOne(ctx, p.By, e.Queued.ID)
		if err != nil {
			return j, nil, err
		}
		recalls = append(recalls, recall...)
		j.Cursor, j.Done, j.Total = e.Queued.ID, j.Done+1, j.Total+1
	}
	if !found.More {
		j = j.Finish("")
	}
	return j, recalls, nil
}

// holdOne holds an entry if its account gives a reason. For an entry that the wallet has claimed it returns the event
// that asks the wallet to stop.
func (s *Withdrawals) holdOne(ctx context.Context, by audit.By, id string) ([]commit.Write, error) {
	_, err := s.change(ctx, by, step{mover: Hold}, id, QueueWaiting, give(""))
	if !errors.Is(err, errMove) {
		return nil, err
	}
	o, err := s.Get(ctx, id)
	if err != nil || o.Queued.Status != QueueProcessing {
		return nil, err
	}
	u, err := s.Users.Get(ctx, o.Queued.UserID)
	if err != nil || s.cause(u, o) == "" {
		return nil, err
	}
	return []commit.Write{s.event(integration.WithdrawalRecall, o, s.Now().UTC().Truncate(time.Millisecond))}, nil
}

// HeldCount is the number of entries that are held for a reason, and since when the oldest of them is held.
type HeldCount struct {
	Reason HeldFor
	Number int64
	Oldest time.Time
}

var HeldReasons = []HeldFor{HeldAccount, HeldProhibited, HeldAML, HeldAlarm, HeldDigest, HeldPolicy}

// Overdue lists held withdrawals that will be cancelled unless a person acts. Half of the time of their approvals has
// passed, or for 24 hours a group had fewer members who may approve than are needed. It reads the oldest ones, at most
// maxOverdue, and needs Past, Users and Shared only.
func (j *Judge) Overdue(ctx context.Context, store Store, now time.Time) (ids []string, err error) {
	held, err := j.Past.HeldBefore(ctx, now.Add(-minExpiry/2), maxOverdue)
	if err != nil {
		return nil, err
	}
	for _, id := range held {
		q, err := store.Queued(ctx, id)
		if fault.CodeOf(err) == fault.RecordNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		late, err := j.late(ctx, store, q, now)
		if err != nil {
			return nil, err
		}
		if late {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

const (
	maxOverdue = 100
	minExpiry  = time.Hour // the shortest of approvals
	unfillable = 24 * time.Hour
)

func (j *Judge) late(ctx context.Context, store Store, q Queued, now time.Time) (bool, error) {
	asked := q.Held.Asked().Approvals
	age := now.Sub(q.Held.askedSince())
	for _, quorum := range asked {
		if age >= time.Duration(quorum.Expires)/2 {
			return true, nil
		}
	}
	if len(asked) == 0 || age < unfillable {
		return false, nil
	}
	w, err := store.Withdrawal(ctx, q.ID)
	if err != nil {
		return false, err
	}
	for _, quorum := range asked {
		if fills, err := j.fills(ctx, quorum, w); err != nil || !fills {
			return err == nil, err
		}
	}
	return false, nil
}

// fills reports whether a group has as many members who may approve a withdrawal as a quorum needs.
func (j *Judge) fills(ctx context.Context, q policy.Quorum, w Withdrawal) (bool, error) {
	held, err := j.Users.Holders(ctx)
	if err != nil {
		return false, err
	}
	t := tally{judge: j, owner: w.UserID, by: w.Initiator}
	for _, userID := range held[q.Group] {
		if _, err := t.add(ctx, userID); err != nil {
			return false, err
		}
	}
	return len(t.users) >= q.Required, nil
}

// ownerExpiry is the time for the approval that replaces the one of the owner.
const ownerExpiry = policy.Span(72 * time.Hour)

// given are the approvals of a held withdrawal. missing are the quorums that they do not fill, and count is how many of
// them count. now says that the caller gives one; altered that one of them was given for another order.
type given struct {
	missing      []policy.Quorum
	count        int
	now, altered bool
}

// given returns the approvals of an entry for these quorums. With a resume its caller approves, if that fills one.
func (s *Withdrawals) given(ctx context.Context, by audit.By, mover Mover, o Outgoing, all []policy.Quorum) (g given,
	err error) {
	if h := o.Queued.Held; len(all) == 0 && h.Reason != HeldDigest && h.Asked().Approved == 0 {
		return g, nil
	}
	rows, err := s.Judge.Past.Approved(ctx, o.Queued.ID)
	if err != nil {
		return g, err
	}
	t := tally{judge: s.Judge, owner: o.Queued.UserID, by: o.Withdrawal.Initiator}
	digest, before := s.order(o).Digest(), false
	for _, a := range rows {
		if g.altered = a.OrderDigest != digest; g.altered {
			return g, nil
		}
		before = before || a.UserID == by.UserID
		if _, err := t.add(ctx, a.UserID); err != nil {
			return g, err
		}
	}
	full := func(q policy.Quorum) bool { return t.of(q.Group) >= q.Required }
	g.missing, g.count = slices.DeleteFunc(slices.Clone(all), full), len(t.users)
	if mover != Resume || before || len(g.missing) == 0 {
		return g, nil
	}
	roles, err := t.add(ctx, by.UserID)
	if err != nil {
		return g, err
	}
	g.now = slices.ContainsFunc(g.missing, func(q policy.Quorum) bool { return slices.Contains(roles, q.Group) })
	if g.missing = slices.DeleteFunc(g.missing, full); g.now {
		g.count++
	}
	return g, nil
}

// tally counts the operators whose approvals of a withdrawal count: no two of them share a device.
type tally struct {
	judge *Judge
	owner string
	by    Initiator
	users []string
	roles []string // of all users
}

// add counts an operator and returns the roles; none if the operator may not approve.
func (t *tally) add(ctx context.Context, userID string) ([]string, error) {
	roles, err := t.judge.approver(ctx, userID, t.owner, t.by, t.users)
	if len(roles) > 0 {
		t.users, t.roles = append(t.users, userID), append(t.roles, roles...)
	}
	return roles, err
}

// of returns how many of the counted operators are in a group.
func (t *tally) of(group string) (n int) {
	for _, role := range t.roles {
		if role == group {
			n++
		}
	}
	return n
}

// approved returns what the row of a withdrawal that is not held keeps of its approvals.
func approved(number int) (h Held) {
	if number > 0 {
		text, _ := json.Marshal(Asks{Approved: number}) // cannot fail
		h.Asks = string(text)
	}
	return h
}

// Progress is how far a quorum of a held entry is filled, and when its approvals expire.
type Progress struct {
	Group           string
	Required, Given int
	Expires         time.Time
}

// Queue lists entries as Store.Queue does, with the progress of those that wait for approvals. An approval counts only
// while its operator may give it (D-POL-08).
func (s *Service) Queue(ctx context.Context, q QueueQuery, p page.Query[Place]) (page.Of[Entry], error) {
	all, err := s.Store.Queue(ctx, q, p)
	if err != nil || s.Judge == nil {
		return all, err
	}
	var ids []string
	for _, e := range all.Records {
		if len(e.Queued.Held.Asked().Approvals) > 0 {
			ids = append(ids, e.Queued.ID)
		}
	}
	if len(ids) == 0 {
		return all, nil
	}
	rows, err := s.Judge.Past.Approved(ctx, ids...)
	given := map[string][]AddApproval{}
	for _, a := range rows {
		given[a.ID] = append(given[a.ID], a)
	}
	for i := 0; i < len(all.Records) && err == nil; i++ {
		err = s.progress(ctx, &all.Records[i], given[all.Records[i].Queued.ID])
	}
	return all, err
}

// Order builds the order of a withdrawal from its rows.
func (s *Service) Order(o Outgoing) Order { return orderOf(s.Currencies.Catalog(), o) }

// progress sets the progress of an entry with these approvals.
func (s *Service) progress(ctx context.Context, e *Entry, given []AddApproval) error {
	t, digest := tally{judge: s.Judge, owner: e.Queued.UserID, by: e.Withdrawal.Initiator}, ""
	for _, a := range given {
		if digest == "" {
			digest = s.Order(e.Outgoing).Digest()
		}
		if a.OrderDigest == digest {
			if _, err := t.add(ctx, a.UserID); err != nil {
				return err
			}
		}
	}
	e.Approvers = t.users
	for _, q := range e.Queued.Held.Asked().Approvals {
		e.Progress = append(e.Progress, Progress{q.Group, q.Required, min(t.of(q.Group), q.Required),
			e.Queued.Held.askedSince().Add(time.Duration(q.Expires))})
	}
	return nil
}

package transaction

import (
	"context"
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

// Held is why and since when an entry in QueueWaiting is held; the zero value is not held. With HeldPolicy, Until is
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
	_, err := s.change(ctx, by, Hold, id, QueueWaiting, give(""))
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

// Progress is how far a quorum of a held entry is filled.
type Progress struct {
	Group           string
	Required, Given int
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
	given, err := s.Judge.Past.Approvals(ctx, ids...)
	for i := 0; i < len(all.Records) && err == nil; i++ {
		err = s.Judge.progress(ctx, &all.Records[i], s.Order(all.Records[i].Outgoing).Digest(), given)
	}
	return all, err
}

// Order builds the order of a withdrawal from its rows.
func (s *Service) Order(o Outgoing) Order { return orderOf(s.Currencies.Catalog(), o) }

// progress sets the progress of an entry.
func (j *Judge) progress(ctx context.Context, e *Entry, digest string, given []AddApproval) error {
	counts := map[string]int{}
	for _, a := range given {
		if a.ID != e.Queued.ID || a.OrderDigest != digest {
			continue
		}
		roles, err := j.approver(ctx, a.UserID, e.Queued.UserID, e.Withdrawal.Initiator, e.Approvers)
		if err != nil {
			return err
		}
		if len(roles) > 0 {
			e.Approvers = append(e.Approvers, a.UserID)
		}
		for _, role := range roles {
			counts[role]++
		}
	}
	for _, q := range e.Queued.Held.Asked().Approvals {
		e.Progress = append(e.Progress, Progress{q.Group, q.Required, min(counts[q.Group], q.Required)})
	}
	return nil
}

package transaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/money/ledger"
)

// UpdateKind is the kind of job that moves deposits.
const UpdateKind = "update-status-transaction"

// Limits and pace of an update (D-TX-03, D-TX-04).
const (
	MaxUpdated  = 1000
	maxAwaited  = 20 // larger updates get a response before they are done
	updatePause = 500 * time.Millisecond
)

// Update moves deposits that wait for the treasury to WaitingSender or FinalizedDeposit.
type Update struct {
	IDs []string // distinct, at most MaxUpdated
	To  Status
	// Reason is recorded in the audit trail.
	Reason string
}

// Updated is the state of an update that is running or done.
type Updated struct {
	JobID string
	// Deposits are the deposits of the update in its order, after it; nil if the job continues after the response.
	Deposits []Deposit
	// Failed holds the errors of deposits that were not moved, by id.
	Failed map[string]fault.Code
}

// updating holds the parameters of a job.
type updating struct {
	Update
	By audit.By
}

var (
	errNotWaiting = fault.New(fault.InvalidState, "a transaction is not pending treasury approval")
	errNoSender   = &fault.Error{Code: fault.InvalidState, Field: "senderInfo",
		Message: "a transaction has no sender information",
		Fields:  []fault.Problem{{Field: "senderInfo", Message: "is missing"}}}
)

// UpdateStatus moves deposits, one every half a second, in a job that outlives this process. Every record is checked
// before the first one moves. The job claims all of them as it starts: of two concurrent updates of one record the
// second is rejected.
//
// It returns when the job is done, or at once for more than 20 records. Inside a transaction (an idempotency key, a
// challenge) the response is made before the job runs. It shows the records as the job will leave them, and the end of
// the transaction waits for the job. If the caller may not decide on money of a record's user, the record fails, and
// the others move.
//
// Errors: RECORD_NOT_FOUND; INVALID_STATE for a record that does not wait for the treasury or is being moved, then for
// one without information about its sender.
func (s *Service) UpdateStatus(ctx context.Context, by audit.By, u Update) (out Updated, err error) {
	early := commit.Inside(ctx) && len(u.IDs) <= maxAwaited // the response is made before the job runs
	err = s.Changes.Do(ctx, by, "TRANSACTION_STATUS_START", func(ctx context.Context) (admin.Done, error) {
		all, err := s.judged(ctx, u.IDs)
		if err != nil {
			return admin.Done{}, err
		}
		j, _, err := s.Jobs.Start(ctx, by, job.Request{Kind: UpdateKind, Params: updating{u, by}})
		claims := make([]commit.Write, len(all))
		for i, d := range all {
			d.JobID = j.ID
			claims[i] = SetDeposit{d}
			refused := s.MayMove(by.UserID, d.UserID)
			if refused == nil && early && u.To == FinalizedDeposit {
				_, refused = s.released(ctx, by, d, s.Now())
			}
			if refused == nil {
				all[i].Status = u.To
			}
		}
		out = Updated{j.ID, all, s.failed(by, u, all)}
		return admin.Done{Target: j.ID, Writes: claims,
			Detail: withReason(fmt.Sprintf("%d to %s: %s", len(all), u.To, s.total(all)), u.Reason)}, err
	})
	switch {
	case moved(err):
		return Updated{}, errNotWaiting
	case err != nil:
		return Updated{}, err
	case len(u.IDs) > maxAwaited:
		return Updated{JobID: out.JobID}, nil
	case early:
		commit.After(ctx, func() { s.Await(context.Background(), out.JobID) })
		return out, nil
	}
	ctx = context.WithoutCancel(ctx) // it may take longer than the time limit of a request
	if j, err := s.Await(ctx, out.JobID); err != nil || !j.State.Over() {
		return Updated{JobID: out.JobID}, nil // the job continues
	}
	out.Deposits, err = s.deposits(ctx, u.IDs)
	out.Failed = s.failed(by, u, out.Deposits)
	return out, err
}

// failed returns the errors of deposits that were not moved.
func (s *Service) failed(by audit.By, u Update, all []Deposit) map[string]fault.Code {
	failed := map[string]fault.Code{}
	for _, d := range all {
		if d.Status == u.To {
			continue
		}
		failed[d.ID] = fault.InvalidState
		if err := s.MayMove(by.UserID, d.UserID); err != nil {
			failed[d.ID] = fault.CodeOf(err)
		}
	}
	return failed
}

// total describes the sums of deposits by currency.
func (s *Service) total(all []Deposit) string {
	sums, order := map[string]amount.Sum{}, []string{}
	for _, d := range all {
		code := s.code(d.Asset)
		if _, known := sums[code]; !known {
			order = append(order, code)
		}
		sums[code] = sums[code].Add(d.Amount.Sum())
	}
	slices.Sort(order)
	for i, code := range order {
		order[i] = sums[code].String() + " " + code
	}
	return strings.Join(order, ", ")
}

// deposits reads deposits in the order of ids; a missing deposit has no id.
func (s *Service) deposits(ctx context.Context, ids []string) ([]Deposit, error) {
	found, err := s.Store.Deposits(ctx, ids...)
	all := make([]Deposit, len(ids))
	for _, d := range found {
		all[slices.Index(ids, d.ID)] = d
	}
	return all, err
}

// judged reads the deposits of an update, and rejects it in the documented order: missing deposits, then deposits that
// do not wait, then deposits without a sender (D-TX-04).
func (s *Service) judged(ctx context.Context, ids []string) ([]Deposit, error) {
	all, err := s.deposits(ctx, ids)
	if err != nil {
		return nil, err
	}
	var refusal error
	for i, d := range all {
		if d.ID == "" { // a withdrawal never waits for the treasury
			if _, err := s.Store.Withdrawal(ctx, ids[i]); fault.CodeOf(err) == fault.RecordNotFound {
				return nil, fault.New(fault.RecordNotFound, "there is no such transaction")
			} else if err != nil {
				return nil, err
			}
		}
		if d.Status != WaitingTreasury {
			refusal = errNotWaiting
		}
	}
	if refusal == nil {
		refusal = s.unclaimed(ctx, all)
	}
	if refusal == nil && slices.ContainsFunc(all, func(d Deposit) bool { return d.SenderInfo == "" }) {
		refusal = errNoSender
	}
	return all, refusal
}

// unclaimed rejects deposits that a job is moving. A finished job has released them.
func (s *Service) unclaimed(ctx context.Context, all []Deposit) error {
	seen := map[string]bool{"": true}
	for _, d := range all {
		if seen[d.JobID] {
			continue
		}
		seen[d.JobID] = true
		if j, err := s.Jobs.Store.Get(ctx, d.JobID); err == nil && !j.State.Over() {
			return errNotWaiting
		} else if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
			return err
		}
	}
	return nil
}

// Kind returns the kind of the service's jobs.
func (s *Service) Kind() job.Kind { return job.Kind{Name: UpdateKind, Step: s.step} }

// step moves one record. A record that cannot be moved is counted, and the job continues.
func (s *Service) step(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
	var p updating
	if err := j.Into(&p); err != nil {
		return j, nil, err
	}
	j.Total = int64(len(p.IDs))
	at, _ := strconv.Atoi(j.Cursor) // "" at the beginning
	err := s.move(ctx, j.ID, p, p.IDs[at])
	switch code := fault.CodeOf(err); {
	case err == nil:
		j.Done++
	case errors.Is(err, ledger.ErrFull), code == fault.InvalidState, code == fault.InvalidField,
		code == fault.RecordNotFound, code == fault.Forbidden, code == fault.PolicyDenied:
		j = j.Fail(p.IDs[at], err)
	default:
		return j, nil, err
	}
	if at++; at == len(p.IDs) {
		return j.Finish(""), nil, nil
	}
	j.Cursor, j.Rest = strconv.Itoa(at), updatePause
	return j, nil, nil
}

// move moves one record, with the credit of its amount and the messages to its owner, as one step and once: a repeated
// step finds it moved.
func (s *Service) move(ctx context.Context, jobID string, p updating, id string) error {
	return s.Changes.Do(ctx, p.By, "TRANSACTION_STATUS", func(ctx context.Context) (done admin.Done, err error) {
		all, err := s.deposits(ctx, []string{id})
		if err != nil {
			return done, err
		}
		d := all[0]
		switch from := d.Status; {
		case d.JobID == jobID && from == p.To:
			return done, nil
		case d.JobID != jobID || from != WaitingTreasury:
			return done, errNotWaiting
		}
		if err := s.MayMove(p.By.UserID, d.UserID); err != nil {
			return done, err
		}
		done = admin.Done{Target: d.ID, UserID: d.UserID, Detail: fmt.Sprintf("%s to %s", d.Status, p.To)}
		d.Status = p.To
		var credit []ledger.Transfer
		if d.Status == FinalizedDeposit {
			now := s.Changes.Now().Truncate(time.Millisecond)
			if done.Writes, err = s.released(ctx, p.By, d, now); err != nil {
				return done, err
			}
			credit = []ledger.Transfer{d.credit(now)}
			d.TransferID = credit[0].ID
		}
		told, err := s.decisionNotices(ctx, d, p.By)
		if err == nil {
			err = s.Changes.Commit.Commit(ctx, append(told, SetDeposit{d}, s.decided(d, s.Changes.Now()))...)
		}
		if err == nil && credit != nil {
			_, err = s.Ledger.Do(ctx, p.By, ledger.Movement{Transfers: credit})
		}
		return done, err
	})
}

// decisionNotices returns the notifications of a user about a decision on a deposit: in the account, by mail and by SMS
// (D-TX-11).
func (s *Service) decisionNotices(ctx context.Context, d Deposit, by audit.By) ([]commit.Write, error) {
	u, err := s.Users.Get(ctx, d.UserID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	template := message.DepositSender
	if d.Status > 0 {
		template = message.DepositCredited
	}
	pair, _ := s.Currencies.Catalog().Pair(d.Asset)
	return s.Messenger.Notify(u.Account(), "transaction", template,
		message.Values{"amount": d.Amount.String() + " " + pair.Currency.Code}, by.IP, challenge.MAIL, challenge.SMS), nil
}

package transaction

import (
	"context"

	"castellan/domain/kit/page"
)

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

package registration

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
)

// BulkKind is the kind of job that adds many accounts.
const BulkKind = "add-users"

// MaxBulk is the maximum number of accounts in one job.
const MaxBulk = 1000

// bulk holds the parameters of the job, in the order of the external ids.
type bulk struct {
	Users []Newcomer `json:"users"`
}

// AddAll starts the job that makes an account for each newcomer by the rules of Add, and returns the id of the job. A
// rejected newcomer fails alone; its external id is the ref of the failure.
//
// Errors: INVALID_FIELD for an empty list, more than MaxBulk, and an invalid or duplicate external id.
func (s *Service) AddAll(ctx context.Context, by audit.By, all []Newcomer) (jobID string, err error) {
	if len(all) == 0 || len(all) > MaxBulk {
		return "", fault.Invalid("users", "must have 1 to %d elements", MaxBulk)
	}
	seen, ps := map[string]bool{}, fault.Problems{}
	for i, n := range all {
		field := fmt.Sprintf("users[%d].externalId", i)
		if CheckExternalID(&ps, field, n.ExternalID) {
			ps.Require(!seen[n.ExternalID], field, "is given more than once")
		}
		seen[n.ExternalID] = true
	}
	if err := fault.All(ps); err != nil {
		return "", err
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Newcomer) int {
		return strings.Compare(a.ExternalID, b.ExternalID)
	})
	err = s.Changes.Do(ctx, by, ActionBulk, func(ctx context.Context) (admin.Done, error) {
		j, _, err := s.Jobs.Start(ctx, by, job.Request{Kind: BulkKind, Params: bulk{sorted}})
		jobID = j.ID
		return admin.Done{Target: j.ID, Detail: fmt.Sprintf("%d users", len(all))}, err
	})
	return jobID, err
}

// Kind returns the kind of job that AddAll starts. An account commits with its external id, so a newcomer that is
// repeated after a crash gets the existing account.
func (s *Service) Kind() job.Kind {
	return job.Kind{Name: BulkKind, Items: &job.Items{Effect: job.Repeatable, Snapshot: newcomers, Send: s.addOne}}
}

// newcomers lists the external ids that follow after.
func newcomers(_ context.Context, j job.Job, after string, limit int) (refs []string, err error) {
	var b bulk
	if err := j.Into(&b); err != nil {
		return nil, err
	}
	for _, n := range b.Users {
		if n.ExternalID > after && len(refs) < limit {
			refs = append(refs, n.ExternalID)
		}
	}
	return refs, nil
}

// addOne makes the account of one newcomer.
func (s *Service) addOne(ctx context.Context, j job.Job, ref string) ([]commit.Write, error) {
	var b bulk
	if err := j.Into(&b); err != nil {
		return nil, err
	}
	i, found := sort.Find(len(b.Users), func(i int) int { return strings.Compare(ref, b.Users[i].ExternalID) })
	if !found {
		return nil, fault.New(fault.RecordNotFound, "the job has no such user")
	}
	_, err := s.Add(ctx, audit.By{UserID: j.ActorID}, b.Users[i])
	switch fault.CodeOf(err) {
	case fault.Unavailable, fault.Overloaded:
		return nil, job.Later(err)
	}
	return nil, err
}

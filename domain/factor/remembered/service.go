package remembered

import (
	"context"
	"strconv"
	"time"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
)

// maxListed bounds the list of an account's remembered clients.
const maxListed = 1000

// Service lists and forgets the clients of an account. All fields are required.
type Service struct {
	Store   Store
	Catalog func() *mfa.Catalog
	Commit  commit.Committer
	Now     func() time.Time
}

// List returns the caller's remembered clients that still count, newest first. ExpiresAt is the end under the current
// policy, which may also be one for an address.
func (s *Service) List(ctx context.Context, userID, ip string) ([]Client, error) {
	now, catalog := s.Now(), s.Catalog()
	all, err := s.Store.List(ctx, userID, now, maxListed)
	if err != nil {
		return nil, err
	}
	out := make([]Client, 0, len(all))
	for _, c := range all {
		plan := catalog.Plan(now, c.Action, userID, ip)
		if c.Counts(now, c.CV, plan.RememberDays) && plan.Lists(c.Method) {
			c.ExpiresAt = c.Until(plan.RememberDays)
			out = append(out, c)
		}
	}
	return out, nil
}

// End forgets one of the caller's clients. RECORD_NOT_FOUND for any other id, whether it exists or not.
func (s *Service) End(ctx context.Context, who audit.By, id string) error {
	return s.Commit.InTx(ctx, func(ctx context.Context) error {
		if err := s.Store.Remove(ctx, who.UserID, id); err != nil {
			return err
		}
		return s.Commit.Commit(ctx, s.record(who, id, ""))
	})
}

// EndAll forgets all of the caller's clients and returns how many were remembered. A repetition returns 0.
func (s *Service) EndAll(ctx context.Context, who audit.By) (n int, err error) {
	err = s.Commit.InTx(ctx, func(ctx context.Context) error {
		if n, err = s.Store.RemoveAll(ctx, who.UserID, s.Now()); err != nil || n == 0 {
			return err
		}
		return s.Commit.Commit(ctx, s.record(who, who.UserID, strconv.Itoa(n)+" clients"))
	})
	return n, err
}

func (s *Service) record(who audit.By, target, detail string) audit.Record {
	return who.Did(audit.Record{At: s.Now(), UserID: who.UserID, Action: ActionEnd, Target: target, Detail: detail})
}

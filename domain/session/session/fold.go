package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
)

const (
	// foldAfter is how long after its end a minute is folded. A refusal committed later gets its own row.
	foldAfter = 5 * time.Second
	foldBatch = 200
)

// FoldRefusals writes the audit rows of logins with unknown identifiers: one row with the number of tries for each
// site and finished minute (D-GEN-14). Each try was durable before its answer, and the row commits with the removal
// of its counts. So no try is lost or counted twice. Any node may call it at any time.
func (s *Service) FoldRefusals(ctx context.Context) error {
	for {
		taken := 0
		err := s.Commit.InTx(ctx, func(ctx context.Context) error {
			now := s.Now()
			all, err := s.Sessions.TakeRefused(ctx, now.Add(-time.Minute-foldAfter), foldBatch)
			if taken = len(all); err != nil || taken == 0 {
				return err
			}
			writes := make([]commit.Write, taken)
			for i, r := range all {
				writes[i] = audit.Record{At: now, Action: ActionLogin, Target: r.Site, Outcome: audit.Refused,
					IP: strings.TrimSuffix(r.Site, "/32"),
					Detail: fmt.Sprintf("%d refused with unknown identifiers in the minute %s", r.Count,
						r.Minute.UTC().Format("2006-01-02 15:04 UTC"))}
			}
			return s.Commit.Commit(ctx, writes...)
		})
		if err != nil || taken < foldBatch {
			return err
		}
	}
}

package stepup

import (
	"context"
	"slices"
	"sync"
	"time"

	"castellan/domain/factor/challenge"
)

// overtakers are the new challenges of this node that close others, by the closed ones. A start may be written after
// one that closes it, which then finds no row to close. So each start looks here after its commit. The map has two
// halves: after settling, the younger one becomes the older one.
type overtakers struct {
	mu         sync.Mutex
	young, old map[string][]string
	turned     time.Time
}

// note records what a challenge closes. It must precede the commit of that challenge.
func (o *overtakers) note(now time.Time, by string, closed []string) {
	if len(closed) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.young == nil || now.Sub(o.turned) >= settling || now.Before(o.turned) {
		o.young, o.old, o.turned = map[string][]string{}, o.young, now
	}
	for _, id := range closed {
		o.young[id] = append(o.young[id], by)
	}
}

func (o *overtakers) of(id string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Concat(o.young[id], o.old[id])
}

// yield closes a new challenge if one that closes it was written first. One that will be written later closes it
// itself, and one that never is closes nothing. After an error it stays open: the next start of its action counts it.
func (s *Starter) yield(ctx context.Context, id string) {
	by := s.overtakers.of(id)
	if len(by) == 0 {
		return
	}
	if written, err := s.Store.States(ctx, by); err == nil && len(written) > 0 {
		_ = s.Commit.Commit(ctx, challenge.Supersede{ID: id})
		s.Challenges.Refresh(id)
	}
}

package password

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
)

// ActionExpire is the audit name of imported passwords that must be reset because they were never used.
const ActionExpire = "PASSWORD_EXPIRE"

const (
	// countEvery is the time between two counts of all nodes. An import adds to the counts itself.
	countEvery = time.Hour
	// expireBatch is the number of imported hashes that expire in one unit.
	expireBatch = 500
	seedBytes   = 32
)

// Counter counts the kinds of hashes for a Hasher, and lets imported ones expire. All fields are required.
type Counter struct {
	Store  KindStore
	Commit commit.Committer
	Hasher *Hasher
	// Keep is how long an imported hash stays without a login, from the later of its import and Census.Since.
	Keep time.Duration
	Now  func() time.Time
}

// Load reads the kinds for the Hasher. The first call of an installation counts them.
//
// Errors: UNAVAILABLE; internal, for damaged rows.
func (c *Counter) Load(ctx context.Context) error {
	census, err := c.Store.Census(ctx)
	if err == nil && census.Version == 0 {
		if err = c.count(ctx, Census{Seed: random(seedBytes), Since: c.Now()}); err == nil {
			census, err = c.Store.Census(ctx) // another node may have been first
		}
	}
	if err != nil {
		return err
	}
	portions, err := c.Store.Portions(ctx, maxKinds)
	if err == nil {
		c.Hasher.SetKinds(census.Seed, portions)
	}
	return err
}

// Run counts the kinds if the last count is older than an hour, and lets old imported hashes expire. Every node calls
// it; one of them does the work.
//
// Errors: UNAVAILABLE; internal, for damaged rows.
func (c *Counter) Run(ctx context.Context) error {
	census, err := c.Store.Census(ctx)
	if err != nil || census.Version == 0 || c.Now().Sub(census.Counted) < countEvery {
		return err
	}
	if err := c.expire(ctx, census); err != nil {
		return err
	}
	return c.count(ctx, census)
}

func (c *Counter) count(ctx context.Context, census Census) error {
	kinds, err := c.Store.Count(ctx, 16*maxKinds)
	if err != nil {
		return err
	}
	most := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return int(kinds[b] - kinds[a]) })
	for _, rare := range most[min(len(most), maxKinds):] {
		delete(kinds, rare)
	}
	census.Counted = c.Now()
	err = c.Commit.Commit(ctx, SaveCensus{census}, SetKinds(kinds), change.Note{Topic: change.Hashes})
	if errors.Is(err, commit.ErrFenced) { // another node has counted
		return nil
	}
	return err
}

// Deadline returns the instant before which an account must have been imported for its unused hash to expire at now;
// the zero time: none expires yet.
func (c Census) Deadline(now time.Time, keep time.Duration) time.Time {
	if c.Version == 0 || now.Before(c.Since.Add(keep)) {
		return time.Time{}
	}
	return now.Add(-keep)
}

func (c *Counter) expire(ctx context.Context, census Census) error {
	before := census.Deadline(c.Now(), c.Keep)
	for !before.IsZero() {
		users, err := c.Store.ImportedUsers(ctx, before, expireBatch)
		if err != nil || len(users) == 0 {
			return err
		}
		writes := []commit.Write{audit.Record{At: c.Now(), Action: ActionExpire, Target: "users", Outcome: audit.Success,
			Detail: fmt.Sprintf("%d imported passwords were not used for %v and must be reset", len(users), c.Keep)}}
		for _, id := range users {
			writes = append(writes, ExpireImported{id})
		}
		if err := c.Commit.Commit(ctx, writes...); err != nil {
			return err
		}
	}
	return nil
}

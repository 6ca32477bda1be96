package blob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"castellan/domain/kit/commit"
)

// Temporary is the area of incomplete uploads. It has no owner, so the sweeper removes what a crash left there.
const Temporary = "tmp"

// SweepAfter is how long bytes wait for their row. It is far longer than any request.
const SweepAfter = time.Hour

// Owner is a slice whose rows name files.
type Owner struct {
	// Area is the prefix of the keys, such as document or public/announcement.
	Area string
	// ReferencedKeys returns those of the keys that a row names; nil means that no key has a row.
	ReferencedKeys func(ctx context.Context, keys []string) ([]string, error)
}

// sweepBatch is the number of keys in one call of an owner.
const sweepBatch = 200

// Sweep removes the bytes of every owner's area that are older than SweepAfter and that no row names, and returns how
// many files it removed. It may run on several nodes at once and be interrupted at any moment. An owner that fails
// keeps its files; the others are swept.
func Sweep(ctx context.Context, s Store, owners []Owner, now time.Time) (removed int, err error) {
	owners = append([]Owner{{Area: Temporary}}, owners...)
	for _, o := range owners {
		n, e := sweep(ctx, s, o, now.Add(-SweepAfter))
		removed += n
		if e != nil {
			err = errors.Join(err, fmt.Errorf("sweep %s: %w", o.Area, e))
		}
	}
	return removed, err
}

func sweep(ctx context.Context, s Store, o Owner, before time.Time) (removed int, err error) {
	var batch []string
	flush := func() error {
		var named []string
		if o.ReferencedKeys != nil && len(batch) > 0 {
			var err error
			if named, err = o.ReferencedKeys(ctx, batch); err != nil {
				return err
			}
		}
		for _, key := range batch {
			if slices.Contains(named, key) {
				continue
			}
			if err := s.Delete(ctx, key); err != nil {
				return err
			}
			removed++
		}
		batch = batch[:0]
		return nil
	}
	for info, err := range s.List(ctx, o.Area) {
		if err != nil {
			return removed, err
		}
		if info.Modified.After(before) {
			continue
		}
		if batch = append(batch, info.Key); len(batch) == sweepBatch {
			if err := flush(); err != nil {
				return removed, err
			}
		}
	}
	return removed, flush()
}

// replaceTime bounds Replaced.
const replaceTime = 5 * time.Second

// Replaced removes the old files that are not among the new ones, once the transaction that ctx carries is durable; ""
// means no file. A file that cannot be removed is logged and left to the sweeper.
func Replaced(ctx context.Context, s Store, old, now []string) {
	commit.After(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replaceTime)
		defer cancel()
		for _, key := range old {
			if key != "" && !slices.Contains(now, key) {
				if err := s.Delete(ctx, key); err != nil {
					slog.Warn("a replaced file is left to the sweeper", "key", key, "err", err)
				}
			}
		}
	})
}

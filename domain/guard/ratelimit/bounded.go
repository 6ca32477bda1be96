package ratelimit

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/kit/fault"
)

// Bounded is a Limiter that counts clients under a wider key when the Limiter below keeps no further keys of a rule
// (see Tally).
//
// The one idea: the owner of a key decides about it, so all nodes count a client in the same way. Only a request that
// must share needs another call, so other requests cost nothing more.
type Bounded struct {
	Limiter
	hash func(string) string
	log  *slog.Logger
	now  func() time.Time

	shared sync.Map     // label → *atomic.Int64
	warned atomic.Int64 // time of the last log line, in ns
}

var _ Limiter = (*Bounded)(nil)

// NewBounded returns a Bounded above a Limiter. hash distributes names that are not addresses. It is secret, and the
// same on all nodes.
func NewBounded(below Limiter, hash func(string) string, now func() time.Time, log *slog.Logger) *Bounded {
	return &Bounded{Limiter: below, hash: hash, now: now, log: log}
}

func (b *Bounded) Allow(ctx context.Context, demands []Demand, standings []Standing) (bool, error) {
	admitted, err := b.Limiter.Allow(ctx, demands, standings)
	if admitted || err != nil || !mustShare(standings) {
		return admitted, err
	}
	for i, s := range standings {
		if s.Sharing == Instead {
			b.note(demands[i].Key.Rule)
		}
	}
	return b.share(ctx, b.Limiter.Allow, demands, standings)
}

func (b *Bounded) Look(ctx context.Context, demands []Demand, standings []Standing) error {
	look := func(ctx context.Context, demands []Demand, standings []Standing) (bool, error) {
		return false, b.Limiter.Look(ctx, demands, standings)
	}
	if _, err := look(ctx, demands, standings); err != nil || !mustShare(standings) {
		return err
	}
	_, err := b.share(ctx, look, demands, standings)
	return err
}

// mustShare reports whether a request must be counted differently and is not refused.
func mustShare(standings []Standing) (told bool) {
	for _, s := range standings {
		if s.Retry > 0 {
			return false
		}
		told = told || s.Sharing != Alone
	}
	return told
}

// maxTurns exceeds the number of times that a request can be told to share: each time widens a key or adds one, and
// the widest is never shared further.
const maxTurns = 16

// share repeats the request under wider keys until none must be shared.
func (b *Bounded) share(ctx context.Context, ask func(context.Context, []Demand, []Standing) (bool, error),
	demands []Demand, standings []Standing) (admitted bool, err error) {
	all := append([]Demand(nil), demands...)
	told := append([]Standing(nil), standings...)
	of := make([]int, len(all)) // index of the demand for each
	for i := range of {
		of[i] = i
	}
	for turn := 0; mustShare(told); turn++ {
		if turn == maxTurns {
			return false, fault.New(fault.Unavailable, "the request cannot be counted at the moment; try again").
				After(time.Second)
		}
		next, nextOf := make([]Demand, 0, len(all)+1), make([]int, 0, len(all)+1)
		for i, d := range all {
			wide := Demand{Key: d.Key.wider(b.hash), Limit: d.Limit, Period: d.Period, Cost: d.Cost}
			switch told[i].Sharing {
			case Alone:
				next, nextOf = append(next, d), append(nextOf, of[i])
			case Together:
				d.Shared = true
				next, nextOf = append(next, d, wide), append(nextOf, of[i], of[i])
			case Instead:
				if !d.Shared { // otherwise its wider key is already included
					next, nextOf = append(next, wide), append(nextOf, of[i])
				}
			}
		}
		all, of, told = next, nextOf, make([]Standing, len(next))
		if admitted, err = ask(ctx, all, told); err != nil {
			return false, err
		}
	}
	clear(standings)
	for i, s := range told {
		at := &standings[of[i]]
		at.Used, at.Reset, at.Retry = max(at.Used, s.Used), max(at.Reset, s.Reset), max(at.Retry, s.Retry)
	}
	return admitted, nil
}

// warnPause is the minimum time between two log lines.
const warnPause = time.Minute

// note counts a request under a shared key.
func (b *Bounded) note(rule string) {
	n, known := b.shared.Load(rule)
	if !known {
		n, _ = b.shared.LoadOrStore(rule, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
	now, last := b.now().UnixNano(), b.warned.Load()
	if (last == 0 || now-last >= int64(warnPause)) && b.warned.CompareAndSwap(last, now) {
		b.log.Warn("a rate limit has reached firewall.keys_per_rule: new clients share keys by prefix",
			"rule", rule)
	}
}

// SharedByRule returns how many requests of each rule were counted under a shared key.
func (b *Bounded) SharedByRule() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		b.shared.Range(func(rule, n any) bool { return yield(rule.(string), n.(*atomic.Int64).Load()) })
	}
}

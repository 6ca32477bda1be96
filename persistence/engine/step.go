package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"castellan/domain/kit/commit"
)

// executor runs the transactions whose steps consist only of statements.
type executor interface {
	// transact runs steps in one transaction. If a fence or guard failed it commits nothing and returns the failed
	// units by index. It need not wait for the disk unless flush is true.
	transact(ctx context.Context, steps []step, flush bool) (failed map[int]bool, err error)
	// probe commits something without content, as durably as a step.
	probe(ctx context.Context) error
	close()
}

// step contains the writes of one kind in one transaction.
type step struct {
	kind       *kind
	writes     []commit.Write
	units      []int // the unit of each write
	statements []boundStatement
}

// stepsOf sorts the writes of units into the steps of a transaction, which have no statements yet (bind).
func (s *slot) stepsOf(units []*unit) ([]step, error) {
	var steps []step
	for i, u := range units {
		for _, w := range u.writes {
			if guarded(u.writes, w) {
				continue
			}
			k := s.kinds.of(w)
			if k == nil {
				if isUnflushed(w) {
					continue
				}
				return nil, fmt.Errorf("persistence: no kind for %T", w)
			}
			at := slices.IndexFunc(steps, func(s step) bool { return s.kind == k })
			if at < 0 {
				at, steps = len(steps), append(steps, step{kind: k})
			}
			steps[at].writes = append(steps[at].writes, w)
			steps[at].units = append(steps[at].units, i)
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.kind.order, b.kind.order) })
	return steps, nil
}

// guarded reports whether w is a guard that the fence of another write of the unit includes.
func guarded(unit []commit.Write, w commit.Write) bool {
	guard, is := w.(commit.Guard)
	return is && slices.ContainsFunc(unit, func(other commit.Write) bool {
		g, guards := other.(commit.Guarding)
		return guards && g.Guarded() == guard
	})
}

// bind creates the statements of steps.
func (s *slot) bind(steps []step) {
	for i := range steps {
		if t := &steps[i]; t.kind.bind != nil {
			t.statements = t.kind.bind(s.state, t.writes)
		}
	}
}

// count returns the number of statements in steps.
func count(steps []step) (n int) {
	for i := range steps {
		n += max(1, len(steps[i].statements)) // a kind with its own function counts as one
	}
	return n
}

// functions returns the types of writes in steps that run a function of their slice, and the units, by index, that have
// such a write.
func functions(steps []step) (types []string, units map[int]bool) {
	for _, s := range steps {
		if s.kind.bind != nil {
			continue
		}
		if units == nil {
			units = map[int]bool{}
		}
		types = append(types, fmt.Sprintf("%T", s.writes[0]))
		for _, u := range s.units {
			units[u] = true
		}
	}
	return types, units
}

// apply runs steps in the slot's transaction.
func (s *slot) apply(ctx context.Context, steps []step) (failed map[int]bool, err error) {
	return runSteps(steps, func(t *step) error { return t.kind.run(ctx, s.tx, t.writes) },
		func(b *boundStatement) ([]int, error) { return s.run(ctx, b) })
}

// runSteps runs steps one after the other, by their function or by their statements, and returns the units whose rows
// were refused. It ends after the fences if one of them failed: nothing is kept then, and a row of the winner would
// look like a duplicate.
func runSteps(steps []step, function func(*step) error, run func(*boundStatement) (missing []int, err error)) (
	failed map[int]bool, err error) {
	for i := range steps {
		s := &steps[i]
		if len(failed) > 0 && !s.kind.refusable {
			break
		}
		if s.kind.run != nil {
			err = function(s)
		}
		for j := 0; j < len(s.statements) && err == nil; j++ {
			var missing []int
			missing, err = run(&s.statements[j])
			for _, m := range missing {
				if failed == nil {
					failed = map[int]bool{}
				}
				failed[s.units[m]] = true
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.writes[0].Table(), err)
		}
	}
	return failed, nil
}

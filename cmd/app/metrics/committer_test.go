package metrics

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/http/edge"
)

// durable commits everything, unless it fails.
type durable struct{ err error }

type inside struct{}

func (d durable) Commit(context.Context, ...commit.Write) error { return d.err }

func (d durable) InTx(ctx context.Context, fn func(context.Context) error) error {
	if ctx.Value(inside{}) != nil {
		return fn(ctx)
	}
	ctx, committed := commit.Hooks(context.WithValue(ctx, inside{}, true))
	if err := fn(ctx); err != nil {
		return err
	}
	if d.err == nil {
		committed()
	}
	return d.err
}

// Every end is counted once, under its own name, and only when it is durable.
func TestMetricsCommitter(t *testing.T) {
	ended := func(state challenge.State, why challenge.Reason, o audit.Outcome) []commit.Write {
		c := challenge.Challenge{ID: "c", State: state, Body: challenge.Body{Reason: why}}
		return []commit.Write{challenge.Update{Challenge: c}, audit.Record{Target: "c", Outcome: o}}
	}
	for want, writes := range map[string][]commit.Write{
		"":         ended(challenge.Executing, challenge.NotClosed, audit.Success),
		completed:  ended(challenge.Done, challenge.NotClosed, audit.Success),
		failed:     ended(challenge.Done, challenge.NotClosed, audit.Refused),
		denied:     ended(challenge.Denied, challenge.NotClosed, audit.Refused),
		locked:     ended(challenge.Closed, challenge.TooManyWrong, audit.Refused),
		withdrawn:  ended(challenge.Closed, challenge.CredentialsChanged, audit.Refused),
		superseded: {challenge.Supersede{ID: "c"}},
	} {
		in := NewCommitter(durable{})
		other := NewCommitter(durable{errors.New("away")})
		for _, c := range []*Committer{in, other} {
			c.Commit(t.Context(), writes...)
			c.InTx(t.Context(), func(ctx context.Context) error {
				return c.InTx(ctx, func(ctx context.Context) error { return c.Commit(ctx, writes...) })
			})
			c.InTx(t.Context(), func(ctx context.Context) error {
				c.Commit(ctx, writes...)
				return errors.New("it rolls back")
			})
		}
		for outcome, n := range in.Ended {
			if times := map[bool]int64{true: 2}[outcome == want]; n.Load() != times {
				t.Errorf("%q counts %d for %q, want %d", outcome, n.Load(), want, times)
			}
			if n := other.Ended[outcome].Load(); n != 0 {
				t.Errorf("%q counts %d that never happened", outcome, n)
			}
		}
	}
	in := NewCommitter(durable{})
	in.Commit(t.Context(), challenge.Insert{}, outbox.Add{}, outbox.Add{Message: outbox.Message{State: outbox.Discarded}})
	if in.Started.Load() != 1 || in.Discarded.Load() != 1 {
		t.Errorf("%d started, %d discarded", in.Started.Load(), in.Discarded.Load())
	}
}

// Labels that differ only in spaces share a series: two of one name would fail the whole scrape.
func TestRulesOfOneNameShareASeries(t *testing.T) {
	m := New("", "")
	m.PerRule("shared", "Help.", maps.All(map[string]int64{"login": 1, "login ": 2, "other": 4}))
	sums := map[string]float64{}
	for _, f := range storetest.Value(m.Gather())(t) {
		for _, one := range f.GetMetric() {
			if f.GetName() == "shared" {
				sums[one.GetLabel()[0].GetValue()] = one.GetCounter().GetValue()
			}
		}
	}
	storetest.Same(t, sums, map[string]float64{"login": 3, "other": 4})
}

// Counting a request allocates nothing after the first one of its kind.
func TestObservingAllocatesNothing(t *testing.T) {
	m := New("", "")
	a := edge.Answered{Key: "POST /auth/login", Status: 200, Took: time.Millisecond}
	m.Observe(a)
	if n := testing.AllocsPerRun(1000, func() { m.Observe(a) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"castellan/cluster"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/stepup"
)

// oneRow is the store of one challenge. commit decides the result of a unit.
type oneRow struct {
	challenge.Store
	row     challenge.Challenge
	outcome []byte
	commit  func(writes []commit.Write) error
}

func (s *oneRow) Load(context.Context, string) (challenge.Challenge, error) { return s.row, nil }

func (s *oneRow) Budget(context.Context, string, challenge.Flow) (challenge.Budget, error) {
	return challenge.Budget{}, nil
}

func (s *oneRow) Outcome(context.Context, string) (challenge.Outcome, error) {
	return challenge.Outcome{Sealed: s.outcome}, nil
}

func (s *oneRow) Account(context.Context, string) (challenge.Account, error) {
	return challenge.Account{}, nil
}

func (s *oneRow) Live(string, string, int64) bool { return true }

func (s *oneRow) InTx(context.Context, func(context.Context) error) error {
	return errors.New("unused")
}

func (s *oneRow) Commit(_ context.Context, writes ...commit.Write) error { return s.commit(writes) }

// apply executes the writes of a unit.
func (s *oneRow) apply(writes []commit.Write) {
	for _, w := range writes {
		switch w := w.(type) {
		case challenge.Update:
			s.row = w.Challenge
			s.row.Version++
		case challenge.Record:
			s.outcome = w.Sealed
		}
	}
}

// The actor shows nothing of a step before the step is in the rows. That includes the time of the commit, a failed
// commit and a commit with an unknown result.
func TestStepShowsAfterCommit(t *testing.T) {
	sum := []byte("sum")
	refused := fault.New(fault.Unavailable, "no database")
	for name, c := range map[string]struct {
		err   error // of the commit
		saved bool  // whether the rows hold the step
		told  fault.Code
	}{
		"success":               {nil, true, ""},
		"failure":               {refused, false, fault.Unavailable},
		"late":                  {fmt.Errorf("unit: %w", context.DeadlineExceeded), false, fault.Unavailable},
		"unknown, not saved":    {commit.ErrUnknown, false, fault.Internal},
		"unknown, but saved":    {commit.ErrUnknown, true, fault.Internal},
		"fenced, row unchanged": {commit.ErrFenced, false, fault.Unavailable},
		"fenced, by the other":  {commit.ErrFenced, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var a *challengeActor
			ends := time.Now().Add(time.Minute).UnixMilli()
			method := challenge.Method{ID: "m", Name: challenge.SMS, ExpiresAt: ends,
				Digest: challenge.Digest{Key: "k", Sum: sum}}
			s := &oneRow{row: challenge.Challenge{ID: "c", UserID: "u", Action: "LOGIN", ExpiresAt: ends, Version: 1,
				Body: challenge.Body{Required: 1, Methods: []challenge.Method{method}}}}
			s.commit = func(writes []commit.Write) error {
				if a.outcome != nil || a.state.State != challenge.Pending || a.budget != nil && a.budget.Version != 0 {
					t.Errorf("before the commit: outcome %q, state %v, budget %+v", a.outcome, a.state.State, a.budget)
				}
				if !slices.ContainsFunc(writes, func(w commit.Write) bool { _, is := w.(challenge.Record); return is }) {
					t.Errorf("the unit has no outcome: %+v", writes)
				}
				if c.saved {
					s.apply(writes)
				}
				return c.err
			}
			login := func(context.Context, challenge.Execution) (challenge.Result, []commit.Write, error) {
				return challenge.Result{Success: true}, nil, nil
			}
			d := &Deps{Store: s, Commit: s, Accounts: s, Sessions: s,
				Actions: challenge.Actions{"LOGIN": {Code: "LOGIN", Build: login}}, Rules: challenge.DefaultRules(),
				Idle: time.Minute, IO: time.Second, WarmCache: new(WarmCache), Now: time.Now, Log: slog.New(slog.DiscardHandler),
				Seal: func(plain, _ []byte) []byte { return plain }}
			node := cluster.Solo(d.Log)
			t.Cleanup(func() { node.Stop(context.Background()) })
			node.Register(cluster.Kind{Name: KindChallenge, New: func() actor.Actor {
				a = &challengeActor{d: d}
				return a
			}})
			client := Client{Node: node, WarmCache: d.WarmCache, Now: time.Now}
			outcomes := 0 // sent to sockets
			client.Listen(func(n stepup.News) {
				outcomes += len(slices.DeleteFunc(n.Events, func(e stepup.Event) bool { return e.Outcome == nil }))
			})
			if _, _, err := client.Subscribe(t.Context(), "c", 1, 0); err != nil {
				t.Fatal(err)
			}
			answer := challenge.Answer{MethodID: "m", Method: challenge.SMS, Digests: []challenge.Digest{{Key: "k", Sum: sum}}}
			got, err := client.Complete(t.Context(), "c", answer, time.Second, audit.By{})
			if fault.CodeOf(err) != c.told || (err == nil) != (got.Outcome != nil) {
				t.Errorf("completed: %+v, %v; want %q", got, err, c.told)
			}
			got, err = client.Result(t.Context(), "c", 0)
			if c.saved != (got.Outcome != nil) || !c.saved && fault.CodeOf(err) != fault.ChallengeNotCompleted {
				t.Errorf("afterwards: %+v, %v", got, err)
			}
			if outcomes > 1 || outcomes == 1 && !c.saved {
				t.Errorf("sockets got %d outcomes", outcomes)
			}
		})
	}
}

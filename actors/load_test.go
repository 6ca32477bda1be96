package actors

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"castellan/cluster"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// badStore is a store of one challenge whose reads fail while bad is set.
type badStore struct {
	*oneRow
	bad   atomic.Bool
	loads atomic.Int64
}

var errBad = fault.New(fault.Unavailable, "no database")

func (s *badStore) Load(ctx context.Context, id string) (challenge.Challenge, error) {
	s.loads.Add(1)
	// The row of a completed challenge can still be read; its outcome cannot.
	if s.bad.Load() && s.row.State != challenge.Done {
		return challenge.Challenge{}, errBad
	}
	return s.oneRow.Load(ctx, id)
}

func (s *badStore) Outcome(ctx context.Context, id string) (challenge.Outcome, error) {
	if s.bad.Load() {
		return challenge.Outcome{}, errBad
	}
	return s.oneRow.Outcome(ctx, id)
}

// ownerOf starts a node that owns the challenge of a store.
func ownerOf(t *testing.T, state challenge.State) (*badStore, Client) {
	s := &badStore{oneRow: &oneRow{outcome: []byte("sealed"), row: challenge.Challenge{
		ID: "c", UserID: "u", Action: "LOGIN", State: state, Version: 1,
		ExpiresAt: time.Now().Add(time.Minute).UnixMilli(),
	}}}
	d := &Deps{Store: s, Commit: s, Accounts: s, Sessions: s, Actions: challenge.Actions{}, Unclustered: true,
		Rules: challenge.DefaultRules(), Idle: time.Minute, IO: time.Second, Now: time.Now, WarmCache: new(WarmCache),
		Log: slog.New(slog.DiscardHandler), Seal: func(plain, _ []byte) []byte { return plain }}
	node := cluster.Solo(d.Log)
	t.Cleanup(func() { node.Stop(context.Background()) })
	node.Register(cluster.Kind{Name: KindChallenge, New: func() actor.Actor { return &challengeActor{d: d} }})
	return s, Client{Node: node, WarmCache: d.WarmCache, Now: time.Now}
}

// If an owner reads the row of a challenge but not its outcome, the next call reads both again. A completed challenge
// is not closed.
func TestOutcomeIsReadAgain(t *testing.T) {
	s, client := ownerOf(t, challenge.Done)
	s.bad.Store(true)
	_, err := client.Result(t.Context(), "c", 0)
	storetest.Wants(t, err, fault.Unavailable)
	s.bad.Store(false)
	storetest.Equal(t, string(storetest.Value(client.Result(t.Context(), "c", 0))(t).Outcome), "sealed", "afterwards")
}

// A caller whose deadline has passed gets an answer even if the rows cannot be read. Otherwise its timer would fire in
// a busy loop.
func TestWaiterLeavesWithoutDatabase(t *testing.T) {
	s, client := ownerOf(t, challenge.Pending)
	_, err := client.Result(t.Context(), "c", 0)
	storetest.Wants(t, err, fault.ChallengeNotCompleted)
	before := s.loads.Load()
	time.AfterFunc(20*time.Millisecond, func() { s.bad.Store(true) })
	_, err = client.Result(t.Context(), "c", 100*time.Millisecond)
	storetest.Wants(t, err, fault.Unavailable)
	time.Sleep(20 * time.Millisecond)
	if n := s.loads.Load() - before; n > 5 {
		t.Errorf("%d reads for one caller", n)
	}
}

// An owner ignores a command whose caller has stopped waiting.
func TestLateCommandsAreIgnored(t *testing.T) {
	s, client := ownerOf(t, challenge.Pending)
	client.Now = func() time.Time { return time.Now().Add(-patience - time.Second) }
	for _, call := range []func(ctx context.Context) error{
		func(ctx context.Context) error { _, err := client.Result(ctx, "c", 0); return err },
		func(ctx context.Context) error { _, _, err := client.Subscribe(ctx, "c", 1, 0); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		storetest.Wants(t, call(ctx), fault.Unavailable)
		cancel()
	}
	storetest.Equal(t, s.loads.Load(), 0, "reads")
}

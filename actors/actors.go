// Package actors gives each challenge and each user one owner in the cluster. The owner orders the messages, runs the
// timers and caches the row. An actor here is a shell around a state machine of package domain. It loads, decides,
// saves under the row's fence, swaps its state, publishes, answers and arms one timer, in this order. The actor itself
// decides nothing, and a step that was not saved changes nothing.
//
// The row is the source of truth. A second activation during a network split can waste work, but the fence keeps it
// harmless. Start reading at Client, which is how the rest of the program reaches the actors, then challenge.go.
package actors

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/stepup"
)

// The kinds of actor.
const (
	KindChallenge = "challenge"
	KindUser      = "user"
	KindProbe     = "probe"
)

// Hub is the name under which a node receives ChallengeNews for its sockets.
const Hub = "hub"

// Deps are the dependencies that the actors of a node share.
type Deps struct {
	Store   challenge.Store
	Outbox  outbox.Store
	Commit  commit.Committer
	Actions challenge.Actions
	Rules   challenge.Rules
	// WarmCache holds the new challenges that this node's Client has stored.
	WarmCache *WarmCache
	// Uses has an entry for each method whose accepted answers consume something.
	Uses map[challenge.Name]Uses
	// Accounts reads the current user of a challenge.
	Accounts stepup.Accounts
	// Guessed returns the writes that notify the owner of a row of wrong values and switch the factor off. The account
	// is the challenge's, or empty for a decoy.
	Guessed  func(c challenge.Challenge, to challenge.Account, n challenge.Name, row int, ip string) []commit.Write
	Sessions stepup.Sessions
	// Seal and Open are the functions of the keyring.
	Seal func(plain, ad []byte) []byte
	Open func(sealed, ad []byte) ([]byte, error)
	// Mismatch counts an execution that was refused because the command or the intent was changed; nil counts none.
	Mismatch func()
	// Unclustered reports that processes outside this cluster may serve requests from the same rows.
	Unclustered bool
	// Grace is how long an outcome is kept after its challenge ends: until p-auth expires.
	Grace time.Duration
	// Idle is how long an idle actor stays active; 0 means 30 s.
	Idle time.Duration
	// IO is the timeout for the reads and writes of one step; 0 means 10 s.
	IO  time.Duration
	Now func() time.Time
	Log *slog.Logger
}

// Uses returns the writes that consume what an answer to c needs. The writes are fenced: they fail when it is already
// consumed or belongs to another user.
type Uses func(c challenge.Challenge, use challenge.Use) []commit.Write

// Kinds returns the kinds of actor of a node with these dependencies.
func Kinds(d Deps) []cluster.Kind {
	d.Idle, d.IO = cmp.Or(d.Idle, 30*time.Second), cmp.Or(d.IO, 10*time.Second)
	return []cluster.Kind{
		{Name: KindChallenge, Rows: true, New: func() actor.Actor { return &challengeActor{d: &d} }},
		{Name: KindUser, Rows: true, New: func() actor.Actor { return &userActor{d: &d} }},
		{Name: KindProbe, New: func() actor.Actor { return probe{} }},
		{Name: KindPresence, New: func() actor.Actor { return &presenceActor{now: d.Now} }},
	}
}

// io bounds the reads and writes of a step that was requested within ctx.
func (d *Deps) io(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.IO)
}

// late reports whether a message is a command whose caller has stopped waiting. The actor ignores such a command,
// because its caller has already received an error.
func (d *Deps) late(msg any) bool {
	m, is := msg.(interface{ GetDeadline() int64 })
	return is && m.GetDeadline() > 0 && d.Now().UnixMilli() > m.GetDeadline()
}

// refuse answers with a fault. Any other error is logged and hidden from the caller.
func (d *Deps) refuse(to cluster.Sender, id string, err error) {
	to.Reply(d.refusal(id, err))
}

func (d *Deps) refusal(id string, err error) *pb.Refusal {
	if errors.Is(err, stepup.OutdatedInput()) {
		return &pb.Refusal{Code: overtaken, AttemptsLeft: -1}
	}
	f := asFault(err)
	if f == nil {
		d.Log.Error("actor step failed", "id", id, "err", err)
		f = fault.Unexpected(err)
	}
	r := &pb.Refusal{Code: string(f.Code), Message: f.Message, Field: f.Field, RetryAfterMs: f.RetryAfter.Milliseconds(),
		AttemptsLeft: -1}
	if f.AttemptsLeft != nil {
		r.AttemptsLeft = int32(*f.AttemptsLeft)
	}
	return r
}

// probe answers a Probe, for readiness checks.
type probe struct{}

func (probe) Receive(c actor.Context) {
	if m, ok := c.Message().(*pb.Probe); ok {
		c.Respond(m)
	}
}

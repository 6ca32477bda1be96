package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	protoactor "github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/proof/stepup"
)

// Client is how the rest of the program reaches the actors. It implements the ports of domain/proof/stepup
// over a node. It is safe for concurrent use.
type Client struct {
	Node      *cluster.Node
	WarmCache *WarmCache // that of the node's Deps
	Now       func() time.Time
}

var (
	_ stepup.Challenges = Client{}
	_ stepup.UserGate   = Client{}
	_ stepup.Feed       = Client{}
)

// patience is how long a caller waits for a step, without the wait for an action or an outcome.
const patience = 10 * time.Second

// deadline returns the deadline of a command, after which its actor ignores it.
func (c Client) deadline() int64 { return c.Now().Add(patience).UnixMilli() }

// ask calls an actor and returns its answer as T; a Refusal is returned as a fault.
func ask[T proto.Message](ctx context.Context, c Client, kind, id string, wait time.Duration,
	command proto.Message) (answer T, err error) {
	reply, err := c.Node.Cluster().Request(id, kind, command, cluster.Within(ctx), protoactor.WithTimeout(patience+wait))
	if err != nil {
		return answer, unreachable(err)
	}
	switch m := reply.(type) {
	case T:
		return m, nil
	case *pb.Refusal:
		if m.Code == overtaken {
			return answer, stepup.OutdatedInput()
		}
		return answer, faultOf(m)
	}
	return answer, fmt.Errorf("actors: %s answered with %T", kind, reply)
}

// unreachable is the error for a call without an answer. Unless the error is cluster.NeverSent, the step may have been
// executed; every command is safe to repeat.
func unreachable(err error) error {
	f := fault.New(fault.Unavailable, "the service could not answer in time; try again").After(time.Second)
	switch {
	case errors.Is(err, cluster.ErrBusy):
		f = fault.New(fault.Overloaded, "too many requests are waiting; try again").After(time.Second)
	case errors.Is(err, cluster.ErrStopped):
		f = fault.New(fault.Draining, "the service is stopping").After(time.Second)
	}
	return fmt.Errorf("%w: %w", f, err)
}

// Probe makes a round trip through the node.
func (c Client) Probe(ctx context.Context) error {
	_, err := c.Node.Cluster().Request(c.Node.Address(), KindProbe, &pb.Probe{}, cluster.Within(ctx))
	return err
}

// send sends a message to an actor and does not wait. The message may be lost.
func send(n *cluster.Node, kind, id string, m proto.Message) {
	if pid := n.Cluster().Get(id, kind); pid != nil {
		n.Cluster().ActorSystem.Root.Send(pid, m)
	}
}

func (c Client) Prime(made challenge.Insert) {
	if c.Node.Owns(KindChallenge, made.ID) {
		c.WarmCache.put(made)
	} else {
		send(c.Node, KindChallenge, made.ID, prime(made))
	}
}

// Refresh has the owner of a challenge read its row again. An inactive owner reads the row when it is activated. If it
// is on another node it is activated now, because that node may have the challenge in its WarmCache.
func (c Client) Refresh(id string) {
	if !c.Node.Owns(KindChallenge, id) {
		c.Resume(id)
		return
	}
	c.WarmCache.take(id)
	c.Node.SendToActive(KindChallenge, id, &pb.ChallengeRefresh{})
}

// Resume activates the owner of a challenge whose action has not reported.
func (c Client) Resume(id string) { send(c.Node, KindChallenge, id, &pb.ChallengeRefresh{}) }

func (c Client) Complete(ctx context.Context, id string, a challenge.Answer, wait time.Duration,
	by audit.By) (stepup.Answered, error) {
	m := &pb.ChallengeComplete{MethodId: a.MethodID, Method: string(a.Method), Verdict: int32(a.Verdict),
		WaitMs: wait.Milliseconds(), Deadline: c.deadline(), RequestId: by.RequestID, Ip: by.IP, ActorId: by.UserID,
		Intent: a.Intent, Remember: a.Remember}
	if a.Proof != nil {
		m.Proof = &pb.Proof{DeviceId: a.Proof.DeviceID, Jws: a.Proof.JWS, Jwk: a.Proof.JWK}
	}
	for _, d := range a.Digests {
		m.Digests = append(m.Digests, &pb.Digest{Key: d.Key, Sum: d.Sum})
	}
	if a.Use != nil {
		m.Claim = &pb.Claim{Key: a.Use.Key, Value: a.Use.Value}
	}
	return c.outcome(ctx, id, wait, m)
}

// outcome sends a command whose answer may have the outcome.
func (c Client) outcome(ctx context.Context, id string, wait time.Duration, m proto.Message) (stepup.Answered, error) {
	r, err := ask[*pb.ChallengeAnswered](ctx, c, KindChallenge, id, wait, m)
	if err != nil {
		return stepup.Answered{}, err
	}
	return stepup.Answered{Action: r.Action, Final: r.Final, Outcome: r.Outcome}, nil
}

func (c Client) User(ctx context.Context, id string) (string, error) {
	if h, _, ok := c.WarmCache.holder(id); ok {
		return h.UserID, nil
	}
	h, err := c.Holder(ctx, id)
	return h.UserID, err
}

// Holder returns the user of a challenge and the filter that applies to its requests. It returns CHALLENGE_NOT_FOUND if
// the challenge does not exist. For a challenge without an answer so far, the owner need not be called.
func (c Client) Holder(ctx context.Context, id string) (challenge.Holder, error) {
	if h, untouched, ok := c.WarmCache.holder(id); ok && untouched {
		return h, nil
	}
	r, err := ask[*pb.ChallengeUserIs](ctx, c, KindChallenge, id, 0, &pb.ChallengeUser{Deadline: c.deadline()})
	if err != nil {
		return challenge.Holder{}, err
	}
	return challenge.Holder{UserID: r.UserId, KeepsFilter: r.KeepsFilter, Filter: geo.Filter(r.Filter)}, nil
}

func (c Client) CheckRenew(ctx context.Context, id, methodID string, name challenge.Name) (stepup.Renewal, error) {
	r, err := ask[*pb.ChallengeRenewed](ctx, c, KindChallenge, id, 0, &pb.ChallengeRenew{MethodId: methodID,
		Method: string(name), Check: true, Deadline: c.deadline()})
	if err != nil {
		return stepup.Renewal{}, err
	}
	out := stepup.Renewal{UserID: r.UserId, Subject: r.Subject, Decoy: r.Decoy, Action: r.Challenge.Action,
		Language: r.Language, Template: r.Template,
		Generation: int(r.Generation), LifetimeMs: r.LifetimeMs, Proven: r.Proven, Brief: r.Brief}
	for _, m := range r.Challenge.Methods {
		if challenge.Name(m.Name).Typed() {
			out.Hint = m.Hint
		}
	}
	return out, nil
}

func (c Client) Renew(ctx context.Context, id, methodID string, name challenge.Name, d challenge.Digest,
	m outbox.Message, by audit.By) (challenge.Challenge, error) {
	r, err := ask[*pb.ChallengeRenewed](ctx, c, KindChallenge, id, 0, &pb.ChallengeRenew{MethodId: methodID,
		Method: string(name), Digest: &pb.Digest{Key: d.Key, Sum: d.Sum}, Message: toOutgoing(m), Deadline: c.deadline(),
		RequestId: by.RequestID, Ip: by.IP})
	if err != nil {
		return challenge.Challenge{}, err
	}
	return unview(r.Challenge), nil
}

func (c Client) Result(ctx context.Context, id string, wait time.Duration) (stepup.Answered, error) {
	return c.outcome(ctx, id, wait, &pb.ChallengeResult{WaitMs: wait.Milliseconds(), Deadline: c.deadline()})
}

func (c Client) Subscribe(ctx context.Context, id string, sockets, after int) (int, stepup.News, error) {
	r, err := ask[*pb.ChallengeSubscribed](ctx, c, KindChallenge, id, 0, &pb.ChallengeSubscribe{Node: c.Node.Address(),
		Sockets: int32(sockets), After: int32(after), Deadline: c.deadline()})
	if err != nil {
		return 0, stepup.News{}, err
	}
	return int(r.Refused), newsOf(r.News), nil
}

// Listen calls receive for the events of every challenge that this node has subscribed to. receive must not block.
func (c Client) Listen(receive func(stepup.News)) {
	c.Node.Listen(Hub, func(m proto.Message) {
		if n, ok := m.(*pb.ChallengeNews); ok {
			receive(newsOf(n))
		}
	})
}

// OnMove calls tell when challenges have moved to other owners, which have no subscription of this node's sockets. tell
// must not block.
func (c Client) OnMove(tell func(moved func(challengeID string) bool)) {
	c.Node.OnMove(func(moved func(kind, id string) bool) {
		c.WarmCache.Clear()
		tell(func(id string) bool { return moved(KindChallenge, id) })
	})
}

func newsOf(n *pb.ChallengeNews) stepup.News {
	out := stepup.News{ChallengeID: n.ChallengeId, Action: n.Action, Gone: n.Gone}
	for _, e := range n.Events {
		out.Events = append(out.Events, stepup.Event{Number: int(e.Number), MethodID: e.MethodId,
			Method: challenge.Name(e.Method), Outcome: e.Outcome})
	}
	return out
}

func (c Client) Reserve(ctx context.Context, userID string, r stepup.Reservation) (stepup.Grant, error) {
	m := &pb.UserReserve{ChallengeId: r.ChallengeID, Action: r.Action, ExpiresAt: r.ExpiresAt, Deadline: c.deadline(),
		MaxOpen: int32(r.MaxOpen), Caps: capsOf(r.Caps)}
	if p := r.Push; p != nil {
		m.Push = pushCaps(*p)
	}
	for _, s := range r.Sendings {
		m.Sendings = append(m.Sendings, sendingOf(s))
	}
	a, err := ask[*pb.UserReserved](ctx, c, KindUser, userID, 0, m)
	if err != nil {
		return stepup.Grant{}, err
	}
	return stepup.Grant{Supersede: a.Supersede, Send: a.Send, NoPush: a.NoPush, PushNumber: a.PushNumber,
		PushWait: time.Duration(a.PushWaitMs) * time.Millisecond}, nil
}

func (c Client) Send(ctx context.Context, userID string, s stepup.Sending, caps stepup.Caps) (bool, error) {
	a, err := ask[*pb.UserSent](ctx, c, KindUser, userID, 0, &pb.UserSend{Sending: sendingOf(s), Caps: capsOf(caps),
		Deadline: c.deadline()})
	if err != nil {
		return false, err
	}
	return a.Send, nil
}

func (c Client) DummyCall(ctx context.Context) error {
	if err := c.Probe(ctx); err != nil {
		return unreachable(err)
	}
	return nil
}

func sendingOf(s stepup.Sending) *pb.Sending {
	return &pb.Sending{Channel: string(s.Channel), Destination: s.Destination, Proven: s.Proven}
}

func capsOf(c stepup.Caps) *pb.Caps {
	return &pb.Caps{DestinationHour: int32(c.DestinationHour), DestinationDay: int32(c.DestinationDay),
		UserDay: int32(c.UserDay)}
}

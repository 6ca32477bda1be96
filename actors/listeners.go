package actors

import (
	"slices"
	"time"

	"castellan/actors/pb"
	"castellan/cluster"
)

// listener is a node with sockets that listen to the challenge.
type listener struct {
	node    string
	sockets int32
	until   time.Time // the node must subscribe again before that
}

const (
	maxSockets       = 5                // per challenge (D-SOCK-05)
	subscriptionLife = 75 * time.Second // hubs subscribe again every 20 s
)

// subscribe registers a node and returns the events after the last one that it has seen.
func (a *challengeActor) subscribe(c *cluster.Context, m *pb.ChallengeSubscribe) {
	err := a.current(c)
	if err == nil && !slices.ContainsFunc(a.nodes, func(l listener) bool { return l.node == m.Node }) {
		err = a.reread(c)
	}
	if err != nil {
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	}
	now := a.d.Now()
	others := int32(0)
	rest := a.nodes[:0]
	for _, l := range a.nodes {
		if l.node != m.Node && now.Before(l.until) {
			rest, others = append(rest, l), others+l.sockets
		}
	}
	a.nodes = rest
	refused := max(0, m.Sockets-(maxSockets-others))
	if n := m.Sockets - refused; n > 0 && (a.outcome != nil || !a.state.Ended(now)) {
		a.nodes = append(a.nodes, listener{node: m.Node, sockets: n, until: now.Add(subscriptionLife)})
	}
	news := a.news(int(m.After))
	news.Gone = a.outcome == nil && a.state.Ended(now)
	c.Reply(&pb.ChallengeSubscribed{Refused: refused, News: news})
}

// news returns the events after a number.
func (a *challengeActor) news(after int) *pb.ChallengeNews {
	n := &pb.ChallengeNews{ChallengeId: a.state.ID, Action: a.state.Action, ExpiresAt: a.state.ExpiresAt}
	done := a.state.CompletedMethods()
	for i, m := range done {
		if i >= after {
			n.Events = append(n.Events, &pb.Event{Number: int32(i + 1), MethodId: m.ID, Method: string(m.Name)})
		}
	}
	if a.outcome != nil && after <= len(done) {
		n.Events = append(n.Events, &pb.Event{Number: int32(len(done) + 1), Outcome: a.outcome})
	}
	return n
}

func (a *challengeActor) publish(c *cluster.Context, n *pb.ChallengeNews) {
	for _, l := range a.nodes {
		c.Node().Post(l.node, Hub, n)
	}
}

// dropListeners drops the nodes that did not subscribe again. If the challenge has ended without an outcome, it
// notifies the others and drops them too.
func (a *challengeActor) dropListeners(c *cluster.Context, now time.Time) {
	live := a.nodes[:0]
	for _, l := range a.nodes {
		if now.Before(l.until) {
			live = append(live, l)
		}
	}
	a.nodes = live
	if a.outcome == nil && a.state.Ended(now) {
		a.publish(c, &pb.ChallengeNews{ChallengeId: c.ID(), Action: a.state.Action, Gone: true})
		a.nodes = nil
	}
}

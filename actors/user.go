package actors

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
)

// userActor orders the decisions for one user: the open challenges and the number of sent messages. It writes nothing
// itself, so logins of one user do not fence each other. It reads its state from rows when it is activated.
type userActor struct {
	d       *Deps
	loaded  bool
	open    []reserved       // oldest first
	sent    []outbox.Sending // of the last day, oldest first; read when caps need it
	counted bool             // sent was read
	pushes  []challenge.Push // whose rows may not be written yet
	touched time.Time
	armed   bool
	ctx     context.Context // carries the trace of the current message; nil between messages
}

func (a *userActor) io() (context.Context, context.CancelFunc) { return a.d.io(a.ctx) }

// reserved is an admitted challenge. Its row may not be written yet.
type reserved struct {
	challenge.Ref
	at   time.Time
	next string // the challenge that closes this one when its row is written; "" for none
}

// settling is how long a reserved challenge, or its push, may be without a row before it is treated as never made.
const settling = 10 * time.Second

func (a *userActor) Receive(ctx actor.Context) {
	c := cluster.ContextOf(ctx)
	a.ctx = c.Background()
	a.receive(c, ctx.Message())
	a.ctx = nil
}

func (a *userActor) receive(c *cluster.Context, msg any) {
	now := a.d.Now()
	if _, timer := msg.(wake); !timer {
		a.touched = now
	}
	if a.d.late(msg) {
		msg = nil // its caller has an error already
	}
	switch m := msg.(type) {
	case *pb.UserReserve:
		a.reserve(c, now, m)
	case *pb.UserSend:
		if err := a.count(c.ID(), now, m.Caps, !m.Sending.Proven); err != nil {
			a.d.refuse(c.Sender(), c.ID(), err)
		} else {
			c.Reply(&pb.UserSent{Send: a.send(now, m.Sending, m.Caps)})
		}
	case wake:
		a.armed = false
		if now.Sub(a.touched) >= a.d.Idle && c.Passivate() {
			return
		}
	}
	if !a.armed {
		a.armed = true
		c.Self().After(a.d.Idle, wake{})
	}
}

func (a *userActor) reserve(c *cluster.Context, now time.Time, m *pb.UserReserve) {
	public := slices.ContainsFunc(m.Sendings, func(s *pb.Sending) bool { return !s.Proven })
	if err := errors.Join(a.load(c.ID(), now, public), a.count(c.ID(), now, m.Caps, public)); err != nil {
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	}
	reply := &pb.UserReserved{Send: make([]bool, len(m.Sendings))}
	counted := len(m.Sendings)
	for i, s := range m.Sendings {
		if reply.Send[i] = a.send(now, s, m.Caps); !reply.Send[i] {
			counted--
		}
	}
	if !public && counted < len(m.Sendings) { // the starter is refused, or requests each separately
		a.sent = a.sent[:len(a.sent)-counted]
	}
	a.open = slices.DeleteFunc(a.open, func(r reserved) bool { return now.UnixMilli() >= r.ExpiresAt })
	if m.MaxOpen > 0 && len(a.closed(m)) > 0 {
		if err := a.prune(now); err != nil {
			a.d.refuse(c.Sender(), c.ID(), err)
			return
		}
		reply.Supersede = a.closed(m)
		for i, r := range a.open {
			if slices.Contains(reply.Supersede, r.ID) {
				a.open[i].next = m.ChallengeId
			}
		}
	}
	if m.Push != nil {
		if err := a.push(c.ID(), now, m, reply); err != nil {
			a.d.refuse(c.Sender(), c.ID(), err)
			return
		}
	}
	a.open = append(a.open, reserved{challenge.Ref{ID: m.ChallengeId, Action: m.Action, CreatedAt: now.UnixMilli(),
		ExpiresAt: m.ExpiresAt}, now, ""})
	c.Reply(reply)
}

// push applies the bounds on pushes (SEC-16). Rows are read every time, because other owners decide about a push. If
// another owner of the user decides at the same time, both assign the same number, and only one of them commits. A
// later number may commit before an earlier one of any owner. A missing number counts as sent until its row can no
// longer arrive.
func (a *userActor) push(userID string, now time.Time, m *pb.UserReserve, reply *pb.UserReserved) error {
	rules := pushRules(m.Push)
	if rules == (challenge.PushRules{}) {
		return nil
	}
	ctx, cancel := a.io()
	defer cancel()
	if err := a.dropStoredPushes(ctx, now); err != nil {
		return err
	}
	// A push may be assigned until a later one has its row, and get its own row only then.
	since := now.Add(-2 * settling)
	rows, err := a.d.Store.Pushes(ctx, userID, rules.Most(), since)
	if err != nil {
		return err
	}
	all := slices.Concat(rows, a.pushes)
	all = append(all, challenge.Missing(all, since, rules.Most())...)
	if wait := rules.Wait(now, all); wait > 0 {
		reply.NoPush, reply.PushWaitMs = true, wait.Milliseconds()
		return nil
	}
	p := challenge.Push{ChallengeID: m.ChallengeId, UserID: userID, Number: challenge.NextPush(all),
		SentAt: now.UnixMilli()}
	reply.PushNumber = p.Number
	a.pushes = append(a.pushes, p)
	return nil
}

// dropStoredPushes drops the pushes whose rows exist, so that they count once, and those whose rows can no longer
// arrive. It is called before the rows are read: a row that arrives in between counts twice instead of never.
func (a *userActor) dropStoredPushes(ctx context.Context, now time.Time) error {
	a.pushes = slices.DeleteFunc(a.pushes, func(p challenge.Push) bool {
		return now.Sub(time.UnixMilli(p.SentAt)) > settling
	})
	if len(a.pushes) == 0 {
		return nil
	}
	ids := make([]string, len(a.pushes))
	for i, p := range a.pushes {
		ids[i] = p.ChallengeID
	}
	states, err := a.d.Store.States(ctx, ids)
	if err != nil {
		return err
	}
	a.pushes = slices.DeleteFunc(a.pushes, func(p challenge.Push) bool {
		_, there := states[p.ChallengeID]
		return there
	})
	return nil
}

// closed returns the challenges that a new one closes.
func (a *userActor) closed(m *pb.UserReserve) []string {
	var ids []string
	for _, r := range a.open {
		if r.Action == m.Action {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) < int(m.MaxOpen) {
		return nil
	}
	next := map[string]string{}
	for _, r := range a.open {
		next[r.ID] = r.next
	}
	return challenge.MakeRoom(ids, next, int(m.MaxOpen))
}

// load makes sure that the open challenges are loaded. For a starter without a proof the rows are always read. Accounts
// that do not exist are not cached, and the difference would reveal which ones exist (D-PWD-01).
func (a *userActor) load(userID string, now time.Time, public bool) error {
	if a.loaded && !public {
		return nil
	}
	ctx, cancel := a.io()
	defer cancel()
	refs, err := a.d.Store.Open(ctx, userID, now)
	if err != nil {
		return err
	}
	row := func(id string) bool {
		return slices.ContainsFunc(refs, func(r challenge.Ref) bool { return r.ID == id })
	}
	known := a.open
	a.open, a.loaded = nil, true
	for _, k := range known { // the rows of these may not be written yet
		if now.Sub(k.at) < settling && !row(k.ID) && !row(k.next) {
			a.open = append(a.open, k)
		}
	}
	for _, r := range refs {
		i := slices.IndexFunc(known, func(k reserved) bool { return k.ID == r.ID })
		if i < 0 {
			a.open = append(a.open, reserved{Ref: r})
		} else {
			a.open = append(a.open, known[i])
		}
	}
	a.written(row)
	slices.SortStableFunc(a.open, func(r, o reserved) int { return r.Compare(o.Ref) })
	return nil
}

// written gives the challenges that are still open, although the row of their closer exists, a place of their own: they
// were written after it.
func (a *userActor) written(row func(id string) bool) {
	for i := range a.open {
		if row(a.open[i].next) {
			a.open[i].next = ""
		}
	}
}

// prune drops the challenges that have ended. They do not notify the user's owner, because only a full list needs that
// information.
func (a *userActor) prune(now time.Time) error {
	ids := make([]string, len(a.open))
	for i, r := range a.open {
		ids[i] = r.ID
	}
	ctx, cancel := a.io()
	defer cancel()
	states, err := a.d.Store.States(ctx, ids)
	if err != nil {
		return err
	}
	a.written(func(id string) bool { _, exists := states[id]; return exists })
	a.open = slices.DeleteFunc(a.open, func(r reserved) bool {
		state, exists := states[r.ID]
		if !exists {
			return now.Sub(r.at) > settling
		}
		return state != challenge.Pending
	})
	return nil
}

func capped(caps *pb.Caps) bool {
	return caps.GetDestinationHour() > 0 || caps.GetDestinationDay() > 0 || caps.GetUserDay() > 0
}

// count loads the numbers of sent messages if there are caps; public is as for load.
func (a *userActor) count(userID string, now time.Time, caps *pb.Caps, public bool) error {
	if !capped(caps) || a.counted && !public {
		return nil
	}
	ctx, cancel := a.io()
	defer cancel()
	sent, err := a.d.Outbox.Sendings(ctx, userID, now.Add(-24*time.Hour))
	if err != nil || a.counted {
		return err
	}
	a.sent, a.counted = sent, true
	return nil
}

// send counts one message against the caps. Unproven starts together may use half of each cap, so the owner always has
// the other half (D-EXT-05).
func (a *userActor) send(now time.Time, s *pb.Sending, caps *pb.Caps) bool {
	if !capped(caps) {
		return true
	}
	day, hour := now.Add(-24*time.Hour).UnixMilli(), now.Add(-time.Hour).UnixMilli()
	a.sent = slices.DeleteFunc(a.sent, func(o outbox.Sending) bool { return o.At <= day })
	var user, inDay, inHour int
	for _, o := range a.sent {
		if o.Proven && !s.Proven {
			continue
		}
		user++
		if o.To(s.Destination) {
			inDay++
			if o.At > hour {
				inHour++
			}
		}
	}
	maxUser, maxDay, maxHour := int(caps.UserDay), int(caps.DestinationDay), int(caps.DestinationHour)
	if !s.Proven {
		maxUser, maxDay, maxHour = (maxUser+1)/2, (maxDay+1)/2, (maxHour+1)/2
	}
	if exceeds(user, maxUser) || exceeds(inDay, maxDay) || exceeds(inHour, maxHour) {
		return false
	}
	a.sent = append(a.sent, outbox.Sending{Destination: outbox.First(s.Destination), Proven: s.Proven,
		At: now.UnixMilli()})
	return true
}

func exceeds(n, limit int) bool { return limit > 0 && n >= limit }

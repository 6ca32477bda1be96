package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/people/presence"
)

// KindPresence is the kind of the presence rooms: one for each record that an operator has open. A room is not
// persisted. A room that moves to another node begins empty and fills with the next heartbeats.
const KindPresence = "presence"

var _ presence.Rooms = Client{}

func (c Client) Say(ctx context.Context, subject string, p presence.Person, leaves bool) ([]presence.Person, error) {
	r, err := ask[*pb.PresenceOthers](ctx, c, KindPresence, subject, 0,
		&pb.PresenceSay{UserId: p.UserID, Name: p.Name, Leaves: leaves})
	if err != nil {
		return nil, err
	}
	others := make([]presence.Person, len(r.Others))
	for i, o := range r.Others {
		others[i] = presence.Person{UserID: o.UserId, Name: o.Name, Since: time.UnixMilli(o.Since)}
	}
	return others, nil
}

// presenceActor is the room of one record. It becomes inactive when it is empty.
type presenceActor struct {
	now   func() time.Time
	room  presence.Room
	armed bool
}

func (a *presenceActor) Receive(ctx actor.Context) {
	c, now := cluster.ContextOf(ctx), a.now()
	switch m := ctx.Message().(type) {
	case *pb.PresenceSay:
		answer := &pb.PresenceOthers{}
		for _, o := range a.room.Say(now, presence.Person{UserID: m.UserId, Name: m.Name}, m.Leaves) {
			answer.Others = append(answer.Others, &pb.Present{UserId: o.UserID, Name: o.Name, Since: o.Since.UnixMilli()})
		}
		c.Reply(answer)
	case wake:
		a.armed = false
		if a.room.Empty(now) && c.Passivate() {
			return
		}
	}
	if !a.armed {
		a.armed = true
		c.Self().After(presence.Lifetime, wake{})
	}
}

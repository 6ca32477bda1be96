package app

import (
	"context"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/config"
	"castellan/domain/access/challenge"
	"castellan/domain/access/challenge/stepup"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	httpapi "castellan/http"
)

// Changes returns the changes of a command to records that nodes cache under a topic. The process of the command caches
// nothing.
func (d *Deployment) Changes(topic change.Topic) admin.Changes {
	return admin.Changes{Commit: d.DB, Now: time.Now, Topic: topic}
}

// changes returns the changes of a slice of this node. Other nodes are notified under the topic, and the copy of this
// node, unless it is nil, is updated.
func (s *service) changes(topic change.Topic, copy copies) admin.Changes {
	c := admin.Changes{Commit: s.commit, Now: time.Now, Topic: topic}
	if copy != nil {
		c.Follow = copy.Follow
	}
	return c
}

// Operate commits writes of the operator together with their audit row and a note. what names the action, the target,
// the account and the detail of the row.
func (d *Deployment) Operate(ctx context.Context, topic change.Topic, what audit.Record, writes ...commit.Write) error {
	done := admin.Done{Target: what.Target, UserID: what.UserID, Detail: what.Detail, Writes: writes}
	return d.Changes(topic).Do(ctx, audit.Operator, what.Action, func(context.Context) (admin.Done, error) {
		return done, nil
	})
}

// Notices creates notices to owners for a command; a running node delivers them.
func (d *Deployment) Notices(cfg config.Config) (challenge.Notices, error) {
	book, err := message.NewBook(httpapi.Title, nil)
	if err != nil {
		return nil, err
	}
	channels, err := adapters.Senders(cfg, nil, d.Ring.VAPIDs)
	return &stepup.Messenger{Config: stepupConfig(cfg), Book: book, Ring: d.Ring, Dispatch: offered(channels),
		Now: time.Now}, err
}

// offered is a Dispatcher that lists the channels and delivers nothing.
type offered map[message.Channel]message.Sender

func (o offered) Offers(c message.Channel) bool { return o[c] != nil }

func (offered) Deliver(outbox.Message, message.Rendered) {}

package app

import (
	"context"
	"time"

	"castellan/domain/admin"
	"castellan/domain/audit"
	"castellan/domain/change"
	"castellan/domain/commit"
)

// Changes are those that a command makes to records which nodes cache under a
// topic. The process of the command caches nothing.
func (d *Deployment) Changes(topic change.Topic) admin.Changes {
	return admin.Changes{Commit: d.DB, Now: time.Now, Topic: topic}
}

// changes are those of a slice of this node: other nodes are told under the
// topic, and reload, unless it is nil, reads this node's copy.
func (s *service) changes(topic change.Topic, reload func(context.Context) error) admin.Changes {
	return admin.Changes{Commit: s.commit, Now: time.Now, Topic: topic, Reload: reload}
}

// Operate commits writes of the operator together with their audit row, of which
// what names the action, the target, the account and the detail, and a note.
func (d *Deployment) Operate(ctx context.Context, topic change.Topic, what audit.Record, writes ...commit.Write) error {
	done := admin.Done{Target: what.Target, UserID: what.UserID, Detail: what.Detail, Writes: writes}
	return d.Changes(topic).Do(ctx, audit.Operator, what.Action, func(context.Context) (admin.Done, error) {
		return done, nil
	})
}

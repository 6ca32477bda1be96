// Package challengetest helps tests of other packages with challenges: its notices are rows that no messenger
// renders. Start reading at Notices.
package challengetest

import (
	"slices"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
)

// Notices is a challenge.Notices whose rows show in plain text the destination of a notice, its kind and the address
// of its cause.
type Notices struct{ Now func() time.Time }

func (n Notices) Notice(to challenge.Account, k message.Kind, _ message.Values, ip string) []commit.Write {
	now := n.Now()
	return []commit.Write{outbox.Add{Message: outbox.Message{ID: id.New(now), UserID: to.UserID, Channel: message.MAIL,
		Destination: []byte{}, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		Payload: []byte(to.Mail + " " + string(k) + " " + ip)}}}
}

// Committed returns the committed notices, in the order of their texts.
func Committed(t *testing.T, store outbox.Store) (all []string) {
	t.Helper()
	ms := storetest.Value(store.Recent(t.Context(), nil, 0))(t)
	for _, m := range ms {
		all = append(all, string(m.Payload))
	}
	slices.Sort(all)
	return all
}

// Package challengetest has what tests of other slices need of challenges: notices that
// are rows and no messages. Start at Notices.
package challengetest

import (
	"slices"
	"testing"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
)

// Notices is a challenge.Notices whose rows tell in the clear where a notice goes, its
// kind and the address of its cause.
type Notices struct{ Now func() time.Time }

func (n Notices) Notice(to challenge.Account, k message.Kind, _ message.Values, ip string) []commit.Write {
	now := n.Now()
	return []commit.Write{outbox.Add{Message: outbox.Message{ID: id.New(now), UserID: to.UserID, Channel: message.MAIL,
		Destination: []byte{}, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		Payload: []byte(to.Mail + " " + string(k) + " " + ip)}}}
}

// Told are the notices that were committed, in the order of their texts.
func Told(t *testing.T, store outbox.Store) (all []string) {
	t.Helper()
	ms, err := store.Recent(t.Context(), nil, 0)
	storetest.Must(t, err)
	for _, m := range ms {
		all = append(all, string(m.Payload))
	}
	slices.Sort(all)
	return all
}

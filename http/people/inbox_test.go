package people_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/page"
	"castellan/domain/people/inbox"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpinbox "castellan/http/people/inbox"
	"castellan/http/rest"
)

// backlogs are the backlogs of queues; the others are empty.
type backlogs map[inbox.Queue]page.Backlog

func (b backlogs) Backlog(_ context.Context, q inbox.Queue) (page.Backlog, error) { return b[q], nil }

// A caller sees the queues whose lists the caller may read, and no other.
func TestInboxHasReadableQueuesOnly(t *testing.T) {
	oldest := time.UnixMilli(1_700_000_000_000)
	store := backlogs{inbox.Withdrawals: {Count: 1000, More: true, Oldest: oldest},
		inbox.Documents: {Count: 7, Oldest: oldest}}
	shows := func(who rest.Caller, endpoint string) bool {
		return who.UserID == "admin" && (strings.Contains(endpoint, "withdrawal") || strings.HasSuffix(endpoint, "approvals"))
	}
	s := apitest.Serve(t, edge.Options{}, httpinbox.Group{Store: store, Shows: shows})
	const read = "GET /inbox"
	s.Wants(read, "", 200, `{"data":[`+
		`{"queue":"withdrawals","count":1000,"more":true,"oldestAt":"2023-11-14T22:13:20.000Z"},`+
		`{"queue":"held","count":0,"more":false,"oldestAt":null},`+
		`{"queue":"approvals","count":0,"more":false,"oldestAt":null}]}`)
	s.As("u1").Wants(read, "", 200, `{"data":[]}`)
}

// Package inbox serves the extension that summarizes the queues of pending work.
package inbox

import (
	"context"

	"castellan/domain/people/inbox"
	"castellan/http/rest"
)

// Group serves the endpoint.
type Group struct {
	Store inbox.Store
	// Shows reports whether the caller may use an endpoint, as "GET /admin/list-users", for other users.
	Shows func(who rest.Caller, endpoint string) bool
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section("Extensions: inbox",
		rest.Get("/inbox", "Summarize the queues of pending work", rest.User, g.list).
			Doc("getInbox", "One entry for each queue whose list the caller may read for other users; the request itself "+
				"requires no permission. A count ends at 1000."),
	).Extended()
}

type entry struct {
	Queue string `json:"queue" enum:"documents,aml,deposits,withdrawals,held,approvals,deploys,vpn,applications"`
	Count int    `json:"count" doc:"pending entries, at most 1000" example:"79"`
	More  bool   `json:"more" doc:"there are more than count"`
	// OldestAt is null for an empty queue.
	OldestAt *rest.Time `json:"oldestAt" doc:"creation of the oldest entry, of held: its hold; null: none"`
}

func (entry) SchemaName() string { return "InboxQueue" }

func (g Group) list(ctx context.Context, who rest.Caller, _ rest.None) (out rest.Data[[]entry], err error) {
	out.Data = []entry{}
	for _, q := range inbox.Queues {
		if !g.Shows(who, q.Endpoint) {
			continue
		}
		b, err := g.Store.Backlog(ctx, q.Queue)
		if err != nil {
			return out, err
		}
		out.Data = append(out.Data, entry{string(q.Queue), b.Count, b.More, rest.At(b.Oldest)})
	}
	return out, nil
}

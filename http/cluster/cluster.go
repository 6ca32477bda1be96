// Package cluster serves the extension that shows administrators the nodes of the cluster and
// the active actors of the answering node (D-EXT-01).
package cluster

import (
	"context"

	"castellan/http/rest"
)

const section = "Extensions: cluster"

// Status is the cluster as the answering node sees it.
type Status struct {
	Node string `json:"node" doc:"the node that answered"`
	// Belongs is false while the node cannot confirm its membership. It serves no challenges then.
	Belongs     bool           `json:"belongs" doc:"false: membership unconfirmed; the node serves no challenges"`
	Members     []Member       `json:"members"`
	Activations map[string]int `json:"activations" doc:"active actors of this node by kind"`
	Moved       int64          `json:"moved" doc:"actors that this node took over after their owner released them"`
	HandedOver  int64          `json:"handedOver" doc:"actors of this node that other members took over"`
	Lapses      int64          `json:"lapses" doc:"number of times the node dropped its actors because belongs was false"`
	Pauses      []Pause        `json:"pauses" doc:"the last 20 pauses that the node noticed, newest first"`
}

// Member is a node of the cluster.
type Member struct {
	ID      string  `json:"id" doc:"id of this run of the process"`
	Address string  `json:"address"`
	Version string  `json:"version"`
	Leaving bool    `json:"leaving"`
	Share   float64 `json:"share" example:"0.34" doc:"fraction of all challenges and users that the member owns, 0 to 1"`
	Silent  int64   `json:"silentMs,omitempty" doc:"since its last sign of life; absent if it answers" example:"900"`
}

// Pause is a time in which a node did not answer.
type Pause struct {
	Member string    `json:"member" doc:"its id, or that of the answering node" example:"10.0.0.7:7946~1858c2"`
	Began  rest.Time `json:"began" doc:"the last sign of life before it" example:"2026-11-28T10:00:00.000Z"`
	Lasted int64     `json:"lastedMs" doc:"up to 200 ms more than the node was silent" example:"2140"`
	Gone   bool      `json:"gone" doc:"true: the member was given up while it was silent"`
}

// Group serves the endpoint.
type Group struct{ Status func() Status }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/cluster", "Get the cluster members and the active actors of this node", rest.Tenant, g.show).
			Doc("getCluster",
				"The cluster as the answering node sees it. To compare views, send the request to each node."),
	).For(rest.Admin).Extended()
}

func (g Group) show(context.Context, rest.Caller, rest.None) (rest.Data[Status], error) {
	return rest.Data[Status]{Data: g.Status()}, nil
}

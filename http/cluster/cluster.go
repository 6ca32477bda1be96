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
	Limits  *Limits `json:"limits" doc:"its part of the rate limits; null if it did not answer"`
	Silent  int64   `json:"silentMs,omitempty" doc:"since its last sign of life; absent if it answers" example:"900"`
}

// Limits is the part of a member in the rate limits.
type Limits struct {
	Keys      int   `json:"keys" doc:"counters that it keeps" example:"8000"`
	Owned     int64 `json:"owned" doc:"of the 1024 shards of counters: decided by it" example:"341"`
	Replica   int64 `json:"replica" doc:"shards that it keeps a copy of" example:"342"`
	Unsettled int64 `json:"unsettled" doc:"shards that it is about to take over or give away; soon 0" example:"0"`
	AsReplica int64 `json:"asReplica" doc:"requests that it decided for a silent member, since its start" example:"12"`
}

func (Limits) SchemaName() string { return "ClusterLimits" }

// Pause is a time in which a node did not answer.
type Pause struct {
	Member string    `json:"member" doc:"its id, or that of the answering node" example:"10.0.0.7:7946~1858c2"`
	Began  rest.Time `json:"began" doc:"the last sign of life before it" example:"2026-11-28T10:00:00.000Z"`
	Lasted int64     `json:"lastedMs" doc:"up to 200 ms more than the node was silent" example:"2140"`
	Gone   bool      `json:"gone" doc:"true: the member was given up while it was silent"`
}

// Group serves the endpoint.
type Group struct {
	Status func(context.Context) Status
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/cluster", "Get the cluster members and the active actors of this node", rest.Tenant, g.show).
			Doc("getCluster",
				"The cluster as the answering node sees it. To compare views, send the request to each node. Of the other "+
					"members it asks for their rate limits, for at most 500 ms."),
	).For(rest.Admin).Extended()
}

func (g Group) show(ctx context.Context, _ rest.Caller, _ rest.None) (rest.Data[Status], error) {
	return rest.Data[Status]{Data: g.Status(ctx)}, nil
}

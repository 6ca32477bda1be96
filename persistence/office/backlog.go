package office

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/office/foureyes"
	"castellan/domain/office/staffrequest"
	"castellan/persistence/engine"
)

// ApprovalBacklog is the query of the backlog of the pending requests for a second person that have not expired; see
// record.Table.Backlog.
func ApprovalBacklog(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
	return fourEyes.Backlog(ctx, db, most, "requested_at",
		fourEyesFilters(foureyes.Query{Status: foureyes.Pending, Now: db.Now()})...)
}

// DeployBacklog is the query of the backlog of the pending deploy requests; see record.Table.Backlog.
func DeployBacklog(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
	q := staffrequest.DeployQuery{Status: new(staffrequest.Pending)}
	return deploys.Backlog(ctx, db, most, "created_at", deployFilters(q)...)
}

// VPNBacklog is the query of the backlog of the pending VPN requests; see record.Table.Backlog.
func VPNBacklog(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
	q := staffrequest.VPNQuery{Status: new(staffrequest.Pending)}
	return vpns.Backlog(ctx, db, most, "created_at", vpnFilters(q)...)
}

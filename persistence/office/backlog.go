package office

import (
	"context"

	"castellan/domain/kit/page"
	"castellan/domain/office/foureyes"
	"castellan/domain/office/staffrequest"
	"castellan/persistence/engine"
)

// ApprovalBacklog counts the pending requests for a second person that have not expired, up to most.
func ApprovalBacklog(ctx context.Context, db *engine.DB, most int) (page.Backlog, error) {
	return fourEyes.Backlog(ctx, db, most, "requested_at",
		fourEyesFilters(foureyes.Query{Status: foureyes.Pending, Now: db.Now()})...)
}

// DeployBacklog counts the pending deploy requests, up to most.
func DeployBacklog(ctx context.Context, db *engine.DB, most int) (page.Backlog, error) {
	q := staffrequest.DeployQuery{Status: new(staffrequest.Pending)}
	return deploys.Backlog(ctx, db, most, "created_at", deployFilters(q)...)
}

// VPNBacklog counts the pending VPN requests, up to most.
func VPNBacklog(ctx context.Context, db *engine.DB, most int) (page.Backlog, error) {
	q := staffrequest.VPNQuery{Status: new(staffrequest.Pending)}
	return vpns.Backlog(ctx, db, most, "created_at", vpnFilters(q)...)
}

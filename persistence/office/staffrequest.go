package office

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/office/staffrequest"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// approvals implements staffrequest.Store of one sort.
type approvals[R, T, Q any] struct {
	db      *engine.DB
	rows    record.Table[R, T]
	filters func(Q) []record.Filter
}

func NewDeploys(db *engine.DB) staffrequest.Deploys {
	return approvals[deployRow, staffrequest.Deploy, staffrequest.DeployQuery]{db, deploys, deployFilters}
}

func NewVPNs(db *engine.DB) staffrequest.VPNs {
	return approvals[vpnRow, staffrequest.VPN, staffrequest.VPNQuery]{db, vpns, vpnFilters}
}

// approvalRow is what the rows of both sorts have.
type approvalRow struct {
	ID          int64 `bun:",pk,autoincrement"`
	Status      string
	Comment     string
	Type        string
	RequestorID string
	DeciderID   string
	CreatedAt   int64
	UpdatedAt   int64
}

type deployRow struct {
	bun.BaseModel `bun:"table:deploy_request,alias:d"`
	approvalRow

	ServiceName         string
	OriginalServiceName string
	BuildNumber         string
	Minutes             int64
}

type vpnRow struct {
	bun.BaseModel `bun:"table:vpn_request,alias:v"`
	approvalRow

	UserName string
	Name     string
	Surname  string
}

var approvalFixed = []string{"type", "requestor_id", "created_at"}

var deploys = record.Of(record.Table[deployRow, staffrequest.Deploy]{
	Order: record.Keyset{Columns: "id", Descending: true},
	Fixed: approvalFixed,
}, nil)

var vpns = record.Of(record.Table[vpnRow, staffrequest.VPN]{
	Order: record.Keyset{Columns: "id", Descending: true},
	Fixed: append([]string{"name", "surname"}, approvalFixed...),
}, nil)

func deployFilters(q staffrequest.DeployQuery) []record.Filter {
	return []record.Filter{record.Sent("id", q.ID), record.Sent("status", q.Status), record.Sent("service_name",
		q.ServiceName),
		record.Sent("original_service_name", q.OriginalServiceName), record.Sent("type", q.Type)}
}

func vpnFilters(q staffrequest.VPNQuery) []record.Filter {
	return []record.Filter{record.Sent("id", q.ID), record.Sent("status", q.Status), record.Sent("user_name", q.UserName),
		record.Sent("type", q.Type)}
}

func (s approvals[R, T, Q]) List(ctx context.Context, q Q, p page.Query[staffrequest.Place]) (page.Of[T], error) {
	return record.ListPage(ctx, s.db, s.rows, p, record.ByID, s.filters(q))
}

func (s approvals[R, T, Q]) Add(ctx context.Context, r T) (int64, error) {
	return s.rows.Add(ctx, s.db, r)
}

func (s approvals[R, T, Q]) Change(ctx context.Context, id int64, f func(T) (T, error)) error {
	return s.rows.Change(ctx, s.db, f, record.Is("id", id))
}

package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/office/staffrequest"
)

// approvals implements approval.Store of one sort.
type approvals[R, T, Q any] struct {
	db      *DB
	rows    table[R, T]
	filters func(Q) []filter
}

// NewDeploys returns the deploy requests kept in db.
func NewDeploys(db *DB) staffrequest.Deploys {
	return approvals[deployRow, staffrequest.Deploy, staffrequest.DeployQuery]{db, deploys, deployFilters}
}

// NewVPNs returns the VPN requests kept in db.
func NewVPNs(db *DB) staffrequest.VPNs {
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

func (r approvalRow) request() staffrequest.Request {
	return staffrequest.Request{ID: r.ID, Status: staffrequest.Status(r.Status), Comment: r.Comment, Type: r.Type,
		RequestorID: r.RequestorID, DeciderID: r.DeciderID, CreatedAt: at(r.CreatedAt), UpdatedAt: at(r.UpdatedAt)}
}

func approvalRowOf(r staffrequest.Request) approvalRow {
	return approvalRow{Status: string(r.Status), Comment: r.Comment, Type: r.Type, RequestorID: r.RequestorID,
		DeciderID: r.DeciderID, CreatedAt: ms(r.CreatedAt), UpdatedAt: ms(r.UpdatedAt)}
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

var deploys = table[deployRow, staffrequest.Deploy]{
	order: keyset{columns: "id", descending: true},
	fixed: approvalFixed,
	record: func(r deployRow) (staffrequest.Deploy, error) {
		return staffrequest.Deploy{Request: r.request(), ServiceName: r.ServiceName,
			OriginalServiceName: r.OriginalServiceName, BuildNumber: r.BuildNumber, Minutes: r.Minutes}, nil
	},
	row: func(d staffrequest.Deploy) deployRow {
		return deployRow{approvalRow: approvalRowOf(d.Request), ServiceName: d.ServiceName,
			OriginalServiceName: d.OriginalServiceName, BuildNumber: d.BuildNumber, Minutes: d.Minutes}
	},
}

var vpns = table[vpnRow, staffrequest.VPN]{
	order: keyset{columns: "id", descending: true},
	fixed: append([]string{"name", "surname"}, approvalFixed...),
	record: func(r vpnRow) (staffrequest.VPN, error) {
		return staffrequest.VPN{Request: r.request(), UserName: r.UserName, Name: r.Name, Surname: r.Surname}, nil
	},
	row: func(v staffrequest.VPN) vpnRow {
		return vpnRow{approvalRow: approvalRowOf(v.Request), UserName: v.UserName, Name: v.Name, Surname: v.Surname}
	},
}

func deployFilters(q staffrequest.DeployQuery) []filter {
	return []filter{sent("id", q.ID), sent("status", q.Status), sent("service_name", q.ServiceName),
		sent("original_service_name", q.OriginalServiceName), sent("type", q.Type)}
}

func vpnFilters(q staffrequest.VPNQuery) []filter {
	return []filter{sent("id", q.ID), sent("status", q.Status), sent("user_name", q.UserName), sent("type", q.Type)}
}

func approvalOrder(p staffrequest.Place) []any { return []any{p.ID} }

func (s approvals[R, T, Q]) List(ctx context.Context, q Q, p page.Query[staffrequest.Place]) (page.Of[T], error) {
	return listPage(ctx, s.db, s.rows, p, approvalOrder, s.filters(q))
}

func (s approvals[R, T, Q]) Add(ctx context.Context, r T) (int64, error) {
	return s.rows.add(ctx, s.db, r)
}

func (s approvals[R, T, Q]) Change(ctx context.Context, id int64, f func(T) (T, error)) error {
	return s.rows.change(ctx, s.db, f, is("id", id))
}

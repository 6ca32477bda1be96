package permit

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/domain/permit/resource"
	"castellan/persistence/account"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Resources struct{ db *engine.DB }

func NewResources(db *engine.DB) resource.Store { return Resources{db} }

// resourceLock is the key under which roles and the registry change.
const resourceLock = 0x7265736f75726365 // "resource"

type stampColumns struct {
	CreatedBy string
	CreatedAt int64
	UpdatedBy string
	UpdatedAt int64
}

type resourceTypeRow struct {
	bun.BaseModel `bun:"table:resource_type,alias:t"`

	ID         int64 `bun:",pk,autoincrement"`
	Context    string
	Code       string
	Name       string
	Status     int
	AllActions string
	stampColumns
}

type resourceRow struct {
	bun.BaseModel `bun:"table:resource,alias:r"`

	ID         int64 `bun:",pk,autoincrement"`
	Context    string
	Code       string
	Name       string
	Status     int
	TypeID     int64
	TypeCode   string `bun:",scanonly"`
	ParentID   int64
	AllActions string
	MenuItem   string
	stampColumns
}

type registeredRoleRow struct {
	bun.BaseModel `bun:"table:role,alias:o"`

	ID        int64 `bun:",pk,autoincrement"`
	Code      string
	Name      string
	CreatedAt int64
}

type grantRow struct {
	bun.BaseModel `bun:"table:role_resource_permission,alias:g"`

	ID           int64 `bun:",pk,autoincrement"`
	RoleID       int64
	ResourceID   int64
	Permission   string
	CreatedAt    int64
	RoleCode     string `bun:",scanonly"`
	ResourceCode string `bun:",scanonly"`
	Context      string `bun:",scanonly"`
}

type grantLogRow struct {
	bun.BaseModel `bun:"table:role_resource_permission_log,alias:l"`

	ID         int64 `bun:",pk,autoincrement"`
	RoleID     int64
	ResourceID int64
	Permission string
	CreatedAt  int64
}

var (
	resourceTypes = record.Of(record.Table[resourceTypeRow, resource.Type]{
		Fixed: []string{"created_by", "created_at"},
	}, record.Names{"AllActions": "Actions"})
	resources = record.Of(record.Table[resourceRow, resource.Resource]{
		Order: record.Keyset{Columns: "r.id"},
		Fixed: []string{"created_by", "created_at"},
		Join: func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.ColumnExpr("r.*, t.code AS type_code").Join("JOIN resource_type AS t ON t.id = r.type_id")
		},
	}, record.Names{"AllActions": "Actions"})
	roles  = record.Of(record.Table[registeredRoleRow, resource.Role]{}, nil)
	grants = record.Of(record.Table[grantRow, resource.Grant]{
		Order: record.Keyset{Columns: "g.id"},
		Join: func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.ColumnExpr("g.*, o.code AS role_code, r.code AS resource_code, r.context AS context").
				Join("JOIN role AS o ON o.id = g.role_id").Join("JOIN resource AS r ON r.id = g.resource_id")
		},
	}, nil)
	grantLog = record.Of(record.Table[grantLogRow, resource.LogEntry]{
		Order: record.Keyset{Columns: "id", Descending: true},
	}, nil)
	members = record.Of(record.Table[account.RoleRow, resource.Member]{
		Order: record.Keyset{Columns: "created_at, user_id, role", Descending: true},
	}, record.Names{"Role": "RoleCode"})
)

func (s Resources) Lock(ctx context.Context) error { return s.db.LockTx(ctx, resourceLock) }

func (s Resources) Types(ctx context.Context) ([]resource.Type, error) {
	return resourceTypes.List(ctx, s.db, record.Part{})
}

func (s Resources) Resources(ctx context.Context, of ...resource.Context) ([]resource.Resource, error) {
	return resources.List(ctx, s.db, record.Part{Where: []record.Filter{record.Among("r.context", of)}})
}

func (s Resources) Roles(ctx context.Context) ([]resource.Role, error) {
	return roles.List(ctx, s.db, record.Part{})
}

func (s Resources) Grants(ctx context.Context, q resource.GrantQuery) ([]resource.Grant, error) {
	return grants.List(ctx, s.db, record.Part{Where: []record.Filter{record.Sent("g.role_id", q.RoleID),
		record.Sent("g.resource_id", q.ResourceID)}})
}

func logFilters(q resource.LogQuery) []record.Filter {
	return []record.Filter{record.Sent("id", q.ID), record.Sent("role_id", q.RoleID), record.Sent("resource_id",
		q.ResourceID)}
}

func (s Resources) Log(ctx context.Context, q resource.LogQuery,
	p page.Query[resource.LogPlace]) (page.Of[resource.LogEntry], error) {
	return record.ListPage(ctx, s.db, grantLog, p, record.ByID, logFilters(q))
}

func memberFilters(q resource.MemberQuery) []record.Filter {
	return []record.Filter{record.Given("user_id", q.UserID), record.Given("role", q.RoleCode)}
}

func memberOrder(m resource.Member) []any {
	return []any{engine.Millis(m.CreatedAt), m.UserID, m.RoleCode}
}

func (s Resources) Members(ctx context.Context, q resource.MemberQuery,
	p page.Query[resource.Member]) (page.Of[resource.Member], error) {
	return record.ListPage(ctx, s.db, members, p, memberOrder, memberFilters(q))
}

func (s Resources) HeldByAnother(ctx context.Context, role, userID string, demo bool) (bool, error) {
	q := s.db.Conn(ctx).NewSelect().Model((*account.RoleRow)(nil)).Join("JOIN users AS u ON u.id = r.user_id").
		Where("r.role = ?", role).Where("r.user_id <> ?", userID).Where("u.status = ?", user.Active)
	if !demo {
		q = q.Where("NOT u.demo")
	}
	return engine.Read(ctx, s.db, q.Exists)
}

func (s Resources) AddType(ctx context.Context, t resource.Type) (int64, error) {
	return resourceTypes.Add(ctx, s.db, t)
}

func (s Resources) AddResource(ctx context.Context, r resource.Resource) (int64, error) {
	return resources.Add(ctx, s.db, r)
}

func (s Resources) AddRole(ctx context.Context, r resource.Role) (int64, error) {
	return roles.Add(ctx, s.db, r)
}

func (s Resources) SaveType(ctx context.Context, t resource.Type) error {
	return resourceTypes.Save(ctx, s.db, t, record.Is("id", t.ID))
}

func (s Resources) SaveResource(ctx context.Context, r resource.Resource) error {
	return resources.Save(ctx, s.db, r, record.Is("id", r.ID))
}

func (s Resources) RemoveType(ctx context.Context, id int64) error {
	return resourceTypes.Remove(ctx, s.db, record.Is("id", id))
}

func (s Resources) RemoveResource(ctx context.Context, id int64) error {
	return resources.Remove(ctx, s.db, record.Is("id", id))
}

func (s Resources) RemoveRole(ctx context.Context, id int64) error {
	return roles.Remove(ctx, s.db, record.Is("id", id))
}

func (s Resources) SetGrant(ctx context.Context, roleID, resourceID int64, p resource.Permission,
	now time.Time) (id int64, err error) {
	row := &grantRow{RoleID: roleID, ResourceID: resourceID, Permission: string(p), CreatedAt: engine.Millis(now)}
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		err := tx.NewInsert().Model(row).On("CONFLICT (role_id, resource_id) DO UPDATE").
			Set("permission = EXCLUDED.permission, created_at = EXCLUDED.created_at").Returning("id").Scan(ctx, &id)
		if err != nil {
			return err
		}
		return s.log(ctx, roleID, resourceID, p, now)
	})
	return id, err
}

func (s Resources) RemoveGrant(ctx context.Context, roleID, resourceID int64, now time.Time) error {
	return s.db.InTx(ctx, func(ctx context.Context) error {
		if err := grants.Remove(ctx, s.db, record.Is("role_id", roleID), record.Is("resource_id", resourceID)); err != nil {
			return err
		}
		return s.log(ctx, roleID, resourceID, resource.Revoked, now)
	})
}

func (s Resources) log(ctx context.Context, roleID, resourceID int64, p resource.Permission, now time.Time) error {
	_, err := grantLog.Add(ctx, s.db,
		resource.LogEntry{RoleID: roleID, ResourceID: resourceID, Permission: p, CreatedAt: now})
	return err
}

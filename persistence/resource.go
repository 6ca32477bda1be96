package persistence

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/fault"
	"castellan/domain/resource"
	"castellan/domain/user"
)

// Resources implements resource.Store.
type Resources struct{ db *DB }

var _ resource.Store = Resources{}

// NewResources returns the registry, the roles and the grants kept in db.
func NewResources(db *DB) Resources { return Resources{db} }

// resourceLock is the key under which roles and the registry change.
const resourceLock = 0x7265736f75726365 // "resource"

type stampColumns struct {
	CreatedBy string
	CreatedAt int64
	UpdatedBy string
	UpdatedAt int64
}

func stampOf(s resource.Stamp) stampColumns {
	return stampColumns{s.CreatedBy, ms(s.CreatedAt), s.UpdatedBy, ms(s.UpdatedAt)}
}

func (c stampColumns) stamp() resource.Stamp {
	return resource.Stamp{CreatedBy: c.CreatedBy, CreatedAt: at(c.CreatedAt), UpdatedBy: c.UpdatedBy, UpdatedAt: at(c.UpdatedAt)}
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

func rowOfType(t resource.Type) *resourceTypeRow {
	return &resourceTypeRow{ID: t.ID, Context: string(t.Context), Code: t.Code, Name: t.Name, Status: int(t.Status), AllActions: string(t.Actions),
		stampColumns: stampOf(t.Stamp)}
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

func rowOfResource(r resource.Resource) *resourceRow {
	return &resourceRow{ID: r.ID, Context: string(r.Context), Code: r.Code, Name: r.Name, Status: int(r.Status), TypeID: r.TypeID, ParentID: r.ParentID,
		AllActions: string(r.Actions), MenuItem: string(r.MenuItem), stampColumns: stampOf(r.Stamp)}
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

	ID         int64 `bun:",pk,autoincrement"`
	RoleID     int64
	ResourceID int64
	Permission string
	CreatedAt  int64
}

type grantLogRow struct {
	bun.BaseModel `bun:"table:role_resource_permission_log,alias:l"`

	ID         int64 `bun:",pk,autoincrement"`
	RoleID     int64
	ResourceID int64
	Permission string
	CreatedAt  int64
}

func anyJSON(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// Lock implements resource.Store.
func (s Resources) Lock(ctx context.Context) error { return s.db.LockTx(ctx, resourceLock) }

// Types implements resource.Store.
func (s Resources) Types(ctx context.Context) ([]resource.Type, error) {
	return listed(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("id") }, func(r resourceTypeRow) resource.Type {
		return resource.Type{ID: r.ID, Name: r.Name, Code: r.Code, Context: resource.Context(r.Context), Status: resource.Status(r.Status),
			Actions: anyJSON(r.AllActions), Stamp: r.stamp()}
	})
}

// Resources implements resource.Store.
func (s Resources) Resources(ctx context.Context) ([]resource.Resource, error) {
	return listed(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ColumnExpr("r.*, t.code AS type_code").Join("JOIN resource_type AS t ON t.id = r.type_id").Order("r.id")
	}, func(r resourceRow) resource.Resource {
		return resource.Resource{ID: r.ID, Code: r.Code, Name: r.Name, Status: resource.Status(r.Status), TypeID: r.TypeID, TypeCode: r.TypeCode,
			Context: resource.Context(r.Context), ParentID: r.ParentID, Actions: anyJSON(r.AllActions), MenuItem: anyJSON(r.MenuItem), Stamp: r.stamp()}
	})
}

// Roles implements resource.Store.
func (s Resources) Roles(ctx context.Context) ([]resource.Role, error) {
	return listed(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("id") }, func(r registeredRoleRow) resource.Role {
		return resource.Role{ID: r.ID, Code: r.Code, Name: r.Name, CreatedAt: at(r.CreatedAt)}
	})
}

type grantLine struct {
	grantRow     `bun:",extend"`
	RoleCode     string
	ResourceCode string
	Context      string
}

// Grants implements resource.Store.
func (s Resources) Grants(ctx context.Context) ([]resource.Grant, error) {
	return listed(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ColumnExpr("g.*, o.code AS role_code, r.code AS resource_code, r.context AS context").
			Join("JOIN role AS o ON o.id = g.role_id").Join("JOIN resource AS r ON r.id = g.resource_id").Order("g.id")
	}, func(r grantLine) resource.Grant {
		return resource.Grant{ID: r.ID, RoleID: r.RoleID, RoleCode: r.RoleCode, ResourceID: r.ResourceID, ResourceCode: r.ResourceCode,
			Context: resource.Context(r.Context), Permission: resource.Permission(r.Permission), CreatedAt: at(r.CreatedAt)}
	})
}

func logWhere(q *bun.SelectQuery, f resource.LogQuery) *bun.SelectQuery {
	for column, value := range map[string]int64{"id": f.ID, "role_id": f.RoleID, "resource_id": f.ResourceID} {
		if value != 0 {
			q = q.Where("? = ?", bun.Ident(column), value)
		}
	}
	return q
}

// Log implements resource.Store.
func (s Resources) Log(ctx context.Context, f resource.LogQuery) ([]resource.LogEntry, error) {
	return listed(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		if q = logWhere(q, f).Order("id DESC").Limit(int64(f.Limit)); f.Before > 0 {
			q = q.Where("id < ?", f.Before)
		}
		return q
	}, func(r grantLogRow) resource.LogEntry {
		return resource.LogEntry{ID: r.ID, RoleID: r.RoleID, ResourceID: r.ResourceID, Permission: resource.Permission(r.Permission), CreatedAt: at(r.CreatedAt)}
	})
}

// CountLog implements resource.Store.
func (s Resources) CountLog(ctx context.Context, f resource.LogQuery) (int, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	n, err := logWhere(s.db.Conn(ctx).NewSelect().Model((*grantLogRow)(nil)), f).Count(ctx)
	return int(n), translate(err)
}

func memberWhere(q *bun.SelectQuery, f resource.MemberQuery) *bun.SelectQuery {
	if f.UserID != "" {
		q = q.Where("user_id = ?", f.UserID)
	}
	if f.RoleCode != "" {
		q = q.Where("role = ?", f.RoleCode)
	}
	return q
}

// Members implements resource.Store.
func (s Resources) Members(ctx context.Context, f resource.MemberQuery) ([]resource.Member, error) {
	return listed(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		q = memberWhere(q, f).Order("created_at DESC", "user_id DESC", "role DESC").Limit(int64(f.Limit))
		if f.After != (resource.Member{}) {
			q = q.Where("(created_at, user_id, role) < (?, ?, ?)", ms(f.After.CreatedAt), f.After.UserID, f.After.RoleCode)
		}
		return q
	}, func(r roleRow) resource.Member {
		return resource.Member{UserID: r.UserID, RoleCode: r.Role, CreatedAt: at(r.CreatedAt)}
	})
}

// CountMembers implements resource.Store.
func (s Resources) CountMembers(ctx context.Context, f resource.MemberQuery) (int, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	n, err := memberWhere(s.db.Conn(ctx).NewSelect().Model((*roleRow)(nil)), f).Count(ctx)
	return int(n), translate(err)
}

// HeldByAnother implements resource.Store.
func (s Resources) HeldByAnother(ctx context.Context, role, userID string, demo bool) (bool, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	q := s.db.Conn(ctx).NewSelect().Model((*roleRow)(nil)).Join("JOIN users AS u ON u.id = r.user_id").
		Where("r.role = ?", role).Where("r.user_id <> ?", userID).Where("u.status = ?", user.Active)
	if !demo {
		q = q.Where("NOT u.demo")
	}
	held, err := q.Exists(ctx)
	return held, translate(err)
}

// AddType implements resource.Store.
func (s Resources) AddType(ctx context.Context, t resource.Type) (int64, error) {
	row := rowOfType(t)
	row.ID = 0
	return numbered(ctx, s.db, row)
}

// AddResource implements resource.Store.
func (s Resources) AddResource(ctx context.Context, r resource.Resource) (int64, error) {
	row := rowOfResource(r)
	row.ID = 0
	return numbered(ctx, s.db, row)
}

// AddRole implements resource.Store.
func (s Resources) AddRole(ctx context.Context, r resource.Role) (int64, error) {
	return numbered(ctx, s.db, &registeredRoleRow{Code: r.Code, Name: r.Name, CreatedAt: ms(r.CreatedAt)})
}

// SaveType implements resource.Store.
func (s Resources) SaveType(ctx context.Context, t resource.Type) error {
	return s.save(ctx, rowOfType(t))
}

// SaveResource implements resource.Store.
func (s Resources) SaveResource(ctx context.Context, r resource.Resource) error {
	return s.save(ctx, rowOfResource(r))
}

func (s Resources) save(ctx context.Context, row any) error {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	return translate(s.db.InTx(ctx, func(ctx context.Context) error {
		return touched(s.db.Conn(ctx).NewUpdate().Model(row).ExcludeColumn("created_by", "created_at").WherePK().Exec(ctx))
	}))
}

// RemoveType implements resource.Store.
func (s Resources) RemoveType(ctx context.Context, id int64) error {
	return s.remove(ctx, "resource_type", "id = ?", id)
}

// RemoveResource implements resource.Store.
func (s Resources) RemoveResource(ctx context.Context, id int64) error {
	return s.remove(ctx, "resource", "id = ?", id)
}

// RemoveRole implements resource.Store.
func (s Resources) RemoveRole(ctx context.Context, id int64) error {
	return s.remove(ctx, "role", "id = ?", id)
}

func (s Resources) remove(ctx context.Context, table, where string, args ...any) error {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	return translate(s.db.InTx(ctx, func(ctx context.Context) error {
		return touched(s.db.Conn(ctx).NewDelete().Table(table).Where(where, args...).Exec(ctx))
	}))
}

// SetGrant implements resource.Store.
func (s Resources) SetGrant(ctx context.Context, roleID, resourceID int64, p resource.Permission, now time.Time) (id int64, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	row := &grantRow{RoleID: roleID, ResourceID: resourceID, Permission: string(p), CreatedAt: ms(now)}
	err = s.db.InTx(ctx, func(ctx context.Context) error {
		err := s.db.Conn(ctx).NewInsert().Model(row).On("CONFLICT (role_id, resource_id) DO UPDATE").
			Set("permission = EXCLUDED.permission, created_at = EXCLUDED.created_at").Returning("id").Scan(ctx, &id)
		if err != nil {
			return err
		}
		return s.log(ctx, roleID, resourceID, p, now)
	})
	return id, translate(err)
}

// RemoveGrant implements resource.Store.
func (s Resources) RemoveGrant(ctx context.Context, roleID, resourceID int64, now time.Time) error {
	return s.db.InTx(ctx, func(ctx context.Context) error {
		if err := s.remove(ctx, "role_resource_permission", "role_id = ? AND resource_id = ?", roleID, resourceID); err != nil {
			return err
		}
		return s.log(ctx, roleID, resourceID, resource.Revoked, now)
	})
}

func (s Resources) log(ctx context.Context, roleID, resourceID int64, p resource.Permission, now time.Time) error {
	row := &grantLogRow{RoleID: roleID, ResourceID: resourceID, Permission: string(p), CreatedAt: ms(now)}
	_, err := s.db.Conn(ctx).NewInsert().Model(row).Returning("NULL").Exec(ctx)
	return translate(err)
}

// touched is RECORD_NOT_FOUND for a statement that met no row.
func touched(result interface{ RowsAffected() (int64, error) }, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return fault.New(fault.RecordNotFound, "no such record")
}

// listed reads rows R as records T.
func listed[R, T any](ctx context.Context, db *DB, shape func(*bun.SelectQuery) *bun.SelectQuery, record func(R) T) ([]T, error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	var rows []R
	if err := shape(db.Conn(ctx).NewSelect().Model(&rows)).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = record(r)
	}
	return out, nil
}

// numbered inserts a row and returns the id that it was given.
func numbered(ctx context.Context, db *DB, row any) (id int64, err error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	err = db.InTx(ctx, func(ctx context.Context) error {
		return db.Conn(ctx).NewInsert().Model(row).Returning("id").Scan(ctx, &id)
	})
	return id, translate(err)
}

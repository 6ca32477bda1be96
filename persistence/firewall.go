package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/firewall"
	"castellan/persistence/engine"
)

// Firewall implements firewall.Store.
type Firewall struct{ db *DB }

var _ firewall.Store = Firewall{}

// NewFirewall returns the rules kept in db.
func NewFirewall(db *DB) Firewall { return Firewall{db} }

type firewallRow struct {
	bun.BaseModel `bun:"table:firewall_rule,alias:f"`

	ID           int64 `bun:",pk,autoincrement"`
	AppID        string
	Label        string
	Type         string
	PeriodMs     *int64
	MaxRequests  *int64
	ExpireAt     int64
	EntityType   string
	Entities     string
	Resources    string
	AllEntities  bool
	AllResources bool
	Status       string
	DryRun       bool
	CreatedAt    int64
	UpdatedAt    int64
}

func (r *firewallRow) record() (firewall.Rule, error) {
	f := firewall.Rule{AppID: r.AppID, Label: r.Label, Type: firewall.Type(r.Type), PeriodMs: r.PeriodMs, Limit: r.MaxRequests, ExpireAt: r.ExpireAt,
		EntityType: firewall.EntityType(r.EntityType), AllEntities: r.AllEntities, AllResources: r.AllResources, Status: firewall.Status(r.Status), DryRun: r.DryRun}
	err := engine.ReadJSON(r.Entities, &f.Entities)
	if err == nil {
		err = engine.ReadJSON(r.Resources, &f.Resources)
	}
	return f, err
}

func (r *firewallRow) take(f firewall.Rule) error {
	r.PeriodMs, r.MaxRequests, r.ExpireAt, r.AllEntities, r.AllResources = f.PeriodMs, f.Limit, f.ExpireAt, f.AllEntities, f.AllResources
	r.Status, r.DryRun = string(f.Status), f.DryRun
	r.Entities, r.Resources = engine.WriteJSON(f.Entities), engine.WriteJSON(f.Resources)
	return nil
}

// Rules implements firewall.Store.
func (s Firewall) Rules(ctx context.Context) ([]firewall.Rule, error) {
	return listRecords[firewallRow, firewall.Rule](ctx, s.db)
}

// Add implements firewall.Store.
func (s Firewall) Add(ctx context.Context, r firewall.Rule) error {
	now := ms(s.db.Now())
	_, err := addRecord(ctx, s.db, &firewallRow{AppID: r.AppID, Label: r.Label, Type: string(r.Type), EntityType: string(r.EntityType), CreatedAt: now, UpdatedAt: now}, r)
	return err
}

// Change implements firewall.Store.
func (s Firewall) Change(ctx context.Context, label string, change func(firewall.Rule) (firewall.Rule, error)) error {
	return changeRecord[firewallRow](ctx, s.db, change, "label = ?", label)
}

package persistence

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"castellan/domain/guard/firewall"
	"castellan/persistence/engine"
)

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
	stamps
}

var firewallRules = table[firewallRow, firewall.Rule]{
	fixed: []string{"app_id", "label", "type", "entity_type", "created_at"},
	record: func(r firewallRow) (firewall.Rule, error) {
		f := firewall.Rule{AppID: r.AppID, Label: r.Label, Type: firewall.Type(r.Type), PeriodMs: r.PeriodMs,
			Limit: r.MaxRequests, ExpireAt: r.ExpireAt, EntityType: firewall.EntityType(r.EntityType),
			AllEntities: r.AllEntities, AllResources: r.AllResources, Status: firewall.Status(r.Status),
			DryRun: r.DryRun}
		err := errors.Join(engine.ReadJSON(r.Entities, &f.Entities), engine.ReadJSON(r.Resources, &f.Resources))
		return f, err
	},
	row: func(f firewall.Rule) firewallRow {
		return firewallRow{AppID: f.AppID, Label: f.Label, Type: string(f.Type), PeriodMs: f.PeriodMs,
			MaxRequests: f.Limit, ExpireAt: f.ExpireAt, EntityType: string(f.EntityType),
			Entities: body(f.Entities), Resources: body(f.Resources), AllEntities: f.AllEntities,
			AllResources: f.AllResources, Status: string(f.Status), DryRun: f.DryRun}
	},
}

func (s Firewall) Rules(ctx context.Context, q firewall.Query) ([]firewall.Rule, error) {
	fs := []filter{sent("app_id", q.AppID), sent("status", q.Status)}
	if q.Labels != nil {
		fs = append(fs, where("label IN (?)", bun.List(q.Labels)))
	}
	return firewallRules.list(ctx, s.db, part{where: fs})
}

func (s Firewall) Add(ctx context.Context, r firewall.Rule) error {
	_, err := firewallRules.add(ctx, s.db, r)
	return err
}

func (s Firewall) Change(ctx context.Context, label string, f func(firewall.Rule) (firewall.Rule, error)) error {
	return firewallRules.change(ctx, s.db, f, is("label", label))
}

package guard

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/guard/firewall"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Firewall struct{ db *engine.DB }

func NewFirewall(db *engine.DB) firewall.Store { return Firewall{db} }

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
	Entities     record.JSON[[]string]
	Resources    record.JSON[[]string]
	AllEntities  bool
	AllResources bool
	Status       string
	DryRun       bool
	record.Stamps
}

var firewallRules = record.Of(record.Table[firewallRow, firewall.Rule]{
	Fixed: []string{"app_id", "label", "type", "entity_type", "created_at"},
}, record.Names{"MaxRequests": "Limit"})

func (s Firewall) Rules(ctx context.Context, q firewall.Query) ([]firewall.Rule, error) {
	fs := []record.Filter{record.Sent("app_id", q.AppID), record.Sent("status", q.Status)}
	if q.Labels != nil {
		fs = append(fs, record.Where("label IN (?)", bun.List(q.Labels)))
	}
	return firewallRules.List(ctx, s.db, record.Part{Where: fs})
}

func (s Firewall) Add(ctx context.Context, r firewall.Rule) error {
	_, err := firewallRules.Add(ctx, s.db, r)
	return err
}

func (s Firewall) Change(ctx context.Context, label string, f func(firewall.Rule) (firewall.Rule, error)) error {
	return firewallRules.Change(ctx, s.db, f, record.Is("label", label))
}

package persistence

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/uptrace/bun"

	"castellan/domain/allowedip"
	"castellan/persistence/engine"
)

// AllowedIPs implements allowedip.Store.
type AllowedIPs struct{ db *DB }

var _ allowedip.Store = AllowedIPs{}

// NewAllowedIPs returns the lists of allowed addresses kept in db.
func NewAllowedIPs(db *DB) AllowedIPs { return AllowedIPs{db} }

type allowedRow struct {
	bun.BaseModel `bun:"table:allowed_ip,alias:a"`

	UserID    string `bun:",pk"`
	Network   string `bun:",pk"`
	CreatedAt int64
}

var allowedIPWrites = []engine.Kind{
	engine.Each(func(ctx context.Context, tx bun.Tx, w allowedip.Allow) error {
		row := allowedRow{UserID: w.UserID, Network: w.Network.String(), CreatedAt: ms(w.At)}
		_, err := tx.NewInsert().Model(&row).On("CONFLICT DO NOTHING").Returning("NULL").Exec(ctx)
		return err
	}),
	engine.Each(func(ctx context.Context, tx bun.Tx, w allowedip.Disallow) error {
		_, err := tx.NewDelete().Table("allowed_ip").Where("user_id = ?", w.UserID).Where("network = ?", w.Network.String()).Exec(ctx)
		return err
	}),
}

// Networks implements allowedip.Store.
func (s AllowedIPs) Networks(ctx context.Context, userID string) ([]netip.Prefix, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []allowedRow
	if err := s.db.Conn(ctx).NewSelect().Model(&rows).Where("user_id = ?", userID).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	by, err := networks(rows)
	return by[userID], err
}

// All implements allowedip.Store.
func (s AllowedIPs) All(ctx context.Context) (map[string][]netip.Prefix, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []allowedRow
	if err := s.db.Conn(ctx).NewSelect().Model(&rows).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return networks(rows)
}

// networks reads rows. One that cannot be read is an error: leaving it out
// could turn a list into an empty one, which lets everybody in.
func networks(rows []allowedRow) (map[string][]netip.Prefix, error) {
	by := map[string][]netip.Prefix{}
	for _, r := range rows {
		n, err := netip.ParsePrefix(r.Network)
		if err != nil {
			return nil, fmt.Errorf("allowed_ip of %s: %w", r.UserID, err)
		}
		by[r.UserID] = append(by[r.UserID], n)
	}
	for _, ns := range by {
		slices.SortFunc(ns, netip.Prefix.Compare)
	}
	return by, nil
}

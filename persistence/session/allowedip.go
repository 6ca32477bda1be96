package session

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/uptrace/bun"

	"castellan/domain/kit/sorting"
	"castellan/domain/session/allowedip"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type AllowedIPs struct{ db *engine.DB }

func NewAllowedIPs(db *engine.DB) allowedip.Store { return AllowedIPs{db} }

type allowedRow struct {
	bun.BaseModel `bun:"table:allowed_ip,alias:a"`

	UserID    string `bun:",pk"`
	Network   string `bun:",pk"`
	CreatedAt int64
}

var AllowedIPWrites = []engine.Kind{
	engine.Update("INSERT INTO allowed_ip (user_id, network, created_at) "+
		"SELECT v.user_id, v.network, v.created_at {FROM v} WHERE TRUE ON CONFLICT DO NOTHING",
		func(w allowedip.Allow) allowedRow {
			return allowedRow{UserID: w.UserID, Network: w.Network.String(), CreatedAt: engine.Millis(w.At)}
		}),
	engine.Update("DELETE FROM allowed_ip {USING v} "+
		"WHERE allowed_ip.user_id = v.user_id AND allowed_ip.network = v.network",
		func(w allowedip.Disallow) allowedRow {
			return allowedRow{UserID: w.UserID, Network: w.Network.String()}
		}),
}

// allowed is one line of a user's list.
type allowed struct {
	userID  string
	network netip.Prefix
}

// allowedIPs reads the lists. A row that cannot be read is an error: leaving it
// out could turn a list into an empty one, which allows every address.
var allowedIPs = record.Table[allowedRow, allowed]{
	Order: record.Keyset{Columns: "user_id, network"},
	Record: func(r allowedRow) (allowed, error) {
		n, err := netip.ParsePrefix(r.Network)
		if err != nil {
			return allowed{}, fmt.Errorf("allowed_ip of %s: %w", r.UserID, err)
		}
		return allowed{r.UserID, n}, nil
	},
}

func (s AllowedIPs) Networks(ctx context.Context, userID string) ([]netip.Prefix, error) {
	by, err := s.byUser(ctx, record.Is("user_id", userID))
	return by[userID], err
}

func (s AllowedIPs) All(ctx context.Context) (map[string][]netip.Prefix, error) { return s.byUser(ctx) }

func (s AllowedIPs) byUser(ctx context.Context, fs ...record.Filter) (map[string][]netip.Prefix, error) {
	lines, err := allowedIPs.List(ctx, s.db, record.Part{Where: fs})
	if err != nil {
		return nil, err
	}
	by := map[string][]netip.Prefix{}
	for _, l := range lines {
		by[l.userID] = append(by[l.userID], l.network)
	}
	for _, ns := range by {
		sorting.Func(ns, netip.Prefix.Compare)
	}
	return by, nil
}

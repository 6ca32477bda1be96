package money

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// A slot is the instant of a movement in milliseconds without its last bits; without a grain, of the grain fine.
const (
	fine   = 15 // 33 seconds; the first seven digits of an identifier
	medium = 20 // 17 minutes
	coarse = 25 // 9 hours
	digits = 7

	oneCoarse = 1 << (coarse - fine)
	noEnd     = 1 << (48 - fine) // identifiers have 48 bits of time
)

// flowRow is what movements of an asset add up to: of a slot by an initiator (scope), or of a user.
type flowRow struct {
	Grain, Slot, AssetID, Number int64
	Scope, UserID                string
	record.SumColumns
}

func slotOf(at time.Time) int64 { return engine.Millis(at) >> fine }

func timeOf(slot int64) time.Time {
	if slot >= noEnd {
		return time.Time{}
	}
	return time.UnixMilli(slot << fine)
}

// flowOf returns the table of a flow, the column that has the instant of its movements, and the condition of those that
// count.
func flowOf(f transaction.Flow) (table, column, where string) {
	switch {
	case f.Kind == policy.Adjustment && f.Direction == policy.In:
		return "deposit", "transfer_id", "id = transfer_id"
	case f.Kind == policy.Adjustment:
		return "withdrawal", "transfer_id", "id = transfer_id"
	case f.Kind == policy.Deposit:
		return "deposit", "transfer_id", "id <> transfer_id"
	}
	where = fmt.Sprintf("hold_id IS NOT NULL AND status NOT IN (%d, %d)", transaction.Failed, transaction.Cancelled)
	if f.Left {
		return "withdrawal", "left_at", where + " AND left_at > 0" // as the index has it
	}
	return "withdrawal", "id", where
}

// boundOf returns the value of the column of a flow at an instant; zero: a value above all.
func boundOf(f transaction.Flow, at time.Time) any {
	switch {
	case f.Left && at.IsZero():
		return int64(noEnd) << fine
	case f.Left:
		return engine.Millis(at)
	case at.IsZero():
		return "~"
	}
	return id.Before(at)
}

// summed is the columns of sums of totals.
const summed = "asset_id, CAST(sum(number) AS BIGINT) AS number, CAST(sum(hi_high) AS BIGINT) AS hi_high, " +
	"CAST(sum(hi_low) AS BIGINT) AS hi_low, CAST(sum(lo_high) AS BIGINT) AS lo_high, " +
	"CAST(sum(lo_low) AS BIGINT) AS lo_low"

// KeepTotals keeps the totals of flows, from now on and then of earlier movements, nine hours at a time, and ends those
// of others. On PostgreSQL it is UNAVAILABLE if writers keep a table busy for 0.3 s, and continues in the next call.
func (s Transactions) KeepTotals(ctx context.Context, flows []transaction.Flow, from, now time.Time) error {
	known, failed := s.kept(ctx)
	if failed != nil {
		return failed
	}
	for _, f := range transaction.Flows() {
		since, is := known[f.String()]
		wanted := slices.Contains(flows, f)
		var err error
		if is && !wanted {
			err = s.dropTotals(ctx, f.String(), "DELETE FROM money_flow_kept WHERE since < ? AND flow = ?", noEnd)
		}
		for ; wanted && err == nil && (!is || since > slotOf(from)); is = true {
			since, err = s.extend(ctx, f, slotOf(now))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// kept returns since when there are totals, by flow.
func (s Transactions) kept(ctx context.Context) (map[string]int64, error) {
	var flows []string
	var since []int64
	err := s.db.Conn(ctx).NewSelect().Table("money_flow_kept").Column("flow", "since").Scan(ctx, &flows, &since)
	all := map[string]int64{}
	for i, f := range flows {
		all[f] = since[i]
	}
	return all, engine.Translate(err)
}

// inside is the condition of the totals of a flow between two slots.
func inside(flow string, from, to int64) schema.QueryWithArgs {
	return schema.SafeQuery("flow = ? AND (grain = 15 AND slot >= ? AND slot < ? OR grain = 20 AND slot >= ? AND "+
		"slot < ? OR grain = 25 AND slot >= ? AND slot < ?)", []any{flow, from, to, from >> 5, to >> 5, from >> 10, to >> 10})
}

var errBusy = fault.New(fault.Unavailable, "a table of movements is busy").After(time.Second)

// extend adds the totals of the nine hours before those of a flow, or those from now on if it has none. No movement
// changes meanwhile: on PostgreSQL, writers of the table wait. Their triggers read money_flow_kept after that. A node
// that ends the totals meanwhile (dropTotals) makes it fail, because since must not outlive the totals after it.
func (s Transactions) extend(ctx context.Context, f transaction.Flow, now int64) (since int64, err error) {
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		if table, _, _ := flowOf(f); s.db.Postgres() {
			// A transaction that waits for this lock has no other one, so writers cannot wait for it in a circle.
			_, err := tx.NewRaw("SET LOCAL lock_timeout = 300; LOCK TABLE ? IN SHARE ROW EXCLUSIVE MODE",
				bun.Ident(table)).Exec(ctx)
			if err != nil {
				return fmt.Errorf("%w: %w", errBusy, err)
			}
		}
		known, err := s.kept(ctx)
		if err != nil {
			return err
		}
		to, is := known[f.String()]
		if since = to - oneCoarse; !is {
			since, to = now/oneCoarse*oneCoarse, noEnd
		}
		all := inside(f.String(), since, to)
		if _, err := tx.NewRaw("DELETE FROM money_flow WHERE ?", all).Exec(ctx); err != nil { // what was left by dropTotals
			return err
		}
		_, err = tx.NewRaw("INSERT INTO money_flow (flow, part, grain, slot, scope, asset_id, number, hi_high, hi_low, "+
			"lo_high, lo_low) SELECT ?, 0, grain, slot, scope, "+summed+" FROM (?) AS m GROUP BY grain, slot, scope, asset_id",
			f.String(), s.moved(f, since, to)).Exec(ctx)
		if err != nil {
			return err
		}
		keep := tx.NewRaw("INSERT INTO money_flow_kept (since, flow) VALUES (?, ?)", since, f.String())
		if is {
			keep = tx.NewRaw("UPDATE money_flow_kept SET since = ? WHERE flow = ? AND since = ?", since, f.String(), to)
		}
		if wrote, err := wrote(keep.Exec(ctx)); err != nil || wrote {
			return err
		}
		return errBusy
	})
	return since, err
}

// wrote reports whether a statement wrote a row.
func wrote(done sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// moved selects what the movements of a flow between two slots add up to, by the slots of all grains.
func (s Transactions) moved(f transaction.Flow, from, to int64) schema.QueryWithArgs {
	table, column, where := flowOf(f)
	// The first digits of an identifier are a slot of the grain 15; each is decoded once.
	key, slot := "substr("+column+", 1, 7)", "money_slot(min("+column+"))"
	switch {
	case f.Left:
		key = column + " >> 15"
		slot = key
	case !s.db.Postgres():
		slot = "0"
		for n := range digits {
			slot = fmt.Sprintf("(%s) * 32 + instr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substr(min(%s), %d, 1)) - 1", slot,
				column, n+1)
		}
	}
	return schema.SafeQuery("SELECT grain, slot >> (grain - 15) AS slot, scope, asset_id, number, hi_high, hi_low, "+
		"lo_high, lo_low FROM (SELECT "+slot+" AS slot, initiator AS scope, asset_id, count(*) AS number, "+
		record.Summed("", "", "", "")+" FROM "+table+" WHERE "+where+" AND "+column+" >= ? AND "+column+
		" < ? GROUP BY "+key+", initiator, asset_id) AS s CROSS JOIN (SELECT 15 AS grain UNION ALL SELECT 20 UNION ALL "+
		"SELECT 25) AS g",
		[]any{boundOf(f, timeOf(from)), boundOf(f, timeOf(to))})
}

// VerifyTotals compares the totals with the movements. Its error wraps ledger.ErrBroken for one that differs.
func (s Transactions) VerifyTotals(ctx context.Context) error {
	known, err := s.kept(ctx)
	if err != nil {
		return err
	}
	now := slotOf(s.db.Now()) / oneCoarse * oneCoarse
	for _, f := range transaction.Flows() {
		since, is := known[f.String()]
		for is && since < noEnd {
			to := since + oneCoarse
			if since >= now {
				to = noEnd
			}
			var differ []flowRow
			// One statement, because both change, and totals may be dropped meanwhile.
			err := s.db.Conn(ctx).NewRaw("SELECT grain, slot, scope, "+summed+" FROM (SELECT grain, slot, scope, asset_id, "+
				"number, hi_high, hi_low, lo_high, lo_low FROM money_flow WHERE ? UNION ALL SELECT grain, slot, scope, "+
				"asset_id, -number, -hi_high, -hi_low, -lo_high, -lo_low FROM (?) AS m) AS d "+
				"WHERE EXISTS (SELECT 1 FROM money_flow_kept WHERE flow = ? AND since <= ?) "+
				"GROUP BY grain, slot, scope, asset_id HAVING sum(number) <> 0 OR sum(hi_high) <> 0 OR sum(hi_low) <> 0 "+
				"OR sum(lo_high) <> 0 OR sum(lo_low) <> 0 LIMIT 1", inside(f.String(), since, to), s.moved(f, since, to),
				f.String(), since).Scan(ctx, &differ)
			if err != nil {
				return engine.Translate(err)
			}
			if len(differ) > 0 {
				return fmt.Errorf("%w: the total of %s by %q at %s in money_flow does not match its movements",
					ledger.ErrBroken, f, differ[0].Scope, timeOf(differ[0].Slot<<(differ[0].Grain-fine)).UTC())
			}
			since = to
		}
	}
	return nil
}

// PurgeTotals removes the totals before an instant.
func (s Transactions) PurgeTotals(ctx context.Context, before time.Time) error {
	known, err := s.kept(ctx)
	for flow, since := range known {
		if to := slotOf(before) / oneCoarse * oneCoarse; since < to && err == nil {
			err = s.dropTotals(ctx, flow, "UPDATE money_flow_kept SET since = ?0 WHERE flow = ?1 AND since < ?0", to)
		}
	}
	return err
}

// dropTotals removes the totals of a flow before a slot, after the statement that says so: it locks the row that extend
// changes. A statement of a writer that began before may still add some, which are not read.
func (s Transactions) dropTotals(ctx context.Context, flow, say string, before int64) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		said, err := wrote(tx.NewRaw(say, before, flow).Exec(ctx))
		if said {
			_, err = tx.NewRaw("DELETE FROM money_flow WHERE ?", inside(flow, 0, before)).Exec(ctx)
		}
		return err
	})
}

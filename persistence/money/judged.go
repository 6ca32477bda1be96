package money

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/sorting"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

var _ transaction.Past = Transactions{}

// gateRow is a gate of the sums of the money policy.
type gateRow struct {
	bun.BaseModel `bun:"table:money_gate,alias:g"`

	ID        string `bun:",pk"`
	ChangedAt int64
	Version   int64
}

type approvalRow struct {
	bun.BaseModel `bun:"table:withdrawal_approval,alias:a"`

	WithdrawalID string `bun:",pk"`
	UserID       string `bun:",pk"`
	At           int64
	OrderDigest  string

	ChallengeID, IntentDigest string
}

// GateFences pass a gate once for each version. They are one statement, new gates included, and come before balances:
// so units lock gates as transactions do.
var GateFences = []engine.Kind{engine.FencedInsert("ON CONFLICT (id) DO UPDATE SET changed_at = EXCLUDED.changed_at, "+
	"version = EXCLUDED.version WHERE money_gate.version = EXCLUDED.version - 1 {RETURNING id}",
	func(w transaction.PassGate) gateRow {
		return gateRow{ID: w.Key, ChangedAt: engine.Millis(w.At), Version: w.Version + 1}
	})}

var addApproval = engine.Insert(func(w transaction.AddApproval) approvalRow {
	return approvalRow{WithdrawalID: w.ID, UserID: w.UserID, At: engine.Millis(w.At), OrderDigest: w.OrderDigest,
		ChallengeID: w.Signed.ChallengeID, IntentDigest: w.Signed.IntentDigest}
})

// LockGates makes gates that were never passed.
func (s Transactions) LockGates(ctx context.Context, keys []string, now time.Time) (map[string]int64, error) {
	var rows, locked []gateRow
	for _, key := range keys {
		locked = append(locked, gateRow{ID: key, ChangedAt: engine.Millis(now), Version: 1})
	}
	err := record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		return tx.NewInsert().Model(&locked).On("CONFLICT (id) DO UPDATE").Set("changed_at = EXCLUDED.changed_at").
			Returning("id, version").Scan(ctx, &rows)
	})
	versions := map[string]int64{}
	for _, row := range rows {
		versions[row.ID] = row.Version
	}
	return versions, err
}

// sent reports whether withdrawals of the queue that filters select were sent.
func (s Transactions) sent(ctx context.Context, userID string, fs ...record.Filter) (bool, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	is, err := record.Filtered(s.db.Conn(ctx).NewSelect().TableExpr("withdrawal AS w").ColumnExpr("1").
		Join("JOIN withdrawal_queue AS q ON q.id = w.id").Where("w.user_id = ?", userID).
		Where("q.status IN (?, ?)", int(transaction.QueueSuccess), int(transaction.QueueSent)), fs).Exists(ctx)
	return is, engine.Translate(err)
}

// Used finds rows of earlier versions, which have no destination, by the text of the address.
func (s Transactions) Used(ctx context.Context, userID string, d transaction.Destination) (bool, error) {
	return s.sent(ctx, userID, record.Where("w.destination = ? OR w.destination = '' AND q.address = ? AND "+
		"q.address_tag = ? AND q.asset_id IN (?)", d.Key, d.Address, d.Tag, bun.List(d.Assets)))
}

func (s Transactions) Withdrew(ctx context.Context, userID string) (bool, error) {
	return s.sent(ctx, userID)
}

// Credited reads ids of transfers, which begin with their instants.
func (s Transactions) Credited(ctx context.Context, userID string, assets ...int64) (at time.Time, err error) {
	var last sql.NullString
	err = scan(ctx, s.db, s.db.Conn(ctx).NewSelect().Table("deposit").ColumnExpr("max(transfer_id)").
		Where("user_id = ?", userID).Where("transfer_id IS NOT NULL").Where("asset_id IN (?)", bun.List(assets)), &last)
	if err != nil || !last.Valid {
		return at, err
	}
	return engine.Time(id.Millis(last.String)), nil
}

func (s Transactions) Approved(ctx context.Context, ids ...string) (all []transaction.AddApproval, err error) {
	var rows []approvalRow
	err = scan(ctx, s.db, s.db.Conn(ctx).NewSelect().Model(&rows).Where("withdrawal_id IN (?)", bun.List(ids)).
		Order("at", "user_id"))
	for _, r := range rows {
		all = append(all, transaction.AddApproval{ID: r.WithdrawalID, UserID: r.UserID, OrderDigest: r.OrderDigest,
			At: engine.Time(r.At)})
	}
	return all, err
}

func (s Transactions) Due(ctx context.Context, now time.Time, most int) (ids []string, err error) {
	err = scan(ctx, s.db, s.db.Conn(ctx).NewSelect().TableExpr("withdrawal AS w").Column("w.id").
		Join("JOIN withdrawal_queue AS q ON q.id = w.id").Where("w.hold_until > 0").
		Where("w.hold_until <= ?", engine.Millis(now)).Where("q.status = ?", int(transaction.QueueWaiting)).
		Where("w.hold_reason = ?", string(transaction.HeldPolicy)).
		Where("NOT EXISTS (SELECT 1 FROM restore_withdrawal AS r WHERE r.id = w.id AND r.outcome = '')").
		Order("w.hold_until").Limit(int64(most)), &ids)
	return ids, err
}

// heldQuery selects the entries of the queue that are held.
func (s Transactions) heldQuery(ctx context.Context) *bun.SelectQuery {
	return s.db.Conn(ctx).NewSelect().TableExpr("withdrawal AS w").Join("JOIN withdrawal_queue AS q ON q.id = w.id").
		Where("q.status = ?", int(transaction.QueueWaiting)).Where("w.hold_reason <> ''")
}

func (s Transactions) HeldCounts(ctx context.Context) (all []transaction.HeldCount, err error) {
	var rows []struct {
		HoldReason    string
		Number, Since int64
	}
	err = scan(ctx, s.db, s.heldQuery(ctx).Column("w.hold_reason").ColumnExpr("count(*) AS number").
		ColumnExpr("min(w.held_at) AS since").Group("w.hold_reason"), &rows)
	for _, r := range rows {
		all = append(all, transaction.HeldCount{Reason: transaction.HeldFor(r.HoldReason), Number: r.Number,
			Oldest: engine.Time(r.Since)})
	}
	return all, err
}

func (s Transactions) HeldBefore(ctx context.Context, before time.Time, most int) (ids []string, err error) {
	err = scan(ctx, s.db, s.heldQuery(ctx).Column("w.id").Where("w.hold_reason = ?", string(transaction.HeldPolicy)).
		Where("w.held_at <= ?", engine.Millis(before)).Order("w.held_at", "w.id").Limit(int64(most)), &ids)
	return ids, err
}

func (s Transactions) Judged(ctx context.Context, movementID string) (f policy.Facts, known bool, err error) {
	var texts []string
	of := func(table string) *bun.SelectQuery {
		return s.db.Conn(ctx).NewSelect().Table(table).Column("facts").Where("id = ?", movementID)
	}
	if err := scan(ctx, s.db, of("withdrawal").UnionAll(of("deposit")), &texts); err != nil {
		return f, false, err
	}
	switch {
	case len(texts) == 0:
		return f, false, fault.New(fault.RecordNotFound, "there is no such movement")
	case texts[0] == "":
		return f, false, nil
	}
	if err := json.Unmarshal([]byte(texts[0]), &f); err != nil {
		return f, false, fmt.Errorf("facts of %s: %w", movementID, err)
	}
	return f, true, nil
}

// Rules keeps the rules of the money policy.
type Rules struct{ db *engine.DB }

var _ policy.Store = Rules{}

func NewRules(db *engine.DB) Rules { return Rules{db} }

type ruleRow struct {
	bun.BaseModel `bun:"table:money_rule,alias:r"`

	Label      string `bun:",pk"`
	Version    int64  `bun:",pk"`
	Status     string
	Definition record.JSON[policy.Rule]
	CreatedAt  int64
}

// ruleLock is the key under which rules change: each is judged among all others.
const ruleLock = 0x6d6f6e6579726c // "moneyrl"

// Lock makes the changes of rules wait for each other.
func (s Rules) Lock(ctx context.Context) error { return s.db.LockTx(ctx, ruleLock) }

// deleted is the status of a version that ends its rule.
const deleted = "DELETED"

func (s Rules) Rules(ctx context.Context, labels ...string) ([]policy.Rule, error) {
	var rows []ruleRow
	q := s.db.Conn(ctx).NewSelect().Model(&rows).Where("status <> ?", deleted).
		Where("version = (SELECT max(version) FROM money_rule WHERE label = r.label)").Order("label")
	if len(labels) > 0 {
		q.Where("label IN (?)", bun.List(labels))
	}
	if err := q.Scan(ctx); err != nil {
		return nil, fmt.Errorf("rules: %w", engine.Translate(err))
	}
	all := make([]policy.Rule, len(rows))
	for i, r := range rows {
		all[i] = r.Definition.V
		all[i].Label, all[i].Version = r.Label, r.Version
	}
	return all, nil
}

func (s Rules) Last(ctx context.Context, label string) (version int64, err error) {
	var last sql.NullInt64
	err = scan(ctx, s.db, s.db.Conn(ctx).NewSelect().Table("money_rule").ColumnExpr("max(version)").
		Where("label = ?", label), &last)
	return last.Int64, err
}

func (s Rules) Put(ctx context.Context, r policy.Rule, ends bool, at time.Time) error {
	row := ruleRow{Label: r.Label, Version: r.Version, Status: string(r.Status), Definition: record.JSONOf(r),
		CreatedAt: engine.Millis(at)}
	if ends {
		row.Status = deleted
	}
	return s.db.InTx(ctx, func(ctx context.Context) error {
		_, err := s.db.Conn(ctx).NewInsert().Model(&row).Exec(ctx)
		return engine.Translate(err)
	})
}

// factsPage is how many facts are read at once.
const factsPage = 500

func (s Transactions) Facts(ctx context.Context, from time.Time,
	read func(movementID string, f policy.Facts, counts bool) (more bool, err error)) error {
	of := func(table, counts, after string, args ...any) *bun.SelectQuery {
		page := s.db.Conn(ctx).NewSelect().Table(table).Column("id", "facts").ColumnExpr(counts+" AS counts", args...).
			Where("id > ?", after).Where("facts <> ''").Order("id").Limit(factsPage)
		return s.db.Conn(ctx).NewSelect().TableExpr("(?) AS p", page)
	}
	for after := id.Before(from); ; {
		var rows []struct {
			ID, Facts string
			Counts    bool
		}
		all := of("withdrawal", "status NOT IN (?, ?)", after, int(transaction.Failed), int(transaction.Cancelled)).
			UnionAll(of("deposit", "status > 0", after))
		err := s.db.Conn(ctx).NewSelect().TableExpr("(?) AS m", all).Order("id").Limit(factsPage).Scan(ctx, &rows)
		if err != nil || len(rows) == 0 {
			return engine.Translate(err)
		}
		for _, r := range rows {
			var f policy.Facts
			if err := json.Unmarshal([]byte(r.Facts), &f); err != nil {
				return fmt.Errorf("facts of %s: %w", r.ID, err)
			}
			if more, err := read(r.ID, f, r.Counts); err != nil || !more {
				return err
			}
			after = r.ID
		}
	}
}

var _ policy.HitStore = Rules{}

// hitRow is how often a version of a rule asked for something in an hour.
type hitRow struct {
	bun.BaseModel `bun:"table:money_rule_hit,alias:h"`

	Hour    int64  `bun:",pk"` // its begin
	Label   string `bun:",pk"`
	Version int64  `bun:",pk"`
	Number  int64
}

// AddHits adds the counts by one statement, in one order, so that no two nodes wait for each other.
func (s Rules) AddHits(ctx context.Context, at time.Time, counts map[policy.Named]int64) error {
	rows := make([]hitRow, 0, len(counts))
	for n, c := range counts {
		rows = append(rows, hitRow{Hour: engine.Millis(at.Truncate(time.Hour)), Label: n.Label, Version: n.Version,
			Number: c})
	}
	sorting.Func(rows, func(a, b hitRow) int {
		return cmp.Or(strings.Compare(a.Label, b.Label), cmp.Compare(a.Version, b.Version))
	})
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&rows).On("CONFLICT (hour, label, version) DO UPDATE").
			Set("number = h.number + EXCLUDED.number").Exec(ctx)
		return err
	})
}

func (s Rules) Hits(ctx context.Context, since time.Time) (map[policy.Named]int64, error) {
	var rows []hitRow
	err := scan(ctx, s.db, s.db.Conn(ctx).NewSelect().Model(&rows).ExcludeColumn("hour").
		Where("hour >= ?", engine.Millis(since.Truncate(time.Hour))))
	all := map[policy.Named]int64{}
	for _, r := range rows {
		all[policy.Named{Label: r.Label, Version: r.Version}] += r.Number
	}
	return all, err
}

// PurgeHits deletes the hits of the hours that began before an instant.
func (s Rules) PurgeHits(ctx context.Context, before time.Time) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*hitRow)(nil)).Where("hour < ?", engine.Millis(before)).Exec(ctx)
		return err
	})
}

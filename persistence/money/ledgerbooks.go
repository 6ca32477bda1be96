package money

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/id"
	"castellan/domain/kit/sorting"
	"castellan/domain/money/accounting"
	"castellan/domain/money/ledger"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

var (
	_ ledger.Books    = Ledger{}
	_ ledger.Calendar = Ledger{}
)

func (s Ledger) Snapshot(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.db.Snapshot(ctx, fn)
}

// booksPage is how many rows a verification reads at once.
const booksPage = 2000

// pageOf reads one page of rows R as values T.
func pageOf[R, T any](ctx context.Context, s Ledger, q engine.Query, value func(R) (T, error), after ...any) ([]T,
	error) {
	rows := make([]R, 0, booksPage)
	q.Order += " LIMIT " + strconv.Itoa(booksPage)
	if err := s.db.Ask(ctx, &rows, q, after...); err != nil {
		return nil, err
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = value(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s Ledger) Transfers(ctx context.Context, after ledger.Sealed) ([]ledger.Sealed, error) {
	return pageOf(ctx, s, engine.Query{Where: "id > $1", Order: "id", Columns: "id, group_id, kind, ref, digest, " +
		"asset_id, unit, debit_id, credit_id, hi, lo, reverses, reason, actor_id, at, effective_at"},
		func(r transferRow) (ledger.Sealed, error) {
			return ledger.Sealed{Content: ledger.Content{ID: r.ID, Group: r.GroupID, Kind: r.Kind, Ref: r.Ref,
				Debit: r.DebitID, Credit: r.CreditID, Reverses: r.Reverses, Reason: r.Reason, ActorID: r.ActorID,
				Asset: r.AssetID, Unit: r.Unit, Hi: r.Hi, Lo: r.Lo, At: r.At, EffectiveAt: r.EffectiveAt}, Sum: r.Digest}, nil
		}, after.ID)
}

// sealRow is an audit row of a transfer; chain and seq tell two of one apart.
type sealRow struct {
	bun.BaseModel `bun:"table:audit,alias:a"`

	Target string
	Detail string
}

// Rows of one transfer are on one page, as far as
// it has no more than a page of them. Those that left the audit are audit_left.
func (s Ledger) Audited(ctx context.Context, after ledger.Seal) ([]ledger.Seal, error) {
	target := "target"
	if s.db.Postgres() {
		target = `target COLLATE "C"`
	}
	behind := "(" + target + ", detail) > ($1, $2)"
	seal := func(r sealRow) (ledger.Seal, error) { return ledger.Seal{ID: r.Target, Digest: r.Detail}, nil }
	here, err := pageOf(ctx, s, engine.Query{Where: "action = '" + ledger.ActionTransfer + "' AND " + behind,
		Order: target + ", detail"}, seal, after.ID, after.Digest)
	if err != nil {
		return nil, err
	}
	gone, err := pageOf(ctx, s, engine.Query{From: "audit_left", Columns: "target, detail", Where: behind,
		Order: target + ", detail"}, seal, after.ID, after.Digest)
	if err != nil || len(gone) == 0 {
		return here, err
	}
	all := append(here, gone...)
	sorting.Func(all, func(a, b ledger.Seal) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Digest, b.Digest))
	})
	return all[:min(len(all), booksPage)], nil
}

// entryRow is one side of a transfer, or a hold.
type entryRow struct {
	AccountID string
	ID        string
	Seq       int64
	Hi        int64
	Lo        int64
}

func (r entryRow) entry() (ledger.Entry, error) {
	a, err := amount.Of(r.Hi, r.Lo)
	return ledger.Entry{Account: r.AccountID, ID: r.ID, Seq: r.Seq, Amount: a}, err
}

func (s Ledger) side(ctx context.Context, account, seq string, after ledger.Entry) ([]ledger.Entry, error) {
	return pageOf(ctx, s, engine.Query{From: "transfer", Columns: account + " AS account_id, id, " + seq +
		" AS seq, hi, lo", Where: "(" + account + ", id) > ($1, $2)", Order: account + ", id"},
		entryRow.entry, after.Account, after.ID)
}

func (s Ledger) Debits(ctx context.Context, after ledger.Entry) ([]ledger.Entry, error) {
	return s.side(ctx, "debit_id", "debit_seq", after)
}

func (s Ledger) Credits(ctx context.Context, after ledger.Entry) ([]ledger.Entry, error) {
	return s.side(ctx, "credit_id", "credit_seq", after)
}

func (s Ledger) Active(ctx context.Context, after ledger.Entry) ([]ledger.Entry, error) {
	return pageOf(ctx, s, engine.Query{From: "hold", Columns: "account_id, id, 0 AS seq, hi, lo",
		Where: "state = 'active' AND (account_id, id) > ($1, $2)", Order: "account_id, id"},
		entryRow.entry, after.Account, after.ID)
}

// Both tables begin behind the row: PostgreSQL merges
// them, and would read all accounts before it otherwise.
func (s Ledger) Lines(ctx context.Context, after ledger.Line) ([]ledger.Line, error) {
	return pageOf(ctx, s, balancesInOrder, func(r balanceRead) (ledger.Line, error) {
		b, err := r.balance()
		return ledger.Line{ID: r.AccountID, Balance: b}, err
	}, after.ID)
}

var balancesInOrder = engine.Query{
	From: "balance AS b JOIN account AS a ON a.id = b.account_id",
	Columns: "b.account_id, b.posted_hi, b.posted_lo, b.locked_hi, b.locked_lo, b.seq, b.version, a.kind, a.owner, " +
		"a.asset_id",
	Where: "b.account_id > $1 AND a.id > $1", Order: "b.account_id",
}

type dayRow struct {
	bun.BaseModel `bun:"table:day,alias:d"`

	AccountID string             `bun:",pk"`
	Day       int64              `bun:",pk"`
	Posted    record.WideColumns `bun:"embed:posted_"`
	In        record.WideColumns `bun:"embed:in_"`
	Out       record.WideColumns `bun:"embed:out_"`
	Seq       int64
}

func (r dayRow) day() (ledger.Day, error) {
	d := ledger.Day{Account: r.AccountID, Day: r.Day, Seq: r.Seq}
	return d, record.ReadSums(map[*amount.Sum]record.WideColumns{&d.Posted: r.Posted, &d.In: r.In, &d.Out: r.Out})
}

func dayRowOf(w ledger.Close) dayRow {
	columns := func(over, hi, lo int64) record.WideColumns { return record.WideColumns{Over: over, Hi: hi, Lo: lo} }
	d := w.Day
	return dayRow{AccountID: d.Account, Day: d.Day, Posted: columns(d.Posted.Parts()), In: columns(d.In.Parts()),
		Out: columns(d.Out.Parts()), Seq: d.Seq}
}

func (s Ledger) Days(ctx context.Context, after ledger.Day) ([]ledger.Day, error) {
	return pageOf(ctx, s, engine.Query{Where: "(account_id, day) > ($1, $2)", Order: "account_id, day"}, dayRow.day,
		after.Account, after.Day)
}

// endingRow is a hold with the account that its transfer debits.
type endingRow struct {
	ID, AccountID, State string
	Debited              string // NULL for none
}

func (s Ledger) Endings(ctx context.Context, after ledger.Ending) ([]ledger.Ending, error) {
	return pageOf(ctx, s, engine.Query{From: "hold AS h", Columns: "h.id, h.account_id, h.state, " +
		"(SELECT t.debit_id FROM transfer t WHERE t.id = h.transfer_id) AS debited", Where: "h.id > $1", Order: "h.id"},
		func(r endingRow) (ledger.Ending, error) {
			return ledger.Ending{ID: r.ID, Account: r.AccountID, State: ledger.State(r.State), Debited: r.Debited}, nil
		}, after.ID)
}

// LastDay implements ledger.Books and ledger.Calendar.
func (s Ledger) LastDay(ctx context.Context) (int64, bool, error) {
	var rows []dayRow
	if err := s.db.Ask(ctx, &rows, engine.Query{Columns: "day", Order: "day DESC LIMIT 1"}); err != nil ||
		len(rows) == 0 {
		return 0, false, err
	}
	return rows[0].Day, true, nil
}

func (s Ledger) FirstDay(ctx context.Context) (int64, bool, error) {
	return Balances(s).Next(ctx, time.Time{})
}

func (s Ledger) OfDay(ctx context.Context, day int64, after string) ([]ledger.Transfer, error) {
	from := time.UnixMilli(day * dayMs)
	return pageOf(ctx, s, engine.Query{Where: "id > $1 AND id < $2", Order: "id"}, transferRow.transfer,
		max(after, id.Before(from)), id.Before(from.Add(24*time.Hour)))
}

func (s Ledger) DayBefore(ctx context.Context, account string, day int64) (ledger.Day, error) {
	var rows []dayRow
	err := s.db.Ask(ctx, &rows, engine.Query{Where: "account_id = $1 AND day <= $2", Order: "day DESC LIMIT 1"}, account,
		day)
	if err != nil || len(rows) == 0 {
		return ledger.Day{}, err
	}
	return rows[0].day()
}

type Accounting struct{ db *engine.DB }

var _ accounting.Store = Accounting{}

// NewAccounting returns what a journal reads of the ledger in db.
func NewAccounting(db *engine.DB) Accounting { return Accounting{db} }

// totalRow is a group of transfers.
type totalRow struct {
	Day     int64
	AssetID int64
	Kind    string
	Debit   string
	Credit  string
	Count   int64
	record.SumColumns
}

const dayMs = 86_400_000

// Ids of transfers begin with their instant, so
// a period is a range of the primary key.
func (s Accounting) Totals(ctx context.Context, from, to time.Time) ([]accounting.Total, error) {
	var rows []totalRow
	err := scan(ctx, s.db, record.WithSums(s.db.Conn(ctx).NewSelect().TableExpr("transfer AS t").
		Join("JOIN account AS d ON d.id = t.debit_id").Join("JOIN account AS c ON c.id = t.credit_id").
		ColumnExpr("t.at / ? AS day", dayMs).Column("t.asset_id", "t.kind").ColumnExpr("d.kind AS debit").
		ColumnExpr("c.kind AS credit").ColumnExpr("count(*) AS count")).
		Where("t.id >= ?", id.Before(from)).Where("t.id < ?", id.Before(to)).
		Where("t.at >= ?", engine.Millis(from)).Where("t.at < ?", engine.Millis(to)).
		GroupExpr("1, 2, 3, 4, 5").OrderExpr("1, 2, 3, 4, 5"), &rows)
	if err != nil {
		return nil, err
	}
	out := make([]accounting.Total, len(rows))
	for i, r := range rows {
		sum, err := r.Sum()
		if err != nil {
			return nil, err
		}
		out[i] = accounting.Total{Day: time.UnixMilli(r.Day * dayMs).UTC(), Asset: r.AssetID, Kind: r.Kind,
			Debit: ledger.Kind(r.Debit), Credit: ledger.Kind(r.Credit), Sum: sum, Count: r.Count}
	}
	return out, nil
}

package money

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/persistence/account"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Transactions struct{ db *engine.DB }

var _ transaction.Store = Transactions{}

func NewTransactions(db *engine.DB) Transactions { return Transactions{db} }

type depositRead struct {
	bun.BaseModel `bun:"table:deposit,alias:d"`

	depositRow
	JobID   string
	Version int64
}

type withdrawalRead struct {
	bun.BaseModel `bun:"table:withdrawal,alias:w"`

	withdrawalRow
	Version int64
}

// newestFirst is the order of all lists here: an id begins with the instant.
var newestFirst = record.Keyset{Columns: "id", Descending: true}

// The facts of both are not read.
var (
	deposits = record.Of(record.Table[depositRead, transaction.Deposit]{Order: newestFirst},
		record.Names{"AssetID": "Asset"}, "Facts")
	withdrawals = record.Of(record.Table[withdrawalRead, transaction.Withdrawal]{Order: newestFirst},
		record.Names{"AssetID": "Asset"}, "Facts")
)

// entryRead is an entry of the queue with its withdrawal and its user.
type entryRead struct {
	bun.BaseModel `bun:"table:withdrawal_queue,alias:q"`

	queuedRow
	heldColumns
	Sum                     record.AmountColumns `bun:"embed:sum_"`
	Paid                    record.AmountColumns `bun:"embed:paid_"`
	PaidBy                  string
	Initiator, OwnerMethods string
	OwnerName, OwnerSurname string
	OwnerMail, OwnerPhone   string
}

// entries names the columns of its joins apart from those of the queue, which filters and
// order name without their table.
var entries = record.Table[entryRead, transaction.Entry]{
	Order: newestFirst,
	Join: func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ColumnExpr("q.*, " + heldColumn + ", w.sum_hi, w.sum_lo, w.paid_hi, w.paid_lo, w.paid_by, " +
			"w.initiator, w.owner_methods, " +
			"COALESCE(o.owner_name, '') AS owner_name, COALESCE(o.owner_surname, '') AS owner_surname, " +
			"COALESCE(o.owner_mail, '') AS owner_mail, COALESCE(o.owner_phone, '') AS owner_phone").
			Join("JOIN (SELECT id AS paid_id, hi AS sum_hi, lo AS sum_lo, fee_hi AS paid_hi, fee_lo AS paid_lo, " +
				"COALESCE(transfer_id, '') AS paid_by, initiator, owner_methods, " + heldColumn +
				" FROM withdrawal) AS w ON w.paid_id = q.id").
			Join("LEFT JOIN (SELECT id AS owner_id, name AS owner_name, surname AS owner_surname, " +
				"email AS owner_mail, COALESCE(number, phone) AS owner_phone FROM users) AS o ON o.owner_id = q.user_id")
	},
	Record: func(r entryRead) (e transaction.Entry, err error) {
		if e.Queued, err = queued.Record(queuedRead{queuedRow: r.queuedRow, heldColumns: r.heldColumns}); err != nil {
			return e, err
		}
		e.Withdrawal = transaction.Withdrawal{ID: r.ID, UserID: r.UserID, Asset: r.AssetID, ToAddress: r.Address,
			TransferID: r.PaidBy, Initiator: transaction.Initiator(r.Initiator), OwnerMethods: r.OwnerMethods}
		if e.Withdrawal.Amount, err = r.Sum.Amount(); err == nil {
			e.Withdrawal.Fee, err = r.Paid.Amount()
		}
		e.FullName = strings.TrimSpace(r.OwnerName + " " + r.OwnerSurname)
		e.Email, e.Phone = r.OwnerMail, r.OwnerPhone
		return e, err
	},
}

// processRead is a process with the amount of its withdrawal.
type processRead struct {
	bun.BaseModel `bun:"table:process,alias:p"`

	processRow
	Amount record.AmountColumns `bun:"embed:sum_"`
}

var processes = record.Of(record.Table[processRead, transaction.Process]{
	Order: newestFirst,
	Join: func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ColumnExpr("p.*, COALESCE(w.sum_hi, 0) AS sum_hi, COALESCE(w.sum_lo, 0) AS sum_lo").
			Join("LEFT JOIN (SELECT id AS sum_id, hi AS sum_hi, lo AS sum_lo FROM withdrawal) AS w " +
				"ON w.sum_id = p.transaction_id")
	},
}, record.Names{"AssetID": "Asset"})

func waitingFilters(q transaction.WaitingQuery) []record.Filter {
	fs := []record.Filter{record.Given("user_id", q.UserID), record.Given("tx_id", q.TxID), record.Given("to_address",
		q.ToAddress)}
	switch treasury := int(transaction.WaitingTreasury); {
	case !q.Treasury:
		return append(fs, record.Where("status < 0"))
	case q.TxID == "" && q.ToAddress == "":
		return append(fs, record.Is("status", treasury))
	default: // the plus keeps SQLite from the index of the status: few have a hash, many wait
		return append(fs, record.Where("status < 0"), record.Where("+status = ?", treasury))
	}
}

// spanFilters select rows by the instant with which their ids begin.
func spanFilters(s transaction.Span) (fs []record.Filter) {
	if !s.From.IsZero() {
		fs = append(fs, record.Where("id >= ?", id.Before(s.From)))
	}
	if !s.To.IsZero() {
		fs = append(fs, record.Where("id < ?", id.Before(s.To.Add(time.Millisecond))))
	}
	return fs
}

func queueFilters(q transaction.QueueQuery) []record.Filter {
	fs := append(spanFilters(q.Span), record.Sent("id", q.ID), record.Sent("user_id", q.UserID),
		record.Sent("address", q.Address), record.Sent("address_tag", q.AddressTag),
		record.Sent("external_id", q.ExternalID), record.Sent("attempt_identifier", q.Attempt),
		record.Sent("tx_id", q.TxID), record.Sent("status", q.Status), record.Among("asset_id", q.Assets))
	if q.Active != nil && *q.Active {
		fs = append(fs, record.Where("status NOT IN (4, 11, 12)"))
	} else if q.Active != nil {
		fs = append(fs, record.Where("status NOT BETWEEN 5 AND 10"))
	}
	if q.Name != nil {
		fs = append(fs, account.PartOfName("u.folded", "u.full_name", q.Name).
			Within("EXISTS (SELECT 1 FROM users AS u WHERE u.id = q.user_id AND ", ")"))
	}
	return fs
}

func processFilters(q transaction.ProcessQuery) []record.Filter {
	return append(spanFilters(q.Span), record.Is("user_id", q.UserID), record.Among("asset_id", q.Assets))
}

func (s Transactions) Deposits(ctx context.Context, ids ...string) ([]transaction.Deposit, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return deposits.List(ctx, s.db, record.Part{Where: []record.Filter{record.Among("id", ids)}})
}

type holderRow struct {
	bun.BaseModel `bun:"table:account,alias:a"`

	Kind    string
	Owner   string
	AssetID int64
}

var holders = record.Table[holderRow, ledger.Account]{
	Absent: "no account has this address",
	Record: func(r holderRow) (ledger.Account, error) {
		return ledger.Account{Kind: ledger.Kind(r.Kind), Owner: r.Owner, Asset: r.AssetID}, nil
	},
}

// Holder reads the account to which an address was given.
func (s Transactions) Holder(ctx context.Context, address string) (ledger.Account, error) {
	return holders.Find(ctx, s.db, record.Where("a.id = (SELECT c.account_id FROM coin_address AS c WHERE c.address = ?)",
		address))
}

func (s Transactions) Waiting(ctx context.Context, q transaction.WaitingQuery,
	p page.Query[transaction.Place]) (page.Of[transaction.Deposit], error) {
	return record.ListPage(ctx, s.db, deposits, p, record.ByID, waitingFilters(q))
}

func (s Transactions) Withdrawal(ctx context.Context, id string) (transaction.Withdrawal, error) {
	return withdrawals.Find(ctx, s.db, record.Is("id", id))
}

func (s Transactions) Queued(ctx context.Context, id string) (transaction.Queued, error) {
	return queued.Find(ctx, s.db, record.Is("id", id))
}

// Desk returns how many withdrawals a user has requested.
func (s Transactions) Desk(ctx context.Context, userID string) (version int64, err error) {
	var rows []deskRow
	err = s.db.Find(ctx, &rows, "user_id = $1", "", userID)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Version, nil
}

func (s Transactions) Queue(ctx context.Context, q transaction.QueueQuery,
	p page.Query[transaction.Place]) (page.Of[transaction.Entry], error) {
	return record.ListPage(ctx, s.db, entries, p, record.ByID, queueFilters(q))
}

func (s Transactions) Processes(ctx context.Context, q transaction.ProcessQuery,
	p page.Query[transaction.Place]) (page.Of[transaction.Process], error) {
	return record.ListPage(ctx, s.db, processes, p, record.ByID, processFilters(q))
}

// DepositBacklog is the query of the backlog of the deposits pending treasury approval; see record.Table.Backlog.
func DepositBacklog(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
	return deposits.Backlog(ctx, db, most, "at", waitingFilters(transaction.WaitingQuery{Treasury: true})...)
}

// WithdrawalBacklog is the query of the backlog of the active withdrawals of the queue; see record.Table.Backlog.
func WithdrawalBacklog(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
	return queued.Backlog(ctx, db, most, "at", queueFilters(transaction.QueueQuery{Active: new(true)})...)
}

// HeldBacklog is the query of the backlog of the withdrawals that wait for approval, by the beginning of their holds.
func HeldBacklog(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
	return queued.Backlog(ctx, db, most, "CASE WHEN held_at > 0 THEN held_at ELSE at END",
		queueFilters(transaction.QueueQuery{Status: new(transaction.QueueWaiting)})...)
}

// trimmed is a column without blanks around it, as in migration 0106_received.
func (s Transactions) trimmed(column string) string {
	if s.db.Postgres() {
		return `btrim(` + column + ` COLLATE "C", E' \t\n\x0b\f\r')`
	}
	return "trim(" + column + ", char(9, 10, 11, 12, 13, 32))"
}

// spelled is a column as most spellings of one text have it, and unusual the condition that a row is spelled in another
// way. Both are indexed.
func (s Transactions) spelled(column string) string {
	return "replace(lower(" + s.trimmed(column) + "), '0x', '')"
}

func (s Transactions) unusual() string {
	is := " GLOB '*[^!-~]*'"
	if s.db.Postgres() {
		is = " ~ '[^!-~]'"
	}
	return "(" + s.trimmed("tx_id") + is + " OR " + s.trimmed("to_address") + is + ")"
}

// transfers are deposits in an order that no index has. In the order of ids, PostgreSQL without recent
// statistics reads the whole table by the primary key.
var transfers = record.Table[depositRead, transaction.Deposit]{
	Order: record.Keyset{Columns: "tx_id, to_address, id"}, Record: deposits.Record,
}

// reported are the deposits that other services reported.
const reported = "external_id <> ''"

// receivedFilters select the rows of spellings that SQL recognises, and those of unusual spellings.
func (s Transactions) receivedFilters(asset int64, txID string, toAddresses ...string) (usual,
	unusual []record.Filter) {
	like := func(column string, texts ...string) record.Filter {
		var forms []string
		for _, text := range texts {
			forms = append(forms, address.Spellings(text)...)
		}
		return record.Where(s.spelled(column)+" IN (?)", bun.List(forms))
	}
	of := []record.Filter{record.Where(reported), record.Is("asset_id", asset)}
	usual = append(slices.Clip(of), like("tx_id", txID))
	if len(toAddresses) > 0 {
		usual = append(usual, like("to_address", toAddresses...))
	}
	return usual, append(slices.Clip(of), record.Where(s.unusual()))
}

func (s Transactions) Received(ctx context.Context, asset int64, txID string, toAddresses ...string) (
	[]transaction.Deposit, error) {
	usual, unusual := s.receivedFilters(asset, txID, toAddresses...)
	all, err := transfers.List(ctx, s.db, record.Part{Where: usual})
	if err != nil {
		return nil, err
	}
	more, err := transfers.List(ctx, s.db, record.Part{Where: unusual})
	return append(all, more...), err
}

// spelling is a transfer as it is stored, or in the form of spelled.
type spelling struct {
	AssetID         int64
	TxID, ToAddress string
}

// candidates are the transfers of which several rows exist, or one in an unusual spelling.
func (s Transactions) candidates(ctx context.Context, most int) (several, unusual *bun.SelectQuery) {
	of := func() *bun.SelectQuery {
		return s.db.Conn(ctx).NewSelect().Table("deposit").Column("asset_id").Where(reported).Limit(int64(most))
	}
	return of().ColumnExpr(s.spelled("tx_id") + " AS tx_id").ColumnExpr(s.spelled("to_address") + " AS to_address").
			GroupExpr("1, 2, 3").Having("count(*) > 1").OrderExpr("1, 2, 3"),
		of().Column("tx_id", "to_address").Where(s.unusual())
}

// manyUnusual limits the rows in an unusual spelling that are compared.
const manyUnusual = 200

// Respelled lists transfers that are stored as several deposits, by the ids of these, at most a number of them.
func (s Transactions) Respelled(ctx context.Context, most int) (out []string, err error) {
	several, unusual := s.candidates(ctx, manyUnusual)
	var all, more []spelling
	if err := scan(ctx, s.db, several, &all); err != nil {
		return nil, err
	}
	if err := scan(ctx, s.db, unusual, &more); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, c := range append(all, more...) {
		rows, err := s.Received(ctx, c.AssetID, c.TxID, c.ToAddress)
		if err != nil {
			return nil, err
		}
		for _, ids := range sameTransfers(rows) {
			if text := strings.Join(ids, " and "); !seen[text] && len(out) < most {
				seen[text] = true
				out = append(out, text)
			}
		}
	}
	return out, nil
}

// sameTransfers returns the ids of the rows that are one transfer, oldest first, for each of which there are several.
func sameTransfers(rows []transaction.Deposit) (groups [][]string) {
	for len(rows) > 0 {
		same := func(d transaction.Deposit) bool { return d.SameTransfer(rows[0]) }
		var ids []string
		for _, d := range rows {
			if same(d) {
				ids = append(ids, d.ID)
			}
		}
		if rows = slices.DeleteFunc(slices.Clone(rows), same); len(ids) > 1 {
			slices.Sort(ids)
			groups = append(groups, ids)
		}
	}
	return groups
}

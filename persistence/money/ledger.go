// Package money keeps money and what bounds it: the ledger, currencies, rates, transactions,
// balances, blockages and limits.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at Ledger.
package money

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/domain/money/ledger"
	"castellan/persistence/engine"
)

type Ledger struct{ db *engine.DB }

var _ ledger.Store = Ledger{}

func NewLedger(db *engine.DB) Ledger { return Ledger{db} }

// scan reads what a query selects, within the time limit of a statement.
func scan(ctx context.Context, db *engine.DB, q *bun.SelectQuery, into ...any) error {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	return engine.Translate(q.Scan(ctx, into...))
}

type assetRow struct {
	bun.BaseModel `bun:"table:asset,alias:s"`

	ID   int64 `bun:",pk"`
	Unit int64
}

type accountRow struct {
	bun.BaseModel `bun:"table:account,alias:a"`

	ID      string `bun:",pk"`
	Kind    string
	Owner   string
	AssetID int64
	Bounded bool
}

// balanceRow is what a Save writes.
type balanceRow struct {
	bun.BaseModel `bun:"table:balance,alias:b"`

	AccountID string `bun:",pk"`
	PostedHi  int64
	PostedLo  int64
	LockedHi  int64
	LockedLo  int64
	Seq       int64
	Version   int64
}

// balanceRead is a balance with its account and the precision of its asset.
type balanceRead struct {
	balanceRow
	Kind    string
	Owner   string
	AssetID int64
	Unit    int64
}

type addRow struct {
	AccountID string
	Hi        int64
	Lo        int64
	Count     int64
}

type transferRow struct {
	bun.BaseModel `bun:"table:transfer,alias:t"`

	ID          string `bun:",pk"`
	GroupID     string
	Kind        string
	Ref         string
	Digest      []byte
	AssetID     int64
	Unit        int64
	DebitID     string
	CreditID    string
	Hi          int64
	Lo          int64
	Reverses    string // NULL for none
	Reason      string
	ActorID     string
	At          int64
	EffectiveAt int64
	DebitSeq    int64 // NULL for none
	CreditSeq   int64 // NULL for none
}

type holdRow struct {
	bun.BaseModel `bun:"table:hold,alias:h"`

	ID         string `bun:",pk"`
	AccountID  string
	Source     string
	SourceRef  string
	Type       string
	Hi         int64
	Lo         int64
	State      string
	TransferID string // NULL for none
	Version    int64
}

// endRow is what the end of a hold writes.
type endRow struct {
	ID         string
	State      string
	TransferID string
	Version    int64
}

var LedgerFences = []engine.Kind{
	engine.Fenced("UPDATE hold SET state = v.state, transfer_id = NULLIF(v.transfer_id, ''), version = v.version + 1 "+
		"{FROM v} WHERE hold.id = v.id AND hold.version = v.version AND hold.state = 'active' {RETURNING hold.id}",
		func(w ledger.EndHold) endRow {
			return endRow{w.Hold.ID, string(w.Hold.State), w.Hold.Transfer, w.Hold.Version}
		}),
	engine.FencedByVersion(false, func(w ledger.Save) balanceRow {
		b := w.Balance
		r := balanceRow{AccountID: b.ID(), Seq: b.Seq, Version: b.Version}
		r.PostedHi, r.PostedLo = b.Posted.Parts()
		r.LockedHi, r.LockedLo = b.Locked.Parts()
		return r
	}, "posted_hi", "posted_lo", "locked_hi", "locked_lo", "seq"),
}

var LedgerWrites = []engine.Kind{
	engine.Insert(dayRowOf),
	engine.Update("INSERT INTO asset (id, unit) SELECT v.id, v.unit {FROM v} "+
		"WHERE NOT EXISTS (SELECT 1 FROM asset s WHERE s.id = v.id AND s.unit <= v.unit)",
		func(w ledger.AddAsset) assetRow { return assetRow{ID: w.ID, Unit: w.Unit} }),
	engine.Update("INSERT INTO account (id, kind, owner, asset_id, bounded) "+
		"SELECT v.id, v.kind, v.owner, v.asset_id, v.bounded {FROM v} "+
		"WHERE NOT EXISTS (SELECT 1 FROM account a WHERE a.id = v.id)",
		func(w ledger.Open) accountRow {
			a := w.Account
			return accountRow{ID: a.ID(), Kind: string(a.Kind), Owner: a.Owner, AssetID: a.Asset, Bounded: a.Bounded()}
		}),
	engine.Update("INSERT INTO transfer (id, group_id, kind, ref, digest, asset_id, unit, debit_id, credit_id, hi, lo, "+
		"reverses, reason, actor_id, at, effective_at, debit_seq, credit_seq) SELECT v.id, v.group_id, v.kind, v.ref, "+
		"v.digest, v.asset_id, v.unit, v.debit_id, v.credit_id, v.hi, v.lo, NULLIF(v.reverses, ''), v.reason, "+
		"v.actor_id, v.at, v.effective_at, NULLIF(v.debit_seq, 0), NULLIF(v.credit_seq, 0) {FROM v}",
		func(w ledger.Post) transferRow { return transferRowOf(w.Transfer) }),
	engine.Update("INSERT INTO hold (id, account_id, source, source_ref, type, hi, lo, state, transfer_id, version) "+
		"SELECT v.id, v.account_id, v.source, v.source_ref, v.type, v.hi, v.lo, v.state, NULLIF(v.transfer_id, ''), "+
		"v.version {FROM v}",
		func(w ledger.Take) holdRow {
			h := w.Hold
			r := holdRow{ID: h.ID, AccountID: h.Account.ID(), Source: h.Source, SourceRef: h.Ref, Type: h.Type,
				State: string(h.State), TransferID: h.Transfer, Version: h.Version}
			r.Hi, r.Lo = h.Amount.Parts()
			return r
		}),
}

// LedgerDeltas adds to balances. A bounded one keeps out by its foreign key: it is
// told that it is unbounded.
var LedgerDeltas = []engine.Kind{
	engine.Summed("UPDATE balance SET bounded = FALSE, "+
		"posted_hi = balance.posted_hi + v.hi + (balance.posted_lo + v.lo) / 1000000000000000000, "+
		"posted_lo = (balance.posted_lo + v.lo) % 1000000000000000000, "+
		"seq = balance.seq + v.count, version = balance.version + 1 {FROM v} WHERE balance.account_id = v.account_id",
		func(w ledger.Add) addRow {
			r := addRow{AccountID: w.Account.ID(), Count: w.Count}
			r.Hi, r.Lo = w.Amount.Parts()
			return r
		}),
}

func transferRowOf(t ledger.Transfer) transferRow {
	digest := t.Digest()
	r := transferRow{ID: t.ID, GroupID: t.Group, Kind: t.Kind, Ref: t.Ref, Digest: digest[:], AssetID: t.Debit.Asset,
		Unit: t.Unit, DebitID: t.Debit.ID(), CreditID: t.Credit.ID(), Reverses: t.Reverses, Reason: t.Reason,
		ActorID: t.ActorID, At: engine.Millis(t.At), EffectiveAt: engine.Millis(t.EffectiveAt), DebitSeq: t.DebitSeq,
		CreditSeq: t.CreditSeq}
	r.Hi, r.Lo = t.Amount.Parts()
	return r
}

func (r transferRow) transfer() (ledger.Transfer, error) {
	t := ledger.Transfer{ID: r.ID, Group: r.GroupID, Kind: r.Kind, Ref: r.Ref, Unit: r.Unit, Reverses: r.Reverses,
		Reason: r.Reason, ActorID: r.ActorID, At: engine.Time(r.At), EffectiveAt: engine.Time(r.EffectiveAt),
		DebitSeq:  r.DebitSeq,
		CreditSeq: r.CreditSeq}
	var err error
	if t.Debit, err = accountOf(r.DebitID); err == nil {
		t.Credit, err = accountOf(r.CreditID)
	}
	if err == nil {
		t.Amount, err = amount.Of(r.Hi, r.Lo)
	}
	return t, err
}

func accountOf(id string) (a ledger.Account, err error) {
	kind, rest, _ := strings.Cut(id, "/")
	asset, owner, whole := strings.Cut(rest, "/")
	a.Kind, a.Owner = ledger.Kind(kind), owner
	if a.Asset, err = strconv.ParseInt(asset, 10, 64); err != nil || !whole {
		return a, fmt.Errorf("a stored account is called %q", id)
	}
	return a, nil
}

func (r holdRow) hold() (ledger.Hold, error) {
	h := ledger.Hold{ID: r.ID, Source: r.Source, Ref: r.SourceRef, Type: r.Type, State: ledger.State(r.State),
		Transfer: r.TransferID, Version: r.Version}
	var err error
	if h.Account, err = accountOf(r.AccountID); err == nil {
		h.Amount, err = amount.Of(r.Hi, r.Lo)
	}
	return h, err
}

func (r balanceRead) balance() (ledger.Balance, error) {
	b := ledger.Balance{Account: ledger.Account{Kind: ledger.Kind(r.Kind), Owner: r.Owner, Asset: r.AssetID},
		Seq: r.Seq, Version: r.Version, Unit: r.Unit}
	var err error
	if b.Posted, err = amount.Of(r.PostedHi, r.PostedLo); err == nil {
		b.Locked, err = amount.Of(r.LockedHi, r.LockedLo)
	}
	return b, err
}

// balanceColumns reads balances with their accounts.
func balanceQuery(where, order string) engine.Query {
	return engine.Query{
		From: "balance AS b JOIN account AS a ON a.id = b.account_id",
		Columns: "b.account_id, b.posted_hi, b.posted_lo, b.locked_hi, b.locked_lo, b.seq, b.version, a.kind, a.owner, " +
			"a.asset_id, (SELECT MIN(s.unit) FROM asset s WHERE s.id = a.asset_id) AS unit",
		Where: where, Order: order,
	}
}

var (
	balancesByID    = balanceQuery("b.account_id IN ($1, $2)", "")
	balancesByOwner = balanceQuery("a.kind = $1 AND a.owner = $2", "a.asset_id")
)

func (s Ledger) Balances(ctx context.Context, accounts ...ledger.Account) ([]ledger.Balance, error) {
	var out []ledger.Balance
	for two := range slices.Chunk(accounts, 2) {
		var rows []balanceRead
		if err := s.db.Ask(ctx, &rows, balancesByID, two[0].ID(), two[len(two)-1].ID()); err != nil {
			return nil, err
		}
		read, err := balancesOf(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, read...)
	}
	return out, nil
}

func (s Ledger) Owned(ctx context.Context, userID string) ([]ledger.Balance, error) {
	var rows []balanceRead
	if err := s.db.Ask(ctx, &rows, balancesByOwner, string(ledger.User), userID); err != nil {
		return nil, err
	}
	return balancesOf(rows)
}

func balancesOf(rows []balanceRead) (out []ledger.Balance, err error) {
	for _, r := range rows {
		b, err := r.balance()
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func (s Ledger) Unit(ctx context.Context, asset int64) (int64, error) {
	var rows []assetRow
	err := s.db.Find(ctx, &rows, "id = $1", "unit", asset)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].Unit, nil
}

func (s Ledger) ByRef(ctx context.Context, kind, ref string) (ledger.Transfer, error) {
	var row transferRow
	if err := s.db.Find(ctx, &row, "kind = $1 AND ref = $2", "", kind, ref); err != nil {
		return ledger.Transfer{}, err
	}
	return row.transfer()
}

func (s Ledger) Hold(ctx context.Context, id string) (ledger.Hold, error) {
	return s.hold(ctx, "id = $1", id)
}

func (s Ledger) HoldByRef(ctx context.Context, source, ref string) (ledger.Hold, error) {
	return s.hold(ctx, "source = $1 AND source_ref = $2", source, ref)
}

func (s Ledger) hold(ctx context.Context, where string, args ...any) (ledger.Hold, error) {
	var row holdRow
	if err := s.db.Find(ctx, &row, where, "", args...); err != nil {
		return ledger.Hold{}, err
	}
	return row.hold()
}

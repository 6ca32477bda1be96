package money

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type depositRow struct {
	ID         string
	UserID     string
	AssetID    int64
	Amount     record.AmountColumns `bun:"embed:"`
	Status     int
	TxID       string
	ToAddress  string
	SenderInfo string
	TransferID string // NULL for none
	At         int64

	ExternalID, FromAddress string
	Initiator               string
}

// addDepositRow is what a new deposit writes.
type addDepositRow struct {
	depositRow
	Facts string
}

type withdrawalRow struct {
	ID         string
	UserID     string
	AssetID    int64
	Amount     record.AmountColumns `bun:"embed:"`
	Fee        record.AmountColumns `bun:"embed:fee_"`
	Status     int
	ToAddress  string
	TransferID string // NULL for none
	HoldID     string // NULL for none
	At         int64
	Initiator  string

	OrderDigest, OwnerMethods string
	OwnerResistant            bool
	Destination, Device       string
}

// addWithdrawalRow is what a new withdrawal writes.
type addWithdrawalRow struct {
	withdrawalRow
	Facts string
}

// setDepositRow is what a change of a deposit writes.
type setDepositRow struct {
	ID         string
	Status     int
	SenderInfo string
	TransferID string
	JobID      string
	Facts      string
	Version    int64
}

// setWithdrawalRow is what a change of a withdrawal writes.
type setWithdrawalRow struct {
	ID         string
	Status     int
	Fee        record.AmountColumns `bun:"embed:fee_"`
	TransferID string
	Version    int64
}

type queuedRow struct {
	bun.BaseModel `bun:"table:withdrawal_queue,alias:q"`

	ID                string `bun:",pk"`
	UserID            string
	AssetID           int64
	Status            int
	Address           string
	AddressTag        string
	ExternalID        string
	AttemptIdentifier string
	TxID              string
	Reason            string
	OwnFee            bool
	Fee               record.AmountColumns `bun:"embed:fee_"`
	At                int64
	Version           int64
}

// heldColumns belong to an entry of the queue, but its withdrawal has them: 0.9 fails at new columns of the queue.
type heldColumns struct {
	HoldReason string
	HeldAt     int64
	HoldUntil  int64
	HoldRules  string
	ResumedAt  int64
	Claim      string
	ClaimedAt  int64
	LeftAt     int64
}

type heldRow struct {
	ID string
	heldColumns
}

// queuedRead is an entry of the queue.
type queuedRead struct {
	bun.BaseModel `bun:"table:withdrawal_queue,alias:q"`

	queuedRow
	heldColumns
}

// heldColumn are the columns of heldColumns.
const heldColumn = "hold_reason, held_at, hold_until, hold_rules, resumed_at, claim, claimed_at, left_at"

var queued = record.Of(record.Table[queuedRead, transaction.Queued]{
	Order: newestFirst,
	Join: func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ColumnExpr("q.*, " + heldColumn).
			Join("JOIN (SELECT id AS held_id, " + heldColumn + " FROM withdrawal) AS h ON h.held_id = q.id")
	},
	Reads: func(r queuedRead, q *transaction.Queued) error {
		q.Held.Asks = r.HoldRules
		if q.Status == transaction.QueueWaiting { // earlier versions leave the reason of a withdrawal that they resume
			q.Held = transaction.Held{Reason: transaction.HeldFor(r.HoldReason), Since: engine.Time(r.HeldAt),
				Until: engine.Time(r.HoldUntil), Asks: r.HoldRules}
		}
		fee, err := r.Fee.Amount()
		if r.OwnFee {
			q.Fee = &fee
		}
		return err
	},
	Writes: func(q transaction.Queued, r *queuedRead) {
		r.HoldReason, r.HoldRules = string(q.Held.Reason), q.Held.Asks
		r.HeldAt, r.HoldUntil = engine.Millis(q.Held.Since), engine.Millis(q.Held.Until)
		if r.Version = max(q.Version, 1); q.Fee != nil {
			r.OwnFee, r.Fee = true, record.ColumnsOf(*q.Fee)
		}
	},
}, record.Names{"AssetID": "Asset", "AttemptIdentifier": "Attempt", "OwnFee": "", "Fee": "", "HoldReason": "",
	"HeldAt": "", "HoldUntil": "", "HoldRules": ""}, "Fee", "Held")

type processRow struct {
	bun.BaseModel `bun:"table:process,alias:p"`

	ID            string `bun:",pk"`
	TransactionID string
	UserID        string
	AssetID       int64
	TxID          string
	Internal      bool
	Status        int
	At            int64
}

type coinAddressRow struct {
	AccountID string
	Address   string
	CreatedAt int64
}

// TransactionFences come after GateFences: triggers of movements lock totals, and transactions lock gates before them.
var TransactionFences = []engine.Kind{
	engine.Fenced("UPDATE deposit SET status = v.status, sender_info = v.sender_info, "+
		"transfer_id = NULLIF(v.transfer_id, ''), job_id = v.job_id, "+
		"facts = CASE WHEN deposit.facts = '' THEN v.facts ELSE deposit.facts END, version = v.version + 1 {FROM v} "+
		"WHERE deposit.id = v.id AND deposit.version = v.version {RETURNING deposit.id}",
		func(w transaction.SetDeposit) setDepositRow {
			d := w.Deposit
			return setDepositRow{d.ID, int(d.Status), d.SenderInfo, d.TransferID, d.JobID, d.Facts, d.Version}
		}),
	// Before the withdrawal, as a move without SetWithdrawal locks them (SetHeld).
	engine.FencedByVersion(false, func(w transaction.SetQueued) queuedRow { return queued.Row(w.Queued).queuedRow },
		"status", "tx_id", "reason"),
	engine.Fenced("UPDATE withdrawal SET status = v.status, fee_hi = v.fee_hi, fee_lo = v.fee_lo, "+
		"transfer_id = NULLIF(v.transfer_id, ''), version = v.version + 1 {FROM v} "+
		"WHERE withdrawal.id = v.id AND withdrawal.version = v.version {RETURNING withdrawal.id}",
		func(w transaction.SetWithdrawal) setWithdrawalRow {
			d := w.Withdrawal
			return setWithdrawalRow{d.ID, int(d.Status), record.ColumnsOf(d.Fee), d.TransferID, d.Version}
		}),
	engine.FencedByVersion(true, func(w transaction.SetDesk) deskRow {
		return deskRow{UserID: w.UserID, ChangedAt: engine.Millis(w.At), Version: max(w.Version, 1)}
	}, "changed_at"),
}

// deskRow counts the withdrawals that a user has requested.
type deskRow struct {
	bun.BaseModel `bun:"table:withdrawal_desk,alias:k"`

	UserID    string `bun:",pk"`
	ChangedAt int64
	Version   int64
}

var TransactionWrites = []engine.Kind{
	engine.Update("INSERT INTO coin_address (account_id, address, created_at) SELECT v.account_id, v.address, "+
		"v.created_at {FROM v} WHERE NOT EXISTS (SELECT 1 FROM coin_address c WHERE c.account_id = v.account_id)",
		func(w transaction.AddAddress) coinAddressRow {
			return coinAddressRow{w.Account.ID(), transaction.Address(w.Account), engine.Millis(w.At)}
		}),
	engine.Update("INSERT INTO deposit (id, user_id, asset_id, hi, lo, status, tx_id, to_address, sender_info, "+
		"transfer_id, at, external_id, from_address, initiator, facts, version) "+
		"SELECT v.id, v.user_id, v.asset_id, v.hi, v.lo, v.status, v.tx_id, v.to_address, v.sender_info, "+
		"NULLIF(v.transfer_id, ''), v.at, v.external_id, v.from_address, v.initiator, v.facts, 1 {FROM v}",
		func(w transaction.AddDeposit) addDepositRow {
			d := w.Deposit // by hand: this is the row of every adjustment
			return addDepositRow{depositRow{ID: d.ID, UserID: d.UserID, AssetID: d.Asset, Amount: record.ColumnsOf(d.Amount),
				Status: int(d.Status), TxID: d.TxID, ToAddress: d.ToAddress, SenderInfo: d.SenderInfo,
				TransferID: d.TransferID, At: engine.Millis(d.At), ExternalID: d.ExternalID, FromAddress: d.FromAddress,
				Initiator: string(d.Initiator)}, d.Facts}
		}),
	engine.Update("INSERT INTO withdrawal (id, user_id, asset_id, hi, lo, fee_hi, fee_lo, status, to_address, "+
		"transfer_id, hold_id, at, initiator, order_digest, owner_methods, owner_resistant, destination, "+
		"device, facts, version) "+
		"SELECT v.id, v.user_id, v.asset_id, v.hi, v.lo, v.fee_hi, v.fee_lo, v.status, v.to_address, "+
		"NULLIF(v.transfer_id, ''), NULLIF(v.hold_id, ''), v.at, v.initiator, v.order_digest, v.owner_methods, "+
		"v.owner_resistant, v.destination, v.device, v.facts, 1 {FROM v}",
		func(w transaction.AddWithdrawal) addWithdrawalRow {
			return addWithdrawalRow{withdrawals.Row(w.Withdrawal).withdrawalRow, w.Withdrawal.Facts}
		}),
	engine.Insert(func(w transaction.AddQueued) queuedRow { return queued.Row(w.Queued).queuedRow }),
	engine.Update("UPDATE withdrawal SET hold_reason = v.hold_reason, held_at = v.held_at, hold_until = v.hold_until, "+
		"hold_rules = v.hold_rules, resumed_at = v.resumed_at, claim = v.claim, claimed_at = v.claimed_at, "+
		"left_at = v.left_at {FROM v} WHERE withdrawal.id = v.id",
		func(w transaction.SetHeld) heldRow { return heldRow{w.Queued.ID, queued.Row(w.Queued).heldColumns} }),
	addApproval,
	engine.Insert(func(w transaction.AddProcess) processRow { return processes.Row(w.Process).processRow }),
}

type restoredRow struct {
	bun.BaseModel `bun:"table:restore_withdrawal,alias:r"`

	ID        string `bun:",pk"`
	Status    int
	Outcome   string // "" until it was compared
	SettledAt int64
}

func (s Transactions) Restored(ctx context.Context, id string) (open, waits bool, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	err = s.db.Conn(ctx).NewRaw("SELECT EXISTS (SELECT 1 FROM restore WHERE finished_at = 0), "+
		"EXISTS (SELECT 1 FROM restore_withdrawal WHERE id = ? AND outcome = '')", id).Scan(ctx, &open, &waits)
	return open, waits, engine.Translate(err)
}

func (s Transactions) Uncompared(ctx context.Context) (all []transaction.Uncompared, err error) {
	var rows []restoredRow
	if err := s.db.Conn(ctx).NewSelect().Model(&rows).Where("outcome = ''").Order("id").Scan(ctx); err != nil {
		return nil, engine.Translate(err)
	}
	for _, r := range rows {
		q, err := s.Queued(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, transaction.Uncompared{Queued: q, Former: transaction.QueueStatus(r.Status)})
	}
	return all, nil
}

func (s Transactions) Compared(ctx context.Context, id string, sent bool, now time.Time) error {
	outcome := transaction.MarkedUnsent
	if sent {
		outcome = transaction.MarkedSent
	}
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewUpdate().Model((*restoredRow)(nil)).Set("outcome = ?", string(outcome)).
			Set("settled_at = ?", engine.Millis(now)).Where("id = ?", id).Exec(ctx)
		return err
	})
}

func (s Transactions) Finished(ctx context.Context, now time.Time) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewUpdate().Table("restore").Set("finished_at = ?", engine.Millis(now)).Where("finished_at = 0").
			Exec(ctx)
		return err
	})
}

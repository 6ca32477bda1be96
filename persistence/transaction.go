package persistence

import (
	"castellan/domain/transaction"
	"castellan/persistence/engine"
)

type depositRow struct {
	ID         string
	UserID     string
	AssetID    int64
	Hi         int64
	Lo         int64
	Status     int
	TxID       string
	ToAddress  string
	SenderInfo string
	TransferID string // NULL for none
	At         int64
}

type withdrawalRow struct {
	ID         string
	UserID     string
	AssetID    int64
	Hi         int64
	Lo         int64
	FeeHi      int64
	FeeLo      int64
	Status     int
	ToAddress  string
	TransferID string // NULL for none
	HoldID     string // NULL for none
	At         int64
}

type coinAddressRow struct {
	AccountID string
	Address   string
	CreatedAt int64
}

var transactionWrites = []engine.Kind{
	engine.Update("INSERT INTO coin_address (account_id, address, created_at) SELECT v.account_id, v.address, "+
		"v.created_at {FROM v} WHERE NOT EXISTS (SELECT 1 FROM coin_address c WHERE c.account_id = v.account_id)",
		func(w transaction.AddAddress) coinAddressRow {
			return coinAddressRow{w.Account.ID(), transaction.Address(w.Account), ms(w.At)}
		}),
	engine.Update("INSERT INTO deposit (id, user_id, asset_id, hi, lo, status, tx_id, to_address, sender_info, "+
		"transfer_id, at, version) SELECT v.id, v.user_id, v.asset_id, v.hi, v.lo, v.status, v.tx_id, v.to_address, "+
		"v.sender_info, NULLIF(v.transfer_id, ''), v.at, 1 {FROM v}",
		func(w transaction.AddDeposit) depositRow {
			d := w.Deposit
			r := depositRow{ID: d.ID, UserID: d.UserID, AssetID: d.Asset, Status: int(d.Status), TxID: d.TxID,
				ToAddress: d.ToAddress, SenderInfo: d.SenderInfo, TransferID: d.TransferID, At: ms(d.At)}
			r.Hi, r.Lo = d.Amount.Parts()
			return r
		}),
	engine.Update("INSERT INTO withdrawal (id, user_id, asset_id, hi, lo, fee_hi, fee_lo, status, to_address, "+
		"transfer_id, hold_id, at, version) SELECT v.id, v.user_id, v.asset_id, v.hi, v.lo, v.fee_hi, v.fee_lo, "+
		"v.status, v.to_address, NULLIF(v.transfer_id, ''), NULLIF(v.hold_id, ''), v.at, 1 {FROM v}",
		func(w transaction.AddWithdrawal) withdrawalRow {
			d := w.Withdrawal
			r := withdrawalRow{ID: d.ID, UserID: d.UserID, AssetID: d.Asset, Status: int(d.Status),
				ToAddress: d.ToAddress, TransferID: d.TransferID, HoldID: d.HoldID, At: ms(d.At)}
			r.Hi, r.Lo = d.Amount.Parts()
			r.FeeHi, r.FeeLo = d.Fee.Parts()
			return r
		}),
}

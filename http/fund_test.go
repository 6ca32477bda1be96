package httpapi_test

import (
	"context"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/internal/blackbox"
	"castellan/persistence/money"
)

// fund gives the user what no endpoint makes: deposits that wait for the treasury, and
// withdrawals that wait for the hot wallet. Of each the examples move one.
func (l *live) fund() {
	l.t.Helper()
	ctx := context.Background()
	v, err := app.Open(ctx, l.cfg)
	storetest.Must(l.t, err)
	defer v.Close()
	catalog, err := currency.Load(ctx, money.NewCurrencies(v.DB))
	storetest.Must(l.t, err)
	pair, _ := catalog.Info(new("BTC"), new("BTC"))
	books := &ledger.Ledger{Store: money.NewLedger(v.DB), Commit: v.DB, Now: time.Now,
		Decimals: func(_ context.Context, asset int64) (int, error) { return catalog.Decimals(asset) }}
	do := func(m ledger.Movement) {
		_, err := books.Do(ctx, audit.Operator, m)
		storetest.Must(l.t, err)
	}
	now := time.Now().UTC()
	waiting := transaction.Deposit{ID: id.New(now), UserID: l.user.ID, Asset: pair.ID, Amount: amount.Must("0.25"),
		Status: transaction.WaitingTreasury, TxID: "4a5e1e4b", ToAddress: "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
		SenderInfo: `{"name":"Ada Lovelace"}`, At: now}
	do(transaction.Receive(waiting))
	another := waiting
	another.ID = id.New(now)
	do(transaction.Receive(another))
	paid := waiting
	paid.ID, paid.Status = id.New(now), transaction.Finalized
	do(transaction.Receive(paid))
	out := transaction.Withdrawal{UserID: l.user.ID, Asset: pair.ID, Amount: amount.Must("0.1"),
		ToAddress: waiting.ToAddress, At: now}
	for range 2 {
		out.ID = id.New(now)
		m, err := transaction.Enqueue(out, transaction.Queued{Status: transaction.HotWalletIsEmpty, TxID: "4a5e1e4b"},
			amount.Amount{})
		storetest.Must(l.t, err)
		do(m)
	}
	l.said["deposit"] = map[string]any{"waiting": waiting.ID}
	l.said["withdrawal"] = map[string]any{"queued": out.ID}
}

// limit adds a limit of the service shop, and the role that may count under it.
func (l *live) limit() {
	l.t.Helper()
	who := blackbox.Headers{"x-auth": l.admin.xAuth}
	var resources []struct {
		ResourceID   int64
		ResourceCode string
	}
	l.Ok(l.t, "GET", "/resource/resources?resourceContext=API", nil, who).Read(l.t, &resources)
	var role struct{ Data struct{ ID int64 } }
	l.Ok(l.t, "POST", "/admin/roles", `{"code":"shop","name":"Shop"}`, who).Read(l.t, &role)
	for _, r := range resources {
		if r.ResourceCode == "POST /limit" {
			l.Ok(l.t, "POST", "/admin/role-resource-permission",
				map[string]any{"roleId": role.Data.ID, "resourceId": r.ResourceID, "permission": "ALLOW"}, who)
		}
	}
	l.Ok(l.t, "POST", "/admin/system/waf/rules", `{"appId":"shop","label":"shop-orders","type":"rate_limit",
		"period":60000,"limit":100000,"expireAt":0,"targetEntityType":"IP","targetResources":["LIMIT orders"],
		"status":"ACTIVE"}`, who)
}

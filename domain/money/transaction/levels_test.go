package transaction_test

import (
	"testing"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
	"castellan/domain/money/limit"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// A changed level applies to the next withdrawal, and the displayed remaining amount is the enforced one. Withdrawals,
// displayed limits and changes have separate stores, as on three nodes.
func TestChangedLevelIsEnforcedAsShown(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) { changedLevel(t, newDesk(t, db, "u")) })
}

func changedLevel(t *testing.T, d *desk) {
	t.Helper()
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "10"))
	node := func() *limit.Service {
		return &limit.Service{Users: account.NewUsers(d.m.DB), Levels: money.NewLevels(d.m.DB),
			Store: money.NewLimits(d.m.DB), Rates: quotes{}, Catalog: d.m.Currencies.Catalog, Now: d.now}
	}
	keeper := &level.Service{Store: money.NewLevels(d.m.DB),
		Changes: admin.Changes{Commit: d.m.DB, Now: d.now}}
	shown := node()
	d.Limits = node()
	for _, step := range []struct {
		daily string // of the level, in TRY
		ask   int64  // hundredths of a BTC, each worth 1 TRY
		want  fault.Code
		left  string // after it
	}{
		{"40", 50, fault.LimitExceeded, "40"},
		{"60", 50, "", "10"},
		{"50", 1, fault.LimitExceeded, "0"},
		{"51", 1, "", "0"},
		{"10", 1, fault.LimitExceeded, "0"},
		{"100", 50, fault.LimitExceeded, "49"},
		{"100", 49, "", "0"},
	} {
		_, err := keeper.Change(t.Context(), audit.By{UserID: "boss"}, 0, func(l *level.Level) {
			l.SendCryptoDaily, l.SendCryptoMonthly = amount.Must(step.daily), amount.Must("1000")
			l.SendTryDaily, l.SendTryMonthly = amount.Must("1000"), amount.Must("1000")
		})
		storetest.Must(t, err)
		if _, err = d.ask("u", "BTC", step.ask, step.daily+"/"+step.left); fault.CodeOf(err) != step.want {
			t.Errorf("%+v: %v", step, err)
		}
		info, err := shown.Of(t.Context(), "u")
		if storetest.Must(t, err); info.DebitDaily.String() != step.left {
			t.Errorf("%+v: %s is shown as left", step, info.DebitDaily)
		}
	}
}

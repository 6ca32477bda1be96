package money_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/limit"
	"castellan/domain/money/rate"
	"castellan/domain/money/transaction"
	"castellan/http/apitest"
	"castellan/http/edge"
	httplimit "castellan/http/money/limit"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	moneystore "castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// REQ-USR-01, REQ-USR-06, D-USR-03, D-USR-09: the shape to the last key, before and
// after deposits and a withdrawal.
func TestLimitInfo(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, rates := t.Context(), moneystore.NewRates(db)
		clock := func() time.Time { return now }
		house := persistencetest.MoneyIn(t, db, clock)
		for i, id := range []string{"jane", "admin"} {
			house.User(id, func(u *user.User) { u.Phone, u.Level = fmt.Sprint("+90532123456", i), 1-i })
		}
		parameters := kit.NewParameters(db)
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			if err := parameter.Seed(ctx, parameters); err != nil {
				return err
			}
			return parameter.Treasury.Change(ctx, parameters, func(parameter.Addresses) (parameter.Addresses, error) {
				return parameter.Addresses{"BTC": {"BTC": "bc1treasury"}}, nil
			})
		}))
		_, err := rates.Add(ctx, "test", []rate.Quote{{Pair: rate.Pair{Base: "BTC", Quote: "TRY"},
			Rate: rate.Must("4000000"), At: now.Add(-time.Hour)}})
		storetest.Must(t, err)
		live := parameter.NewCache(parameters)
		storetest.Must(t, live.Reload(ctx))
		money := &transaction.Service{Users: account.NewUsers(db), Currencies: house.Currencies, Parameters: live,
			Now: clock, Ledger: house.Ledger}
		s := apitest.Serve(t, edge.Options{}, httplimit.Group{Service: &limit.Service{Users: account.NewUsers(db),
			Levels: moneystore.NewLevels(db), Store: moneystore.NewLimits(db), Rates: rates, Catalog: house.Currencies.Catalog,
			Now: clock}})
		shape := func(creditDay, debitDay, creditMonth, debitMonth string) string {
			return strings.NewReplacer("$1", creditDay, "$2", debitDay, "$3", creditMonth, "$4", debitMonth).Replace(
				`{"userId":"jane","levelId":1,"levelLabel":"Confirmed","sendLimitTRYDaily":50000,"sendLimitCryptoDaily":50000,` +
					`"sendLimitTRYMonthly":500000,"sendLimitCryptoMonthly":500000,"receiveLimitTRYDaily":100000,` +
					`"receiveLimitCryptoDaily":100000,"creditRemainingDaily":$1,"debitRemainingDaily":$2,` +
					`"creditRemainingMonthly":$3,"debitRemainingMonthly":$4}`)
		}
		wants := func(want string) {
			t.Helper()
			s.As("jane").Wants("GET /user/limit-info?userId=admin", "", 200, want)
			s.Wants("GET /admin/user/limit-info?userId=jane", "", 200, want)
		}
		wants(shape("100000", "50000", "3000000", "500000"))
		for i, d := range []transaction.Direction{transaction.Credit, transaction.Credit, transaction.Debit} {
			_, err := money.Adjust(ctx, audit.By{UserID: "admin"}, transaction.Adjustment{UserID: "jane", CurrencyCode: "BTC",
				NetworkCode: "BTC", Amount: amount.Must("0.00500001"), Direction: d, UniqueID: fmt.Sprint(i)})
			storetest.Must(t, err)
		}
		wants(shape("59999.92", "29999.96", "2959999.92", "479999.96"))

		if _, own := s.Call("GET /admin/user/limit-info", ""); !strings.HasPrefix(own, `{"userId":"admin","levelId":0,`) {
			t.Errorf("without an account: %s", own)
		}
		s.Wants("GET /admin/user/limit-info?userId=nobody", "", 404, "RECORD_NOT_FOUND")
		s.Wants("GET /admin/user/limit-info?userId=", "", 400, "INVALID_FIELD userId")
	})
}

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
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/balance"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpbalance "castellan/http/money/balance"
	"castellan/persistence"
	accountstore "castellan/persistence/account"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// now is shortly after noon of the last day.
var now = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)

type site struct {
	*apitest.Site
	*testing.T
	db    *persistence.DB
	store money.Balances
	refs  int
}

// balanceBoth serves the endpoints over the catalogue of a new installation: 3 and 4 are USDT on ETH and TRX.
func balanceBoth(t *testing.T, test func(s *site)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		house, store := persistencetest.MoneyIn(t, db, time.Now), money.NewBalances(db)
		live := house.Currencies
		house.User("jane", func(u *user.User) { u.Phone = "+905321234567" })
		house.User("firm", func(u *user.User) { u.Phone, u.Type = "+905321234568", user.Corporate })
		group := httpbalance.Group{Live: live, Ledger: money.NewLedger(db), User: accountstore.NewUsers(db).Get,
			Service: &balance.Service{Store: store, Now: func() time.Time { return now },
				Code: func(asset int64) (string, error) { p, err := live.Asset(asset); return p.Currency.Code, err }}}
		test(&site{apitest.Serve(t, edge.Options{}, group).Below("/"), t, db, store, 0})
	})
}

func (s *site) do(at time.Time, m ledger.Movement) {
	s.Helper()
	l := &ledger.Ledger{Store: money.NewLedger(s.db), Commit: s.db, Now: func() time.Time { return at },
		Decimals: func(context.Context, int64) (int, error) { return 18, nil }}
	_, err := l.Do(s.Context(), audit.By{UserID: "admin"}, m)
	storetest.Must(s, err)
}

func balanceAccount(owner string, asset int64) ledger.Account {
	if owner == "" {
		return ledger.Account{Kind: ledger.Treasury, Asset: asset}
	}
	return ledger.Account{Kind: ledger.User, Owner: owner, Asset: asset}
}

// move moves an amount at a time; "" is the treasury.
func (s *site) move(at time.Time, from, to string, asset int64, sum string) {
	s.Helper()
	s.refs++
	s.do(at, ledger.Movement{Transfers: []ledger.Transfer{ledger.New(at, "test", fmt.Sprint(s.refs),
		balanceAccount(from, asset), balanceAccount(to, asset), amount.Must(sum))}})
}

func (s *site) block(owner string, asset int64, sum string) {
	s.Helper()
	s.refs++
	h := ledger.NewHold(now, "blockage", fmt.Sprint(s.refs), "test", balanceAccount(owner, asset), amount.Must(sum))
	h.Beyond = true
	s.do(now, ledger.Movement{Take: []ledger.Hold{h}})
}

// sumDays runs the job that sums days to its end, as at an instant.
func (s *site) sumDays(at time.Time) {
	s.Helper()
	kind, _ := balance.Summing(s.store, func() time.Time { return at })
	for j := (job.Job{State: job.Running}); j.State != job.Done; {
		next, writes, err := kind.Step(s.Context(), j)
		storetest.Must(s, err)
		if len(writes) > 0 {
			storetest.Must(s, s.db.Commit(s.Context(), writes...))
			storetest.Must(s, s.db.Commit(s.Context(), writes...)) // once more changes nothing
		}
		j = next
	}
}

// REQ-PRC-05, D-PRC-06: what GET /user/asset shows, and whose it is.
func TestMember(t *testing.T) {
	balanceBoth(t, func(s *site) {
		const line = "GET admin/get-member-asset-balances"
		s.Wants(line+"?userId=jane", "", 200, "[]")
		s.move(now, "", "jane", 3, "0.3")
		s.move(now, "", "jane", 9999, "7") // of an asset that the catalogue has no more
		s.block("jane", 3, "0.1")
		s.move(now, "", "firm", 4, "5")
		const jane = `[{"userId":"jane","currencyCode":"USDT","currencyName":"Tether USD","networkCode":"ETH",` +
			`"balance":0.3,"available":0.2,"locked":0.1},{"userId":"jane","currencyCode":"9999","currencyName":"",` +
			`"networkCode":"","balance":7,"available":7,"locked":0}]`
		for query, want := range map[string]string{"userId=jane": jane, "userId=jane&type=bireysel": jane,
			"userId=jane&type=": jane, "userId=jane&type=kurumsal": "[]", "userId=jane&type=x": "[]", "userId=nobody": "[]",
			"userId=nobody&type=bireysel": "[]"} {
			s.Wants(line+"?"+query, "", 200, want)
		}
		if _, got := s.Call(line+"?userId=firm&type=kurumsal", ""); !strings.HasPrefix(got, `[{"userId":"firm",`) {
			t.Error(got)
		}
	})
}

// REQ-PRC-06, D-PRC-06: exact sums by currency; a blockage beyond one balance takes nothing of another.
func TestSum(t *testing.T) {
	balanceBoth(t, func(s *site) {
		const line = "GET admin/get-member-asset-balances-sum"
		s.Wants(line, "", 200, "[]")
		usdt, _ := currencyOf(s, 3)
		btc, btcPair := currencyOf(s, 1)
		s.move(now, "", "jane", 3, "0.3")
		s.move(now, "", "firm", 3, "9007199254740993.000000000000000001")
		s.move(now, "", "jane", 4, "0.999999999999999999")
		s.move(now, "", "firm", 4, "0.999999999999999999")
		s.move(now, "", "jane", btcPair, "2")
		s.block("jane", 3, "1") // 0.7 beyond
		s.block("firm", 4, "0.000000000000000002")
		tether := fmt.Sprintf(`{"currencyCode":"USDT","currencyId":%d,"balance":9007199254740995.299999999999999999,`+
			`"available":9007199254740994.999999999999999997,"locked":1.000000000000000002}`, usdt)
		bitcoin := fmt.Sprintf(`{"currencyCode":"BTC","currencyId":%d,"balance":2,"available":2,"locked":0}`, btc)
		janes := fmt.Sprintf(`{"currencyCode":"USDT","currencyId":%d,"balance":1.299999999999999999,`+
			`"available":0.999999999999999999,"locked":1}`, usdt)
		for query, want := range map[string]string{"": bitcoin + "," + tether, "code=usdt": tether,
			fmt.Sprint("currencyId=", usdt): tether, fmt.Sprint("code=BTC&currencyId=", usdt): "",
			"userId=jane": bitcoin + "," + janes, "userId=jane&code=USDT": janes, "userId=nobody": "", "code=XYZ": "",
			"currencyId=999999": "", "code=&userId=": bitcoin + "," + tether, "userId=firm&code=BTC": ""} {
			s.Wants(line+"?"+query, "", 200, "["+want+"]")
		}
		s.move(now, "", "jane", 9999, "7")
		const gone = `{"currencyCode":"9999","currencyId":0,"balance":7,"available":7,"locked":0}`
		s.Wants(line, "", 200, "["+gone+","+bitcoin+","+tether+"]")
		s.Wants(line+"?code=9999", "", 200, "["+gone+"]")
	})
}

// currencyOf is the currency of a pair.
func currencyOf(s *site, pair int64) (id, same int64) {
	s.Helper()
	catalog := storetest.Value(currency.Load(s.Context(), money.NewCurrencies(s.db)))(s)
	p, _ := catalog.Pair(pair)
	return p.Currency.ID, pair
}

// day is noon of a day of March 2026.
func day(n int) time.Time { return time.Date(2026, 3, n, 12, 0, 0, 0, time.UTC) }

func shown(n int, symbol, deposit, withdrawal, net, balance string) string {
	return fmt.Sprintf(`{"date":"%sT00:00:00.000Z","symbol":"%s","deposit":%s,"withdrawal":%s,"net":%s,"balance":%s}`,
		day(n).Format(time.DateOnly), symbol, deposit, withdrawal, net, balance)
}

// REQ-PRC-07, D-PRC-06: the same positions whether no day is summed, some are, or all that can be.
func TestDailyPosition(t *testing.T) {
	balanceBoth(t, func(s *site) {
		const line = "GET balance/get-daily-position?"
		s.Wants(line, "", 200, "[]")
		s.move(day(1).Add(-12*time.Hour), "", "jane", 3, "10.5") // the first instant of the first
		s.move(day(1), "", "firm", 4, "1")
		s.move(day(1), "jane", "firm", 3, "0.5") // comes in and goes out
		s.move(day(3), "jane", "", 3, "4")
		s.move(day(3).Add(12*time.Hour-time.Millisecond), "", "jane", 1, "2") // its last one
		s.move(day(30), "", "jane", 4, "0.000000000000000001")
		s.move(now.Add(-time.Hour), "jane", "", 1, "0.5")
		usdt := map[int]string{1: shown(1, "USDT", "12", "0.5", "11.5", "11.5"), 2: shown(2, "USDT", "0", "0", "0", "11.5"),
			3: shown(3, "USDT", "0", "4", "-4", "7.5"), 4: shown(4, "USDT", "0", "0", "0", "7.5"),
			30: shown(30, "USDT", "0.000000000000000001", "0", "0.000000000000000001", "7.500000000000000001"),
			31: shown(31, "USDT", "0", "0", "0", "7.500000000000000001")}
		btc := map[int]string{3: shown(3, "BTC", "2", "0", "2", "2"), 4: shown(4, "BTC", "0", "0", "0", "2"),
			30: shown(30, "BTC", "0", "0", "0", "2"), 31: shown(31, "BTC", "0", "0.5", "-0.5", "1.5")}
		check := func() {
			s.Helper()
			last := btc[31] + "," + usdt[31] + "," + btc[30] + "," + usdt[30]
			for query, want := range map[string]string{
				"startDate=2026-03-30":                                last,
				"startDate=2026-03-30&endDate=2099-12-31":             last,
				"startDate=2020-01-01&endDate=2026-03-03":             btc[3] + "," + usdt[3] + "," + usdt[2] + "," + usdt[1],
				"startDate=2026-03-02&endDate=2026-03-04&symbol=usdt": usdt[4] + "," + usdt[3] + "," + usdt[2],
				"endDate=2026-03-03&symbol=BTC":                       btc[3],
				"startDate=2026-03-03T23:59Z&endDate=1772668799999&symbol=BTC": btc[4] +
					"," + btc[3],
				"symbol=XYZ":           "",
				"endDate=2026-02-28":   "",
				"startDate=2026-04-01": "",
				"endDate=0001-01-01":   "",
			} {
				s.Wants(line+query, "", 200, "["+want+"]")
			}
			res, got := s.Send(line+"limit=1000&count=true", "") // 2 March to today: 29 of BTC, 30 of USDT
			if n := strings.Count(got, `"date"`); n != 59 || res.Header.Get("X-Total-Count") != "59" ||
				!strings.HasPrefix(got, "["+btc[31]) || !strings.HasSuffix(got, usdt[2]+"]") {
				s.Errorf("%d of %v: %s", n, res.Header, got)
			}
			query, pages := "startDate=2020-01-01&limit=7", ""
			for range 20 {
				res, got := s.Send(line+query, "")
				pages += strings.Trim(got, "[]") + ","
				link, _, _ := strings.Cut(res.Header.Get("Link"), ">")
				if _, query, _ = strings.Cut(link, "?"); query == "" {
					break
				}
			}
			if _, whole := s.Call(line+"startDate=2020-01-01", ""); pages != strings.Trim(whole, "[]")+"," {
				s.Errorf("pages:\n%s\nwant\n%s", pages, whole)
			}
		}
		check()
		s.sumDays(day(3).Add(13*time.Hour - time.Millisecond)) // the third is not over for an hour
		check()
		s.sumDays(day(3).Add(13 * time.Hour))
		check()
		s.sumDays(now)
		check()
		spans := storetest.Value(s.store.Spans(t.Context()))(t)
		one, three, thirty := balance.DayOf(day(1)), balance.DayOf(day(3)), balance.DayOf(day(30))
		if want := fmt.Sprintf("[{1 %d %d} {3 %d %d} {4 %d %d}]", three, three, one, three, one, thirty); fmt.Sprint(spans) !=
			want {
			t.Errorf("summed %v, want %v", spans, want)
		}
		s.Wants(line+"startDate=2026-03-02&endDate=2026-03-01", "", 400, "INVALID_FIELD startDate")
	})
}

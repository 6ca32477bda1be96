package money_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/rate"
	"castellan/persistence/money"
)

func (s *currencyService) add(t *testing.T, base, quote, r string, at time.Time) {
	t.Helper()
	_, err := s.rates.Add(t.Context(), "test", []rate.Quote{{Pair: rate.Pair{Base: base, Quote: quote},
		Rate: rate.Must(r), At: at}})
	storetest.Must(t, err)
}

// REQ-CUR-09, D-CUR-07: with a session or as a scheduled client; direct, turned, over USD.
func TestRate(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		const line = "GET rates/get-currency-rates"
		s.Wants(line, "", 404, "RECORD_NOT_FOUND")
		s.add(t, "USD", "TRY", "41.7352", currencyNow.Add(-time.Hour))
		s.add(t, "USD", "TRY", "41.5", currencyNow.Add(-2*time.Hour))
		s.add(t, "USD", "TRY", "99", currencyNow.Add(time.Hour))
		s.add(t, "EUR", "USD", "1.2", currencyNow)
		for _, caller := range []string{"admin", "jane", "cron:rates"} {
			s.As(caller).Wants(line, "", 200, `{"base":"USD","quote":"TRY","rate":41.7352}`)
		}
		for query, want := range map[string]string{
			"base=try&quote=usd":    `{"base":"TRY","quote":"USD","rate":0.0239605896221894228}`,
			"base=EUR":              `{"base":"EUR","quote":"TRY","rate":50.08224}`,
			"base=TRY&quote=EUR":    `{"base":"TRY","quote":"EUR","rate":0.0199671580184911857}`,
			"base=btc&quote=%20BTC": `{"base":"BTC","quote":"BTC","rate":1}`,
		} {
			s.Wants(line+"?"+query, "", 200, want)
		}
		s.Wants(line+"?quote=BTC", "", 404, "RECORD_NOT_FOUND")
		s.Wants(line+"?base=A%20B&quote=", "", 400, "INVALID_FIELD base quote")
	})
}

// REQ-CUR-10, D-CUR-08: two hours back, to the millisecond.
func TestLastRates(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		const line = "GET admin/get-last-rates-by-date?date="
		day := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
		s.add(t, "USD", "TRY", "40", day.Add(-2*time.Hour))
		s.add(t, "USD", "TRY", "41", day.Add(-2*time.Hour+time.Millisecond))
		s.add(t, "BTC", "USD", "0.000000000000000000000001", day.Add(-30*24*time.Hour))
		const btc = `{"base":"BTC","quote":"USD","rate":0.000000000000000000000001,"date":"2026-01-01T00:00:00.000Z"}`
		const first = `[` + btc + `,{"base":"USD","quote":"TRY","rate":40,"date":"2026-01-30T22:00:00.000Z"}]`
		const second = `[` + btc + `,{"base":"USD","quote":"TRY","rate":41,"date":"2026-01-30T22:00:00.001Z"}]`
		for date, want := range map[string]string{
			"2026-01-31": first, "2026-01-31T00:00:00.000Z": first, "2026-01-31T03:00:00%2B03:00": first,
			"1769817600000": first, "2026-01-31T00:00:00.0009Z": first, "2026-01-31T00:00:00.001Z": second,
			"2026-02-01": second, "2026-01-30T23:59:59.999Z": `[` + btc + `]`, "2026-01-01T01:59:59.999Z": `[]`,
			"0001-01-01": `[]`,
		} {
			s.Wants(line+date, "", 200, want)
		}
	})
}

// REQ-CUR-04, D-CUR-09: what the caller has, and nothing of others; what is locked may exceed it.
func TestAssets(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		s.As("jane").Wants("GET user/asset", "", 200, `[]`)
		l := &ledger.Ledger{Store: money.NewLedger(s.db), Commit: s.db, Now: time.Now,
			Decimals: func(context.Context, int64) (int, error) { return 18, nil }}
		jane := func(asset int64) ledger.Account {
			return ledger.Account{Kind: ledger.User, Owner: "jane", Asset: asset}
		}
		do := func(m ledger.Movement) {
			t.Helper()
			_, err := l.Do(t.Context(), audit.By{UserID: "admin"}, m)
			storetest.Must(t, err)
		}
		for asset, sum := range map[int64]string{3: "0.3", 4: "9007199254740993.000000000000000001"} {
			do(ledger.Movement{Transfers: []ledger.Transfer{ledger.New(currencyNow, "deposit", fmt.Sprint(asset),
				ledger.Account{Kind: ledger.Treasury, Asset: asset}, jane(asset), amount.Must(sum))}})
		}
		hold := func(asset int64, sum string) {
			h := ledger.NewHold(currencyNow, "blockage", fmt.Sprint(asset, sum), "test", jane(asset), amount.Must(sum))
			h.Beyond = true
			do(ledger.Movement{Take: []ledger.Hold{h}})
		}
		hold(3, "0.1")
		const trx = `,{"currencyCode":"USDT","currencyName":"Tether USD","networkCode":"TRX",` +
			`"balance":9007199254740993.000000000000000001,"available":9007199254740993.000000000000000001,"locked":0}]`
		shown := func(available, locked string) string {
			return `[{"currencyCode":"USDT","currencyName":"Tether USD","networkCode":"ETH","balance":0.3,"available":` +
				available + `,"locked":` + locked + `}` + trx
		}
		s.As("jane").Wants("GET user/asset", "", 200, shown("0.2", "0.1"))
		hold(3, "1")
		s.As("jane").Wants("GET user/asset", "", 200, shown("0", "1.1"))
		s.As("jane").Wants("GET user/asset?userId=bob", `{"userId":"bob"}`, 200, shown("0", "1.1"))
		s.As("bob").Wants("GET user/asset?userId=jane", "", 200, `[]`)

		// An asset that the catalogue has no more is shown by its number: its money is not hidden.
		do(ledger.Movement{Transfers: []ledger.Transfer{ledger.New(currencyNow, "deposit", "gone",
			ledger.Account{Kind: ledger.Treasury, Asset: 9999}, ledger.Account{Kind: ledger.User, Owner: "bob", Asset: 9999},
			amount.Must("7"))}})
		s.As("bob").Wants("GET user/asset", "", 200, `[{"currencyCode":"9999","currencyName":"","networkCode":"",`+
			`"balance":7,"available":7,"locked":0}]`)
	})
}

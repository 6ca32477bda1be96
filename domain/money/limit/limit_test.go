package limit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/domain/money/level"
	"castellan/domain/money/limit"
	"castellan/domain/money/rate"
)

// The stores of the tests: an account of level 1, and the data they return.
type (
	users  struct{ user.Store }
	levels struct {
		level.Store
		all []level.Level
	}
	moves struct {
		all        []limit.Moved
		month, day time.Time
	}
	rates struct {
		rate.Store
		all []rate.Quote
	}
)

func (users) Get(_ context.Context, id string) (user.User, error) {
	return user.User{ID: id, Level: 1}, nil
}

func (l levels) List(context.Context, level.Query) ([]level.Level, error) { return l.all, nil }

func (m *moves) Moved(_ context.Context, _ string, month, day time.Time) ([]limit.Moved, error) {
	m.month, m.day = month, day
	return m.all, nil
}

func (r rates) Last(_ context.Context, _ time.Time, pairs ...rate.Pair) (known []rate.Quote, err error) {
	for _, q := range r.all {
		for _, p := range pairs {
			if p == q.Pair {
				known = append(known, q)
			}
		}
	}
	return known, nil
}

// now is in April, in UTC.
var now = time.Date(2026, 3, 31, 23, 30, 0, 0, time.FixedZone("", -3600))

// The assets of the tests. XYZ has no rate, and asset 9 does not exist.
const (
	lira = iota + 1
	bitcoin
	dollar
	unknown
	lower // lira in lower case
	gone  = 9
)

func catalog() *currency.Catalog {
	var currencies []currency.Currency
	var pairs []currency.Pair
	for i, code := range []string{"TRY", "BTC", "USD", "XYZ", "try"} {
		n := int64(i + 1)
		currencies = append(currencies, currency.Currency{ID: n, Code: code})
		pairs = append(pairs, currency.Pair{ID: n, CurrencyID: n, NetworkID: 1})
	}
	return currency.NewCatalog(currencies, []currency.Network{{ID: 1, Code: "N"}}, pairs)
}

func in(asset int64, today, month string) limit.Moved {
	return limit.Moved{Asset: asset, Received: true, Today: amount.Must(today), Month: amount.Must(month)}
}

func out(asset int64, today, month string) limit.Moved {
	m := in(asset, today, month)
	m.Received = false
	return m
}

// D-USR-09: the smaller remaining amount of the two limits of each period and direction.
func TestRemaining(t *testing.T) {
	must := amount.Must
	one := level.Level{ID: 1, Label: "one", Limits: level.Limits{SendTryDaily: must("100"), SendCryptoDaily: must("200"),
		SendTryMonthly: must("1000"), SendCryptoMonthly: must("900"), ReceiveTryDaily: must("50"),
		ReceiveCryptoDaily: must("40.5")}}
	set := one
	set.ReceiveTryMonthly, set.ReceiveCryptoMonthly = new(must("70")), new(must("5000"))
	quotes := []rate.Quote{{Pair: rate.Pair{Base: "USD", Quote: "TRY"}, Rate: rate.Must("40")},
		{Pair: rate.Pair{Base: "BTC", Quote: "USD"}, Rate: rate.Must("100000")}}
	zero := "0"
	for name, c := range map[string]struct {
		level level.Level
		moved []limit.Moved
		want  [4]string // credit and debit of the day, of the month
	}{
		"nothing": {one, nil, [4]string{"40.5", "100", "1215", "900"}},
		"TRY": {one, []limit.Moved{in(lira, "10", "20"), out(lira, "0.5", "150")},
			[4]string{"40", "99.5", "1215", "850"}},
		"a crypto": {one, []limit.Moved{in(bitcoin, "0.00000500", "0.00001"), out(dollar, "1", "22")},
			[4]string{"20.5", "100", "1175", "20"}},
		"both kinds": {one, []limit.Moved{in(lira, "45", "45"), in(dollar, "1", "1")},
			[4]string{"0.5", "100", "1175", "900"}},
		"half-even": {one, []limit.Moved{in(dollar, "0.000125", "0.000375"), out(dollar, "4.999999999", "0.0003")},
			[4]string{"40.5", "0", "1214.98", "899.99"}},
		"more than all": {one, []limit.Moved{in(lira, "51", "51"), out(dollar, "0", "100")},
			[4]string{zero, "100", "1215", zero}},
		"of no rate": {one, []limit.Moved{in(unknown, "0", "1"), out(gone, "1", "1")},
			[4]string{"40.5", zero, zero, zero}},
		"too much": {one, []limit.Moved{{Asset: lira, Over: true}, in(bitcoin, "999999999999", "999999999999")},
			[4]string{zero, zero, zero, zero}},
		"a set month":    {set, []limit.Moved{in(lira, "10", "20")}, [4]string{"40", "100", "50", "900"}},
		"level is gone":  {level.Level{ID: 2, Limits: one.Limits}, nil, [4]string{zero, zero, zero, zero}},
		"without limits": {level.Level{ID: 1}, []limit.Moved{in(lira, "1", "1")}, [4]string{zero, zero, zero, zero}},
	} {
		m := &moves{all: c.moved}
		s := &limit.Service{Users: users{}, Levels: levels{all: []level.Level{{ID: 0}, c.level}},
			Store: m, Rates: rates{all: quotes},
			Catalog: catalog, Now: func() time.Time { return now }}
		got := storetest.Value(s.Of(t.Context(), "u1"))(t)
		if left := [4]string{got.CreditDaily.String(), got.DebitDaily.String(), got.CreditMonthly.String(),
			got.DebitMonthly.String()}; left != c.want || got.UserID != "u1" || got.Level.ID != 1 {
			t.Errorf("%s: %v of %+v, want %v", name, left, got.Level, c.want)
		}
		april := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
		if !m.month.Equal(april) || !m.day.Equal(april) {
			t.Errorf("asked since %v and %v", m.month, m.day)
		}
	}
}

// sender is a service for an account of level 1, which may send 100 TRY and cryptos for 200 TRY a day, and 1000 and 900
// TRY a month.
func sender(moved ...limit.Moved) *limit.Service {
	must := amount.Must
	return &limit.Service{Users: users{}, Store: &moves{all: moved}, Catalog: catalog,
		Now: func() time.Time { return now }, Levels: levels{all: []level.Level{{ID: 0}, {ID: 1,
			Limits: level.Limits{SendTryDaily: must("100"), SendCryptoDaily: must("200"), SendTryMonthly: must("1000"),
				SendCryptoMonthly: must("900"), ReceiveTryDaily: must("50"), ReceiveCryptoDaily: must("60")}}}},
		Rates: rates{all: []rate.Quote{{Pair: rate.Pair{Base: "USD", Quote: "TRY"}, Rate: rate.Must("40")},
			{Pair: rate.Pair{Base: "BTC", Quote: "TRY"}, Rate: rate.Must("1000000")}}}}
}

// Lira are counted under the limits for TRY, and every other currency, at its value, under those for crypto. An amount
// counts with what was sent before, in its own and in other assets. The refusal says when the limit resets:
// that of the month if both are exceeded.
func TestSentBefore(t *testing.T) {
	tomorrow, may := time.Date(2026, 4, 2, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	never, huge := time.Time{}, "999999999999999999" // and a fraction: the largest amount
	over := out(lira, "0", "0")
	over.Over = true
	overDollar := over
	overDollar.Asset = dollar
	for name, c := range map[string]struct {
		moved []limit.Moved
		asset int64
		sum   string
		reset time.Time
		names string // of the refusal; "": none
	}{
		"nothing before":           {nil, lira, "100", never, ""},
		"nothing, and too much":    {nil, dollar, "5.01", tomorrow, "limit"},
		"exactly the day":          {[]limit.Moved{out(lira, "60", "60")}, lira, "40", never, ""},
		"more than the day":        {[]limit.Moved{out(lira, "60", "60")}, lira, "40.01", tomorrow, "limit"},
		"exactly the month":        {[]limit.Moved{out(lira, "0", "960")}, lira, "40", never, ""},
		"more than the month":      {[]limit.Moved{out(lira, "0", "960")}, lira, "40.01", may, "limit"},
		"more than both":           {[]limit.Moved{out(lira, "60", "960")}, lira, "40.01", may, "limit"},
		"received before":          {[]limit.Moved{in(lira, "99", "999")}, lira, "100", never, ""},
		"received and sent":        {[]limit.Moved{in(lira, "9", "9"), out(lira, "60", "60")}, lira, "41", tomorrow, "limit"},
		"cryptos are not TRY":      {[]limit.Moved{out(dollar, "5", "20")}, lira, "100", never, ""},
		"TRY is no crypto":         {[]limit.Moved{out(lira, "100", "1000")}, dollar, "5", never, ""},
		"cryptos together":         {[]limit.Moved{out(bitcoin, "0.0001", "0.0001")}, dollar, "2.5", never, ""},
		"cryptos exceed the day":   {[]limit.Moved{out(bitcoin, "0.0001", "0.0001")}, dollar, "2.51", tomorrow, "limit"},
		"cryptos exceed the month": {[]limit.Moved{out(bitcoin, "0", "0.0008")}, dollar, "2.51", may, "limit"},
		"after two others": {[]limit.Moved{out(bitcoin, "0", "0"), out(dollar, "3", "3"), out(lira, "9", "9")}, dollar,
			"2.01", tomorrow, "limit"},
		"a sum that is too large":   {[]limit.Moved{over}, lira, "0.01", may, "limit"},
		"another that is too large": {[]limit.Moved{overDollar}, lira, "0.01", never, ""},
		"a missing rate":            {nil, unknown, "0.01", never, "no rate for XYZ/TRY"},
		"a missing rate before":     {[]limit.Moved{out(unknown, "0", "1")}, dollar, "1", never, "no rate for XYZ/TRY"},
		"received without a rate":   {[]limit.Moved{in(unknown, "1", "1")}, dollar, "5", never, ""},
		"TRY beside a missing rate": {[]limit.Moved{out(unknown, "1", "1")}, lira, "100", never, ""},
		"nothing of a missing rate": {[]limit.Moved{out(unknown, "0", "0")}, dollar, "5", never, ""},
		"TRY in lower case":         {nil, lower, "100.01", tomorrow, "limit"},
		"beyond every amount":       {[]limit.Moved{out(lira, huge, huge)}, lira, huge, may, "limit"},
		"other assets on a day":     {[]limit.Moved{out(bitcoin, "0.0002", "0.0002")}, dollar, "0.01", tomorrow, "limit"},
	} {
		err := sender(c.moved...).Check(t.Context(), user.User{ID: "u", Level: 1}, c.asset, amount.Must(c.sum))
		var refusal *fault.Error
		if errors.As(err, &refusal) != (c.names != "") || refusal != nil && (refusal.Code != fault.LimitExceeded ||
			!refusal.ResetAt.Equal(c.reset) || !strings.Contains(refusal.Message, c.names)) {
			t.Errorf("%s: %+v", name, refusal)
		}
	}
}

// A level that sets no monthly limit has thirty times the daily one, or the largest amount.
func TestMonthOfLargeDays(t *testing.T) {
	for daily, want := range map[string]string{"1": "30", "0": "0", "0.5": "15",
		"400000000000000000": "800000000000000000"} {
		s := sender()
		s.Levels = levels{all: []level.Level{{ID: 1, Limits: level.Limits{ReceiveTryDaily: amount.Must(daily),
			ReceiveCryptoDaily: amount.Must(daily)}}}}
		storetest.Equal(t, storetest.Value(s.Of(t.Context(), "u1"))(t).CreditMonthly.String(), want, daily)
	}
}

package limit_test

import (
	"context"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
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
	gone = 9
)

func catalog() *currency.Catalog {
	var currencies []currency.Currency
	var pairs []currency.Pair
	for i, code := range []string{"TRY", "BTC", "USD", "XYZ"} {
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
		got, err := s.Of(t.Context(), "u1")
		storetest.Must(t, err)
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

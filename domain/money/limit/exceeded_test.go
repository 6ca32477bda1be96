package limit_test

import (
	"errors"
	"testing"
	"time"

	"castellan/domain/access/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/level"
	"castellan/domain/money/limit"
	"castellan/domain/money/rate"
)

// Lira are counted under the limits for TRY, and every other currency, at its value, under those for crypto.
func TestExceeded(t *testing.T) {
	must := amount.Must
	s := limit.Service{Users: users{}, Store: &moves{}, Catalog: catalog, Now: func() time.Time { return now },
		Levels: levels{all: []level.Level{{ID: 1, Limits: level.Limits{SendTryDaily: must("100"),
			SendCryptoDaily: must("200"), SendTryMonthly: must("1000"), SendCryptoMonthly: must("900")}}}},
		Rates: rates{all: []rate.Quote{{Pair: rate.Pair{Base: "USD", Quote: "TRY"}, Rate: rate.Must("40")}}}}
	for _, c := range []struct {
		asset    int64
		sum      string
		exceeded bool
	}{{lira, "100", false}, {lira, "100.01", true}, {lira, "1001", true}, {dollar, "5", false}, {dollar, "5.01", true},
		{dollar, "23", true}} {
		err := s.Check(t.Context(), user.User{ID: "u", Level: 1}, c.asset, must(c.sum))
		var refusal *fault.Error
		if errors.As(err, &refusal) != c.exceeded || c.exceeded && !refusal.ResetAt.After(now) {
			t.Errorf("%s of asset %d: %v", c.sum, c.asset, err)
		}
	}
}

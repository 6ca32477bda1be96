package rate_test

import (
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/rate"
)

// A rate needs its pair in both directions, and the legs over the dollar unless it is one of the two.
func TestNeededPairs(t *testing.T) {
	pairs := func(texts ...string) (all []rate.Pair) {
		for _, text := range texts {
			all = append(all, rate.Pair{Base: text[:3], Quote: text[3:]})
		}
		return all
	}
	for text, want := range map[string][]rate.Pair{
		"EURTRY": pairs("EURTRY", "TRYEUR", "EURUSD", "USDEUR", "USDTRY", "TRYUSD"),
		"USDTRY": pairs("USDTRY", "TRYUSD"), "TRYUSD": pairs("TRYUSD", "USDTRY"),
	} {
		storetest.Same(t, rate.Needed(pairs(text)[0]), want)
	}
}

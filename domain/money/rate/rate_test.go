package rate_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/rate"
)

func TestParse(t *testing.T) {
	for in, out := range map[string]string{
		"1": "1", "0032.4500": "32.45", "0.000000000000000000000001": "0.000000000000000000000001",
		"999999999999999999.9": "999999999999999999.9",
		"1000000000000000000":  "", "0.0000000000000000000000001": "", "0": "", "0.0": "", "-1": "", "+1": "", "1e3": "1000",
		"1.45e-05": "0.0000145", "12E-24": "0.000000000000000000000012", "1e18": "", "1e-25": "", "1e": "", "1e1.5": "",
		"1e-999999999": "",
		"":             "", ".5": "", "5.": "", "NaN": "", "1,5": "", "1 ": "", "1.2.3": "", "1e400": "",
	} {
		r, err := rate.Parse(in)
		if (err == nil) != (out != "") || err == nil && r.String() != out {
			t.Errorf("%q: %v, %v; want %q", in, r, err, out)
		}
	}
}

// D-CUR-07: the pair, the reverse pair, then via USD, each leg in either direction.
func TestFind(t *testing.T) {
	quote := func(base, quote, r string) rate.Quote {
		return rate.Quote{Pair: rate.Pair{Base: base, Quote: quote}, Rate: rate.Must(r)}
	}
	for name, c := range map[string]struct {
		last []rate.Quote
		want string
	}{
		"nothing":  {nil, ""},
		"the pair": {[]rate.Quote{quote("EUR", "TRY", "48.123456789"), quote("TRY", "EUR", "7")}, "48.123456789"},
		"the turned": {[]rate.Quote{quote("TRY", "EUR", "0.02"), quote("EUR", "USD", "7"), quote("USD", "TRY", "7")},
			"50"},
		"a third":        {[]rate.Quote{quote("TRY", "EUR", "3")}, "0.333333333333333333"},
		"two thirds":     {[]rate.Quote{quote("TRY", "EUR", "1.5")}, "0.666666666666666667"},
		"small":          {[]rate.Quote{quote("TRY", "EUR", "7000000000000")}, "0.000000000000142857142857142857"},
		"large":          {[]rate.Quote{quote("TRY", "EUR", "0.000000000000000000000007")}, "142857142857142857000000"},
		"over USD":       {[]rate.Quote{quote("EUR", "USD", "1.2"), quote("USD", "TRY", "40")}, "48"},
		"turned legs":    {[]rate.Quote{quote("USD", "EUR", "0.8"), quote("TRY", "USD", "0.025")}, "50"},
		"one rounding":   {[]rate.Quote{quote("USD", "EUR", "3"), quote("TRY", "USD", "3")}, "0.111111111111111111"},
		"one leg":        {[]rate.Quote{quote("EUR", "USD", "1.2")}, ""},
		"the other leg":  {[]rate.Quote{quote("USD", "TRY", "40")}, ""},
		"another's legs": {[]rate.Quote{quote("GBP", "USD", "1.2"), quote("USD", "TRY", "40")}, ""},
	} {
		got, ok := rate.Find(rate.Pair{Base: "EUR", Quote: "TRY"}, c.last)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %v, %v; want %s", name, got, ok, c.want)
		}
	}
	if _, ok := rate.Find(rate.Pair{Base: "USD", Quote: "TRY"}, []rate.Quote{quote("USD", "EUR", "2")}); ok {
		t.Error("a rate of USD is found over USD")
	}
}

// A computed rate is the nearest number of 18 digits, the even one of two equally near.
func TestQuotientIsNearest(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) rate.Rate {
		r, err := rate.Parse(rapid.StringMatching(`[0-9]{1,18}\.[0-9]{0,23}[1-9]`).Draw(t, "rate"))
		if err != nil {
			t.Fatal(err)
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		r := number.Draw(t, "r")
		got, _ := rate.Find(rate.Pair{Base: "EUR", Quote: "TRY"},
			[]rate.Quote{{Pair: rate.Pair{Base: "TRY", Quote: "EUR"}, Rate: r}})
		exact, _ := new(big.Rat).SetString(r.String())
		exact.Inv(exact)
		near, _ := new(big.Rat).SetString(got.String())
		// half a unit of the 18th digit, at most: |near - exact| * 2 * 10^17 <= near, and the first digit counts
		off := new(big.Rat).Sub(near, exact)
		off.Abs(off).Mul(off, big.NewRat(2e17, 1))
		if off.Cmp(near) > 0 {
			t.Fatalf("1/%v is given as %v", r, got)
		}
	})
}

// Rounding is half-even at the asset's scale, checked against whole numbers.
func TestRounding(t *testing.T) {
	for _, c := range []struct {
		amount, rate string
		decimals     int
		want         string
	}{
		{"1", "0.125", 2, "0.12"}, {"1", "0.135", 2, "0.14"}, {"1", "0.145", 2, "0.14"}, {"-1", "0.125", 2, "-0.12"},
		{"-1", "0.135", 2, "-0.14"}, {"1", "0.5", 0, "0"}, {"3", "0.5", 0, "2"}, {"1", "0.12500000000000000001", 2, "0.13"},
		{"0.000000000000000001", "0.5", 18, "0"}, {"0.000000000000000003", "0.5", 18, "0.000000000000000002"},
		{"100.10", "32.4567", 2, "3248.92"}, {"999999999999999999", "2", 2, ""},
		{"999999999999999999.999999999999999999", "1", 0, ""},
	} {
		got, err := rate.Must(c.rate).Of(amount.Must(c.amount), c.decimals)
		if (err == nil) != (c.want != "") || err == nil && got.String() != c.want {
			t.Errorf("%s times %s with %d decimals: %v, %v; want %s", c.amount, c.rate, c.decimals, got, err, c.want)
		}
	}
}

func TestCode(t *testing.T) {
	for in, want := range map[string]string{"usd": "USD", " try ": "TRY", "1INCH": "1INCH", "": "", "A B": "", "ü": "",
		"X'": "", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456": ""} {
		if got, ok := rate.Code(in); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
}

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

// A rate is written as a number, and equals the same number in another notation.
func TestRateIsANumber(t *testing.T) {
	for text, want := range map[string]string{"1.50": "1.5", "40": "40", "0.00000001": "0.00000001"} {
		got, err := json.Marshal(rate.Must(text))
		if err != nil || string(got) != want || !rate.Must(text).Equal(rate.Must(want)) {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if rate.Must("1").Equal(rate.Must("1.00000001")) {
		t.Error("different rates are equal")
	}
}

package rate_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"castellan/domain/kit/amount"
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

func TestPercentage(t *testing.T) {
	for _, c := range []struct {
		percent, amount string
		decimals        int
		part, rest      string
	}{
		{"0.2", "1000", 2, "2", "998"}, {"0", "5", 2, "0", "5"}, {"100", "0.01", 2, "0.01", "0"},
		{"0.25", "0.5", 8, "0.00125", "0.49875"}, {"2.5", "1", 2, "0.02", "0.98"}, {"3.5", "1", 2, "0.04", "0.96"},
	} {
		p, err := rate.ParsePercentage(c.percent)
		if err != nil {
			t.Fatal(err)
		}
		part, rest, err := p.Of(amount.Must(c.amount), c.decimals)
		if err != nil || part.String() != c.part || rest.String() != c.rest {
			t.Errorf("%s %% of %s: %v and %v, %v; want %s and %s", c.percent, c.amount, part, rest, err, c.part, c.rest)
		}
	}
	for _, wrong := range []string{"", "-1", "100.000000000000000001", "1e1", "NaN", "5%"} {
		if p, err := rate.ParsePercentage(wrong); err == nil {
			t.Errorf("%q is read as %v", wrong, p)
		}
	}
}

// A part and its rest always add up to the amount, both with its decimals; the part is the nearest amount to the
// percentage, the even one of two.
func TestPartAndRestAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		decimals := rapid.IntRange(0, amount.Decimals).Draw(t, "decimals")
		unit := int64(amount.Unit(decimals))
		lo := rapid.Int64Range(0, int64(1e18)/unit-1).Draw(t, "lo") * unit
		a, err := amount.Of(rapid.OneOf(rapid.Int64Range(0, 1e18-1), rapid.Int64Range(0, 9)).Draw(t, "hi"), lo)
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.StringMatching(`(100|[0-9]{1,2}(\.[0-9]{1,18})?)`).Draw(t, "percent")
		p, err := rate.ParsePercentage(text)
		if err != nil {
			t.Fatal(err)
		}
		part, rest, err := p.Of(a, decimals)
		if err != nil {
			t.Fatal(err)
		}
		if sum, err := part.Add(rest); err != nil || sum != a || part.Sign() < 0 || rest.Sign() < 0 ||
			!part.Fits(decimals) || !rest.Fits(decimals) {
			t.Fatalf("%s %% of %s with %d decimals: %s and %s", text, a, decimals, part, rest)
		}
		number := func(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }
		least := new(big.Rat).SetFrac64(unit, int64(1e18))
		exact := new(big.Rat).Mul(number(a.String()), number(text))
		exact.Quo(exact, big.NewRat(100, 1)).Quo(exact, least) // in smallest amounts
		got := new(big.Rat).Quo(number(part.String()), least)
		off := new(big.Rat).Sub(got, exact)
		half := off.Abs(off).Cmp(big.NewRat(1, 2))
		if half > 0 || half == 0 && got.Num().Bit(0) == 1 {
			t.Fatalf("%s %% of %s with %d decimals is %s", text, a, decimals, part)
		}
	})
}

func TestCode(t *testing.T) {
	for in, want := range map[string]string{"usd": "USD", " try ": "TRY", "1INCH": "1INCH", "": "", "A B": "", "ü": "",
		"X'": "", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456": ""} {
		if got, ok := rate.Code(in); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", in, got, ok)
		}
	}
}

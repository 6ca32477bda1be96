package amount_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"castellan/domain/kit/amount"
)

const (
	most  = "999999999999999999.999999999999999999"
	least = "-999999999999999999"
	tiny  = "0.000000000000000001"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in, out string
		err     error
	}{
		{"0", "0", nil}, {"-0", "0", nil}, {"-0.000", "0", nil}, {"007.50", "7.5", nil}, {"-0.5", "-0.5", nil},
		{"-1.5", "-1.5", nil}, {tiny, tiny, nil}, {"-" + tiny, "-" + tiny, nil}, {most, most, nil}, {least, least, nil},
		{"1.0000000000000000000000", "1", nil}, {"123456789012.123456789012345678", "123456789012.123456789012345678", nil},
		{"1000000000000000000", "", amount.ErrRange}, {"-1000000000000000000", "", amount.ErrRange},
		{least + ".1", "", amount.ErrRange}, // its units are -10¹⁸
		{"0.0000000000000000001", "", amount.ErrPrecision},
		{"1e400", "", amount.ErrNumber}, {"1" + strings.Repeat("0", 400), "", amount.ErrRange},
		{"0." + strings.Repeat("0", 400), "", amount.ErrRange},
		{"", "", amount.ErrNumber}, {"-", "", amount.ErrNumber}, {"--1", "", amount.ErrNumber},
		{"+1", "", amount.ErrNumber}, {".5", "", amount.ErrNumber}, {"5.", "", amount.ErrNumber},
		{"1.2.3", "", amount.ErrNumber}, {"1.-2", "", amount.ErrNumber}, {"NaN", "", amount.ErrNumber},
		{"Infinity", "", amount.ErrNumber}, {"0x10", "", amount.ErrNumber}, {"1_0", "", amount.ErrNumber},
		{"1,5", "", amount.ErrNumber}, {" 1", "", amount.ErrNumber}, {"١", "", amount.ErrNumber},
		{"1\x00", "", amount.ErrNumber},
	} {
		a, err := amount.Parse(c.in)
		if !errors.Is(err, c.err) || err == nil && a.String() != c.out || err != nil && a != (amount.Amount{}) {
			t.Errorf("%.40q: %v, %v; want %q, %v", c.in, a, err, c.out, c.err)
		}
	}
}

// Cases that binary floating point gets wrong.
func TestExact(t *testing.T) {
	for _, c := range []struct{ a, b, sum string }{
		{"0.1", "0.2", "0.3"},
		{"999999999999999999", tiny, "999999999999999999.000000000000000001"},
		{"999999999999999999", "1", ""},
		{most, tiny, ""},                   // 10¹⁸
		{most, "0.000000000000000002", ""}, // 10¹⁸ + 10⁻¹⁸
		{"9007199254740993", tiny, "9007199254740993.000000000000000001"},
		{"-0.5", "-0.5", "-1"},
		{"-0.5", "0.75", "0.25"},
		{least, "-" + tiny, ""},
	} {
		sum, err := amount.Must(c.a).Add(amount.Must(c.b))
		if (err == nil) != (c.sum != "") || err == nil && sum.String() != c.sum || err != nil && err != amount.ErrRange {
			t.Errorf("%s + %s = %v, %v; want %s", c.a, c.b, sum, err, c.sum)
		}
	}
	if _, err := amount.Must(most).Neg(); err != amount.ErrRange {
		t.Errorf("the opposite of the largest amount: %v", err)
	}
}

func TestJSON(t *testing.T) {
	type payment struct{ A, B amount.Amount }
	var p payment
	if err := json.Unmarshal([]byte(`{"A":9007199254740993.000000000000000001,"B":"-0.10"}`), &p); err != nil {
		t.Fatal(err)
	}
	const want = `{"A":9007199254740993.000000000000000001,"B":-0.1}`
	if out, err := json.Marshal(p); err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
	for number, want := range map[string]string{`1e-05`: "0.00001", `-1.25E+2`: "-125", `25e-1`: "2.5", `0e9`: "0",
		`1e-18`: tiny, `1.5e17`: "150000000000000000"} {
		if err := json.Unmarshal([]byte(`{"A":`+number+`}`), &p); err != nil || p.A.String() != want {
			t.Errorf("%s was read as %v, %v", number, p.A, err)
		}
	}
	for _, wrong := range []string{`null`, `true`, `{}`, `"x"`, `1e400`, `1000000000000000000.000000000000000001`, `1e-19`,
		`1e18`, `1e-99999999999999999999`, `"1e-5"`} {
		if err := json.Unmarshal([]byte(`{"A":`+wrong+`}`), &p); err == nil {
			t.Errorf("%s was read as %v", wrong, p.A)
		}
	}
}

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		hi, lo int64
		text   string
	}{
		{0, 0, "0"}, {-1, 5e17, "-0.5"}, {1, 5e17, "1.5"}, {-1, 0, "-1"}, {1e18 - 1, 1e18 - 1, most}, {1 - 1e18, 0, least},
		{1e18, 0, ""}, {-1e18, 0, ""}, {0, 1e18, ""}, {0, -1, ""}, {1 << 62, 0, ""},
	} {
		a, err := amount.Of(c.hi, c.lo)
		if err != nil {
			if c.text != "" || err != amount.ErrRange {
				t.Errorf("%d, %d: %v", c.hi, c.lo, err)
			}
			continue
		}
		if hi, lo := a.Parts(); a.String() != c.text || hi != c.hi || lo != c.lo {
			t.Errorf("%d, %d is %v, and %d, %d", c.hi, c.lo, a, hi, lo)
		}
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		text     string
		decimals int
	}{{"5", 0}, {"-0.5", 1}, {"0.25", 2}, {"1.00000001", 8}, {"-1." + tiny[2:], 18}} {
		a := amount.Must(c.text)
		if !a.Fits(c.decimals) || c.decimals > 0 && a.Fits(c.decimals-1) || !a.Fits(amount.Decimals) {
			t.Errorf("%s has not exactly %d decimals", c.text, c.decimals)
		}
	}
	if amount.Unit(18) != 1 || amount.Unit(0) != 1e18 {
		t.Error("the smallest amount is wrong")
	}
}

// anyAmount draws any amount; the extremes and values around zero are as likely as others.
var anyAmount = rapid.Custom(func(t *rapid.T) amount.Amount {
	hi := rapid.OneOf(rapid.Int64Range(1-1e18, 1e18-1), rapid.Int64Range(-2, 2)).Draw(t, "hi")
	lo := rapid.OneOf(rapid.Int64Range(0, 1e18-1), rapid.SampledFrom([]int64{0, 1, 5e17, 1e18 - 1})).Draw(t, "lo")
	a, err := amount.Of(hi, lo)
	if err != nil {
		t.Fatal(err)
	}
	return a
})

// Every operation agrees with shopspring/decimal and is rejected exactly if the columns cannot hold the result.
func TestAgainstDecimal(t *testing.T) {
	bound := decimal.New(1, 18)
	number := func(a amount.Amount) decimal.Decimal { return decimal.RequireFromString(a.String()) }
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyAmount.Draw(t, "a"), anyAmount.Draw(t, "b")
		x, y := number(a), number(b)
		same := func(op string, got amount.Amount, err error, want decimal.Decimal) {
			holds := want.Floor().Abs().LessThan(bound)
			if holds != (err == nil) || holds && !number(got).Equal(want) {
				t.Fatalf("%s of %v and %v: %v, %v; want %v", op, a, b, got, err, want)
			}
		}
		if hi, lo := a.Parts(); !decimal.New(hi, 0).Add(decimal.New(lo, -18)).Equal(x) {
			t.Fatalf("%v is not its columns %d, %d", a, hi, lo)
		}
		sum, err := a.Add(b)
		same("sum", sum, err, x.Add(y))
		difference, err := a.Sub(b)
		same("difference", difference, err, x.Sub(y))
		opposite, err := a.Neg()
		same("opposite", opposite, err, x.Neg())
		again, err := amount.Parse(x.StringFixed(18))
		same("text", again, err, x)
		if a.Cmp(b) != x.Cmp(y) || a.Sign() != x.Sign() || (a == b) != x.Equal(y) {
			t.Fatalf("%v and %v compare as %d", a, b, a.Cmp(b))
		}
		if d := rapid.IntRange(0, 18).Draw(t, "decimals"); a.Fits(d) != x.Equal(x.Truncate(int32(d))) {
			t.Fatalf("%v fits %d decimals: %v", a, d, a.Fits(d))
		}
	})
}

// Parse never panics and accepts nothing that shopspring/decimal reads as another number. Accepted amounts have one
// spelling.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "-0.5", most, least, "1e400", "1e-7", "00.00", "-", ".", "NaN", "१"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := amount.Parse(s)
		if err != nil {
			return
		}
		want, err := decimal.NewFromString(s)
		if err != nil || want.String() != a.String() {
			t.Fatalf("%q is read as %v and is %v, %v", s, a, want, err)
		}
		if again, err := amount.Parse(a.String()); err != nil || again != a {
			t.Fatalf("%v is read again as %v, %v", a, again, err)
		}
	})
}

// A constant of the program that is no amount panics, with its text.
func TestMustPanics(t *testing.T) {
	for _, text := range []string{"", "x", "1000000000000000000", "0.0000000000000000001"} {
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.HasPrefix(r, "amount "+text+" ") {
					t.Errorf("%q: %s", text, r)
				}
			}()
			t.Errorf("%q is %v", text, amount.Must(text))
		}()
	}
	if got := amount.Most.String(); got != most {
		t.Errorf("the largest amount is %s", got)
	}
}

// parts returns a sum as an integer of 10⁻¹⁸.
func parts(s amount.Sum) *big.Int {
	over, hi, lo := s.Parts()
	one := big.NewInt(1e18)
	n := new(big.Int).Add(new(big.Int).Mul(big.NewInt(over), one), big.NewInt(hi))
	return n.Add(n.Mul(n, one), big.NewInt(lo))
}

// Sums add, subtract, compare, print and come back from their columns like integers.
func TestSumAgainstIntegers(t *testing.T) {
	bound := int64(1e18 - 1)
	side := rapid.OneOf(rapid.Int64Range(-bound, bound), rapid.SampledFrom([]int64{-bound, -1, 0, 1, bound}))
	rest := rapid.OneOf(rapid.Int64Range(0, bound), rapid.SampledFrom([]int64{0, 1, bound}))
	rapid.Check(t, func(t *rapid.T) {
		var sum amount.Sum
		want := new(big.Int)
		for range rapid.IntRange(0, 9).Draw(t, "n") {
			a, err := amount.Of(side.Draw(t, "hi"), rest.Draw(t, "lo"))
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "add") {
				sum, want = sum.Add(a.Sum()), want.Add(want, parts(a.Sum()))
			} else {
				sum, want = sum.Sub(a.Sum()), want.Sub(want, parts(a.Sum()))
			}
		}
		over, hi, lo := sum.Parts()
		if parts(sum).Cmp(want) != 0 || sum.Sign() != want.Sign() || over > 0 && hi < 0 || over < 0 && hi > 0 {
			t.Fatalf("%d %d %d is %v, want %v", over, hi, lo, sum, want)
		}
		text, ok := new(big.Rat).SetString(sum.String())
		if !ok || text.Mul(text, new(big.Rat).SetInt64(1e18)).Cmp(new(big.Rat).SetInt(want)) != 0 {
			t.Fatalf("%v prints as %s", want, sum)
		}
		if again, err := amount.SumOf(over, hi, lo); err != nil || again != sum {
			t.Fatalf("%v comes back as %v, %v", sum, again, err)
		}
		if a, err := sum.Amount(); (err == nil) != (over == 0) || err == nil && a.Sum() != sum {
			t.Fatalf("%v is the amount %v, %v", sum, a, err)
		}
	})
}

func TestSumColumns(t *testing.T) {
	for columns, want := range map[[3]int64]string{{1, 0, 0}: "1000000000000000000", {1, 5, 5e17}: "1000000000000000005.5",
		{-1, 0, 5e17}: "-999999999999999999.5", {-2, -1, 0}: "-2000000000000000001", {1, -1, 0}: "999999999999999999",
		{-1, 1e18 + 1, 0}: "1", {1e18, 0, 0}: "", {-1e18, 0, 0}: "", {0, 0, 1e18}: "", {0, 0, -1}: ""} {
		s, err := amount.SumOf(columns[0], columns[1], columns[2])
		if (err == nil) != (want != "") || err == nil && s.String() != want {
			t.Errorf("%v: %v, %v, want %s", columns, s, err, want)
		}
	}
	s, _ := amount.SumOf(-1, 0, 5e17)
	if out, err := json.Marshal(s); err != nil || string(out) != "-999999999999999999.5" {
		t.Errorf("%s, %v", out, err)
	}
}

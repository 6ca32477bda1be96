package amount_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"castellan/domain/kit/amount"
)

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

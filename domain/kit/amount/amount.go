// Package amount implements exact money: a number of units and of 10⁻¹⁸ parts of a unit (D-GEN-08). It is the pair of
// columns that the ledger keeps, and it supports only addition, subtraction and comparison. Package rate multiplies and
// divides.
//
// The one idea: an operation is exact or an error; no operation rounds, and no value is ever a floating-point number.
// Start reading at Amount.
package amount

import (
	"cmp"
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// Decimals is the number of digits after the decimal point, for every asset.
const Decimals = 18

const (
	one     = 1_000_000_000_000_000_000 // parts of a unit; units stay below this number too
	maxText = 64                        // maximum bytes of a number, including superfluous zeros
)

// Errors of amounts.
var (
	ErrNumber    = errors.New("must be a decimal number")
	ErrRange     = errors.New("is too large for an amount")
	ErrPrecision = errors.New("has too many decimals")
)

// Amount is hi + lo·10⁻¹⁸ with 0 ≤ lo < 10¹⁸ and |hi| < 10¹⁸; so -0.5 is -1 and
// 0.5. The zero value is 0, and == compares. It is safe for concurrent use.
type Amount struct {
	hi int64
	lo uint64
}

// Of returns the amount of two columns. ErrRange if they are not a valid amount.
func Of(hi, lo int64) (Amount, error) {
	if hi <= -one || hi >= one || lo < 0 || lo >= one {
		return Amount{}, ErrRange
	}
	return Amount{hi, uint64(lo)}, nil
}

// Parts returns the two columns of the amount.
func (a Amount) Parts() (hi, lo int64) { return a.hi, int64(a.lo) }

// Parse reads plain notation, such as -12.50. A text longer than any amount is rejected before it is parsed. Errors:
// ErrNumber, ErrRange, ErrPrecision.
func Parse(s string) (Amount, error) {
	if len(s) > maxText {
		return Amount{}, ErrRange
	}
	s, negative := strings.CutPrefix(s, "-")
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole) || point && !digits(fraction) {
		return Amount{}, ErrNumber
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	switch {
	case len(whole) > Decimals:
		return Amount{}, ErrRange
	case len(fraction) > Decimals:
		return Amount{}, ErrPrecision
	}
	hi, _ := strconv.ParseInt("0"+whole, 10, 64) // at most 18 digits: it fits
	lo, _ := strconv.ParseInt(fraction+strings.Repeat("0", Decimals-len(fraction)), 10, 64)
	a := Amount{hi, uint64(lo)}
	if negative {
		return a.Neg()
	}
	return a, nil
}

// Must is Parse for a constant of the program; it panics if the constant is invalid.
func Must(s string) Amount {
	a, err := Parse(s)
	if err != nil {
		panic("amount " + s + " " + err.Error())
	}
	return a
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// String returns the amount in plain notation, without superfluous zeros and "-0".
func (a Amount) String() string {
	sign, hi, lo := "", a.hi, a.lo
	if hi < 0 {
		if sign, hi = "-", -hi; lo > 0 {
			hi, lo = hi-1, one-lo
		}
	}
	text := sign + strconv.FormatInt(hi, 10)
	if lo == 0 {
		return text
	}
	return text + "." + strings.TrimRight(strconv.FormatUint(one+lo, 10)[1:], "0")
}

// Add returns a + b. ErrRange.
func (a Amount) Add(b Amount) (Amount, error) {
	hi, lo := a.hi+b.hi, int64(a.lo+b.lo) // both fit: twice the bound is below 2⁶¹
	if lo >= one {
		hi, lo = hi+1, lo-one
	}
	return Of(hi, lo)
}

// Most is the largest amount.
var Most = Amount{one - 1, one - 1}

// Neg returns -a. ErrRange.
func (a Amount) Neg() (Amount, error) { return Amount{}.Sub(a) }

// Sub returns a - b. ErrRange.
func (a Amount) Sub(b Amount) (Amount, error) {
	hi, lo := a.hi-b.hi, int64(a.lo)-int64(b.lo)
	if lo < 0 {
		hi, lo = hi-1, lo+one
	}
	return Of(hi, lo)
}

// Cmp returns -1 for a < b, 0 for a = b and +1 for a > b.
func (a Amount) Cmp(b Amount) int { return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo)) }

// Sign returns -1, 0 or +1 if the amount is below, equal to or above zero.
func (a Amount) Sign() int { return a.Cmp(Amount{}) }

// Fits reports whether the amount needs at most the given number of decimals, 0 to Decimals.
func (a Amount) Fits(decimals int) bool { return a.lo%Unit(decimals) == 0 }

// Unit returns the number of parts in the smallest amount of an asset with the given decimals, 0 to Decimals:
// 10^(18-decimals).
func Unit(decimals int) uint64 {
	unit := uint64(1)
	for range Decimals - decimals {
		unit *= 10
	}
	return unit
}

// MarshalJSON writes a number in plain notation.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads a JSON number, or a string in plain notation. Languages write small numbers with an exponent.
func (a *Amount) UnmarshalJSON(b []byte) (err error) {
	text := strings.Trim(string(b), `"`)
	_, exponent, _ := strings.Cut(strings.ToLower(string(b)), "e")
	if n, err := strconv.Atoi(exponent); err == nil && max(n, -n) <= maxText {
		r, _ := new(big.Rat).SetString(text) // a JSON number
		text = strings.TrimRight(r.FloatString(len(text)+maxText), "0") + "0"
	}
	*a, err = Parse(text)
	return err
}

// Package rate manages exchange rates (section 4.7 of the interface; decisions D-CUR-07, D-CUR-08). It is the only
// place that multiplies money, rounded half-even.
//
// The one idea: a rate is an exact decimal, and rounding happens in one step at the end. The decimal library is used
// only in this package. Start reading at Rate, then Find.
package rate

import (
	"fmt"
	"regexp"

	"github.com/shopspring/decimal"

	"castellan/domain/kit/amount"
)

// Limits of a parsed rate, in digits before and after the point.
const (
	maxWhole    = 18
	maxDecimals = 24
)

// notation is the number format of JSON, with limits on its length.
var notation = regexp.MustCompile(`^[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$`)

// significant is the number of digits of a computed rate.
const significant = 18

// Rate is an exact number above zero. It is safe for concurrent use.
type Rate struct{ d decimal.Decimal }

var errRate = fmt.Errorf("must be a number above 0 with at most %d digits before and %d after the decimal point",
	maxWhole, maxDecimals)

// Parse reads a rate in the number format of JSON.
func Parse(s string) (Rate, error) {
	if !notation.MatchString(s) {
		return Rate{}, errRate
	}
	d, err := decimal.NewFromString(s)
	if err != nil || !d.IsPositive() || d.Cmp(tooLarge) >= 0 || !d.Equal(d.Truncate(maxDecimals)) {
		return Rate{}, errRate
	}
	return Rate{d}, nil
}

var tooLarge = decimal.New(1, maxWhole)

// Must is Parse for a constant of the program; it panics if the constant is invalid.
func Must(s string) Rate {
	r, err := Parse(s)
	if err != nil {
		panic("rate " + s + " " + err.Error())
	}
	return r
}

// String returns the rate in plain notation, without superfluous zeros.
func (r Rate) String() string { return r.d.String() }

// Equal reports whether two rates are the same number.
func (r Rate) Equal(other Rate) bool { return r.d.Equal(other.d) }

// MarshalJSON writes a number in plain notation.
func (r Rate) MarshalJSON() ([]byte, error) { return []byte(r.String()), nil }

// Of returns the amount times the rate, rounded half-even to the decimals, 0 to amount.Decimals. An error if the result
// is too large for an amount.
func (r Rate) Of(a amount.Amount, decimals int) (amount.Amount, error) {
	return rounded(number(a).Mul(r.d), decimals)
}

func number(a amount.Amount) decimal.Decimal {
	hi, lo := a.Parts()
	return decimal.New(hi, 0).Add(decimal.New(lo, -amount.Decimals))
}

func rounded(d decimal.Decimal, decimals int) (amount.Amount, error) {
	return amount.Parse(d.RoundBank(int32(decimals)).String())
}

// quotient returns a/b for positive numbers, rounded half-even to the significant digits in one step.
func quotient(a, b decimal.Decimal) decimal.Decimal {
	// this many digits before the point, or one more
	whole := a.NumDigits() + int(a.Exponent()) - b.NumDigits() - int(b.Exponent())
	places := int32(significant - whole)
	q, rest := a.QuoRem(b, places)
	if q.NumDigits() > significant {
		places--
		q, rest = a.QuoRem(b, places)
	}
	step := decimal.New(1, -places)
	switch twice := rest.Mul(decimal.NewFromInt(2)).Cmp(b.Mul(step)); {
	case twice > 0, twice == 0 && q.Shift(places).BigInt().Bit(0) == 1:
		q = q.Add(step)
	}
	return q
}

package record

import (
	"fmt"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
)

// AmountColumns is how a row keeps an amount: two BIGINT columns, hi and lo. A
// row embeds it with the prefix of their names, as posted_hi and posted_lo:
//
//	Posted record.AmountColumns `bun:"embed:posted_"`
type AmountColumns struct{ Hi, Lo int64 }

func ColumnsOf(a amount.Amount) (c AmountColumns) {
	c.Hi, c.Lo = a.Parts()
	return c
}

// Amount is the amount of the columns; an error when they hold none, which the
// checks of the schema rule out.
func (c AmountColumns) Amount() (amount.Amount, error) {
	a, err := amount.Of(c.Hi, c.Lo)
	if err != nil {
		err = fmt.Errorf("read a stored amount %d, %d: %w", c.Hi, c.Lo, err)
	}
	return a, err
}

// WideColumns is how a row keeps a sum: over, hi and lo (amount.Sum). Rows of programs without the column over have 0
// there.
type WideColumns struct{ Over, Hi, Lo int64 }

// WideOf returns the columns of a sum. A sum beyond an amount gets an hi that programs without the column over refuse,
// so that they do not read a smaller sum.
func WideOf(s amount.Sum) (c WideColumns) {
	switch c.Over, c.Hi, c.Lo = s.Parts(); {
	case c.Over > 0:
		c.Over, c.Hi = c.Over-1, c.Hi+half*half
	case c.Over < 0:
		c.Over, c.Hi = c.Over+1, c.Hi-half*half
	}
	return c
}

func ReadSums(columns map[*amount.Sum]WideColumns) (err error) {
	for to, c := range columns {
		if *to, err = amount.SumOf(c.Over, c.Hi, c.Lo); err != nil {
			return fmt.Errorf("read a stored sum %d, %d, %d: %w", c.Over, c.Hi, c.Lo, err)
		}
	}
	return nil
}

// SumColumns is a sum of amounts, or of differences of them, each of whose columns is
// summed in two halves: a sum of less than 2³⁰ amounts fits. Summed and WithSums
// select them.
type SumColumns struct{ HiHigh, HiLow, LoHigh, LoLow int64 }

const half = 1_000_000_000

// WithSums sums the columns hi and lo of all rows.
func WithSums(q *bun.SelectQuery) *bun.SelectQuery { return q.ColumnExpr(Summed("", "", "", "")) }

// Summed is the columns of a sum, named with a prefix, of the amounts of two columns
// whose names begin with plus, less those that begin with minus; "" for none. It
// counts the rows for which a condition holds; "" for all. The columns are in the
// order of SumColumns: a UNION takes them by their places.
func Summed(prefix, when, plus, minus string) string {
	var out []string
	for _, column := range []string{"hi", "lo"} {
		for _, part := range [][2]string{{"_high", " / 1000000000"}, {"_low", " % 1000000000"}} {
			value := plus + column + part[1]
			if minus != "" {
				value += " - " + minus + column + part[1]
			}
			if when != "" {
				value = "CASE WHEN " + when + " THEN " + value + " ELSE 0 END"
			}
			out = append(out, "CAST(sum("+value+") AS BIGINT) AS "+prefix+column+part[0])
		}
	}
	return strings.Join(out, ", ")
}

func (c SumColumns) Sum() (amount.Sum, error) {
	units, low := floored(c.LoHigh, half)
	more, parts := floored(low*half+c.LoLow, half*half)
	over, high := floored(c.HiHigh, half)
	return amount.SumOf(over, high*half+c.HiLow+units+more, parts)
}

// floored divides with a rest that is not negative.
func floored(n, by int64) (quotient, rest int64) {
	rest = (n%by + by) % by
	return (n - rest) / by, rest
}

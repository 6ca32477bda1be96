package persistence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
)

// amountColumns is how a row keeps an amount: two BIGINT columns, hi and lo. A
// row embeds it with the prefix of their names, as posted_hi and posted_lo:
//
//	Posted amountColumns `bun:"embed:posted_"`
type amountColumns struct{ Hi, Lo int64 }

func columnsOf(a amount.Amount) (c amountColumns) {
	c.Hi, c.Lo = a.Parts()
	return c
}

// amount is the amount of the columns; an error when they hold none, which the
// checks of the schema rule out.
func (c amountColumns) amount() (amount.Amount, error) {
	a, err := amount.Of(c.Hi, c.Lo)
	if err != nil {
		err = fmt.Errorf("read a stored amount %d, %d: %w", c.Hi, c.Lo, err)
	}
	return a, err
}

// readAmounts reads the columns of several amounts.
func readAmounts(columns map[*amount.Amount]amountColumns) (err error) {
	for to, c := range columns {
		if *to, err = c.amount(); err != nil {
			return err
		}
	}
	return nil
}

// sumColumns is a sum of amounts, or of differences of them, each of whose columns is
// summed in two halves: a sum of less than 2³⁰ amounts fits. summed and withSums
// select them.
type sumColumns struct{ HiHigh, HiLow, LoHigh, LoLow int64 }

const half = 1_000_000_000

// withSums sums the columns hi and lo of all rows.
func withSums(q *bun.SelectQuery) *bun.SelectQuery { return q.ColumnExpr(summed("", "", "", "")) }

// summed is the columns of a sum, named with a prefix, of the amounts of two columns
// whose names begin with plus, less those that begin with minus; "" for none. It
// counts the rows for which a condition holds; "" for all.
func summed(prefix, when, plus, minus string) string {
	var out []string
	for _, column := range []string{"hi", "lo"} {
		for name, part := range map[string]string{"_high": " / 1000000000", "_low": " % 1000000000"} {
			value := plus + column + part
			if minus != "" {
				value += " - " + minus + column + part
			}
			if when != "" {
				value = "CASE WHEN " + when + " THEN " + value + " ELSE 0 END"
			}
			out = append(out, "CAST(sum("+value+") AS BIGINT) AS "+prefix+column+name)
		}
	}
	slices.Sort(out) // the text of a query never changes
	return strings.Join(out, ", ")
}

// amount is the sum; amount.ErrRange when no amount can hold it.
func (c sumColumns) amount() (amount.Amount, error) {
	if c.HiHigh > half || c.HiHigh < -half {
		return amount.Amount{}, amount.ErrRange
	}
	units, low := floored(c.LoHigh, half)
	more, parts := floored(low*half+c.LoLow, half*half)
	return amount.Of(c.HiHigh*half+c.HiLow+units+more, parts)
}

// floored divides with a rest that is not negative.
func floored(n, by int64) (quotient, rest int64) {
	rest = (n%by + by) % by
	return (n - rest) / by, rest
}

package persistence

import (
	"fmt"

	"github.com/uptrace/bun"

	"castellan/domain/amount"
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

// sumColumns is a sum of amounts, each of whose columns is summed in two halves: a
// sum of less than 2³⁰ amounts fits. withSums selects them.
type sumColumns struct{ HiHigh, HiLow, LoHigh, LoLow int64 }

const half = 1_000_000_000

func withSums(q *bun.SelectQuery) *bun.SelectQuery {
	for _, column := range []string{"hi", "lo"} {
		q = q.ColumnExpr("CAST(sum("+column+" / ?) AS BIGINT) AS "+column+"_high", half).
			ColumnExpr("CAST(sum("+column+" % ?) AS BIGINT) AS "+column+"_low", half)
	}
	return q
}

// amount is the sum; amount.ErrRange when no amount can hold it. No column is negative.
func (c sumColumns) amount() (amount.Amount, error) {
	low := c.LoLow + c.LoHigh%half*half // below 2·10¹⁸
	rest := c.LoHigh/half + low/(half*half)
	hi := c.HiLow + rest
	if c.HiHigh > half {
		return amount.Amount{}, amount.ErrRange
	}
	return amount.Of(c.HiHigh*half+hi, low%(half*half))
}

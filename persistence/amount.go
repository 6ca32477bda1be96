package persistence

import (
	"fmt"

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

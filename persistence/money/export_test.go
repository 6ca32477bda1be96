package money

import "castellan/domain/money/transaction"

// CountedText is the text of Counted without totals, and the number of its arguments.
func (s Transactions) CountedText(queries ...transaction.CountedQuery) (text string, args int) {
	c := newCounting(s.db.Postgres(), nil, queries, nil)
	q := c.query()
	return "SELECT " + q.Columns + " FROM " + q.From + " ORDER BY " + q.Order, len(c.args)
}

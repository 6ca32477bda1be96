package accounting

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/sheet"
	"castellan/domain/kit/sorting"
	"castellan/domain/money/ledger"
)

// journal holds the entries of a period. For each day and currency the debits equal the credits.
type journal struct {
	StartDate   string `json:"startDate"`
	EndDate     string `json:"endDate"` // exclusive
	InvoiceDate string `json:"invoiceDate"`
	Lines       []line `json:"lines"`
}

// line is one side of a booking.
type line struct {
	Date     string     `json:"date"`
	Currency string     `json:"currency"`
	Network  string     `json:"network"`
	Entry    string     `json:"entry"`   // deposit, withdrawal, fee, adjustment, reversal or transfer
	Account  string     `json:"account"` // kind of account
	Debit    amount.Sum `json:"debit"`
	Credit   amount.Sum `json:"credit"`
	Count    int64      `json:"count"` // number of transfers
}

// entry returns the bookkeeping type of a total.
func entry(t Total) string {
	touches := func(k ledger.Kind) bool { return t.Debit == k || t.Credit == k }
	switch {
	case t.Kind == ledger.KindReversal:
		return "reversal"
	case touches(ledger.Fee):
		return "fee"
	case touches(ledger.Adjustment):
		return "adjustment"
	case t.Credit == ledger.User && t.Debit != ledger.User:
		return "deposit"
	case t.Debit == ledger.User && t.Credit != ledger.User:
		return "withdrawal"
	}
	return "transfer"
}

func newJournal(p Period, totals []Total, codes func(int64) (string, string, error)) (out journal, err error) {
	out = journal{p.From.UTC().Format(time.RFC3339), p.To.UTC().Format(time.RFC3339),
		p.Invoice.UTC().Format(time.DateOnly), []line{}}
	sums := map[line]line{} // keyed by everything except the amounts
	for _, t := range totals {
		l := line{Date: t.Day.UTC().Format(time.DateOnly), Entry: entry(t)}
		if l.Currency, l.Network, err = codes(t.Asset); err != nil {
			return out, err
		}
		for side, kind := range map[string]ledger.Kind{"debit": t.Debit, "credit": t.Credit} {
			l.Account = string(kind)
			sum, known := sums[l]
			if !known {
				sum = l
			}
			to := &sum.Debit
			if side == "credit" {
				to = &sum.Credit
			}
			*to, sum.Count = to.Add(t.Sum), sum.Count+t.Count
			sums[l] = sum
		}
	}
	for _, l := range sums {
		out.Lines = append(out.Lines, l)
	}
	sorting.Func(out.Lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.Date, b.Date), cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Network, b.Network),
			cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Account, b.Account))
	})
	return out, out.balanced()
}

// balanced returns an error if the debits of a day and currency differ from its credits.
func (j journal) balanced() error {
	open := map[[2]string]amount.Sum{}
	for _, l := range j.Lines {
		key := [2]string{l.Date, l.Currency}
		open[key] = open[key].Add(l.Debit).Sub(l.Credit)
	}
	for key, sum := range open {
		if sum.Sign() != 0 {
			return fmt.Errorf("the journal of %s on %s is out of balance", key[1], key[0])
		}
	}
	return nil
}

func (j journal) json() []byte {
	text, _ := json.MarshalIndent(j, "", "  ") // texts and amounts only: no error
	return append(text, '\n')
}

func (j journal) csv() []byte {
	rows := [][]string{{"date", "currency", "network", "entry", "account", "debit", "credit", "count", "invoiceDate"}}
	for _, l := range j.Lines {
		rows = append(rows, []string{l.Date, l.Currency, l.Network, l.Entry, l.Account, l.Debit.String(),
			l.Credit.String(), strconv.FormatInt(l.Count, 10), j.InvoiceDate})
	}
	return sheet.CSV(rows)
}

package main

import (
	"fmt"
	"os"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/money/rate"
	"castellan/persistence/money"
)

type ratesCmd struct {
	Import ratesImportCmd `cmd:"" help:"Import the rates of a CSV file."`
}

type ratesImportCmd struct {
	File string `arg:"" help:"CSV file."`
}

func (ratesImportCmd) Help() string {
	return `The first line has the columns base, quote, rate and date, in any order; other columns
are ignored. From the date on, one unit of base costs the rate in quote:

  base,quote,rate,date
  USD,TRY,41.7352,2026-01-31T10:00:00Z
  EUR,USD,1.1874,2026-01-31

Either all rates are stored or none: an invalid line is reported by its number. The same
file again changes nothing. A rate of the same pair and date replaces the stored one. A
file has at most 100000 rates. The service can run; with an embedded database, its
requests may wait for a second or two.`
}

func (c ratesImportCmd) Run(e *env) error {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	quotes, err := rate.ReadCSV(file, time.Now(), func(lines int) { fmt.Fprintf(e.out, "read %d rates\n", lines) })
	if err != nil {
		return fmt.Errorf("%s: %w; nothing is stored", c.File, err)
	}
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	fmt.Fprintf(e.out, "storing %d rates\n", len(quotes))
	changed, err := rate.Import(e.ctx, money.NewRates(v.DB), v.Changes(""), audit.Operator, quotes)
	return e.printf(err, "stored %d rates, %d of them new or changed\n", len(quotes), changed)
}

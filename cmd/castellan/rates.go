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
	Import ratesImportCmd `cmd:"" help:"Store the rates of a CSV file."`
}

type ratesImportCmd struct {
	File string `arg:"" help:"The file." type:"existingfile"`
}

func (ratesImportCmd) Help() string {
	return `The first line names the columns base, quote, rate and date, in any order; others
are ignored. One unit of base costs so much of quote since the date:

  base,quote,rate,date
  USD,TRY,41.7352,2026-01-31T10:00:00Z
  EUR,USD,1.1874,2026-01-31

Everything is stored or nothing: a faulty line is named by its number. The same
file again changes nothing, and another rate of the same pair and date takes the
place of the one that is stored. A file has at most 100000 rates. The service may
run; an embedded database has it wait for a second or two.`
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
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "stored %d rates, %d of them new or changed\n", len(quotes), changed)
	return err
}

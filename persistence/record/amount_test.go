package record_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

type pouchRow struct {
	bun.BaseModel `bun:"table:pouch,alias:p"`

	ID     int64                `bun:",pk"`
	Posted record.AmountColumns `bun:"embed:posted_"`
	Locked record.AmountColumns `bun:"embed:locked_"`
}

// Amounts come back from two columns exactly, on both databases, in the order of the numbers, and the database itself
// can sum them.
func TestAmountColumns(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		persistencetest.Exec(t, db,
			`CREATE TABLE pouch (id BIGINT PRIMARY KEY, posted_hi BIGINT NOT NULL, posted_lo BIGINT NOT NULL,
			locked_hi BIGINT NOT NULL, locked_lo BIGINT NOT NULL)`)
		texts := []string{"-999999999999999999", "-0.5", "-0.000000000000000001", "0", "0.1", "0.2", "9007199254740993",
			"999999999999999998.999999999999999999"}
		err := db.InTx(t.Context(), func(ctx context.Context) error {
			for i, text := range texts {
				row := pouchRow{ID: int64(i), Posted: record.ColumnsOf(amount.Must(text)),
					Locked: record.ColumnsOf(amount.Must("0.3"))}
				if _, err := db.Conn(ctx).NewInsert().Model(&row).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var rows []pouchRow
		read := db.Conn(t.Context()).NewSelect().Model(&rows).Order("posted_hi", "posted_lo")
		if err := read.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			posted, err := r.Posted.Amount()
			locked, other := r.Locked.Amount()
			if err != nil || other != nil || locked != amount.Must("0.3") {
				t.Fatalf("%+v: %v, %v", r, err, other)
			}
			got = append(got, posted.String())
		}
		if strings.Join(got, " ") != strings.Join(texts, " ") {
			t.Errorf("got  %v\nwant %v", got, texts)
		}
		var hi, lo int64
		if err := db.Conn(t.Context()).NewSelect().Model((*pouchRow)(nil)).Where("posted_hi = 0 AND id > 2").
			ColumnExpr("sum(posted_hi), sum(posted_lo)").Scan(t.Context(), &hi, &lo); err != nil {
			t.Fatal(err)
		}
		if sum, err := (record.AmountColumns{hi, lo}).Amount(); err != nil || sum.String() != "0.3" {
			t.Errorf("0 + 0.1 + 0.2 = %v, %v", sum, err)
		}
		if _, err := (record.AmountColumns{0, -1}).Amount(); !errors.Is(err, amount.ErrRange) {
			t.Errorf("columns that hold no amount: %v", err)
		}
	})
}

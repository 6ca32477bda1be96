package engine

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// Values of every type are read as they were written, and NULL as the zero value, with and without a transaction, for
// one row and for many.
func TestFetch(t *testing.T) {
	type kindsRow struct {
		bun.BaseModel `bun:"table:kinds,alias:t"`

		ID    string
		Short int16
		Long  int64
		Count int
		Yes   bool
		Text  string `bun:",nullzero"`
		Bytes []byte
	}
	both(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		blob := "BLOB"
		if db.Postgres() {
			blob = "BYTEA"
		}
		_, err := db.write.ExecContext(ctx, "CREATE TABLE kinds (id TEXT PRIMARY KEY, short SMALLINT NOT NULL, "+
			"long BIGINT NOT NULL, count INTEGER NOT NULL, yes BOOLEAN NOT NULL, text TEXT, bytes "+blob+")")
		storetest.Must(t, err)
		want := []kindsRow{
			{ID: "a", Short: -3, Long: 1 << 40, Count: 7, Yes: true, Text: "ü '\x01", Bytes: []byte{0, 1, 0xff}},
			{ID: "b", Short: 1, Long: -1, Text: "x"},
			{ID: "c"},
		}
		_, err = db.write.NewInsert().Model(&want).Exec(ctx)
		storetest.Must(t, err)

		ask := func(find func(into any, where string, args ...any) error) {
			t.Helper()
			var many []kindsRow
			if err := find(&many, "id >= $1", "a"); err != nil || !reflect.DeepEqual(many, want) {
				t.Errorf("%+v, %v", many, err)
			}
			var few []kindsRow
			if err := find(&few, "id > $1 AND long = $2", "a", int64(-1)); err != nil || len(few) != 1 ||
				!reflect.DeepEqual(few[0], want[1]) {
				t.Errorf("%+v, %v", few, err)
			}
			var single kindsRow
			if err := find(&single, "id = $1", "b"); err != nil || !reflect.DeepEqual(single, want[1]) {
				t.Errorf("%+v, %v", single, err)
			}
			storetest.Wants(t, find(&single, "id = $1", "absent"), fault.RecordNotFound, "a row that is not there")
			if err := find(&many, "id = $1", "absent"); err != nil || len(many) != 0 {
				t.Errorf("no rows: %+v, %v", many, err)
			}
		}
		find := func(into any, where string, args ...any) error { return db.Find(ctx, into, where, "t.id", args...) }
		ask(find)
		ask(find)
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			ask(func(into any, where string, args ...any) error { return db.Find(ctx, into, where, "t.id", args...) })
			return nil
		}))

		var wg sync.WaitGroup
		for range 32 { // more than the number of connections
			wg.Go(func() {
				for range 50 {
					var many []kindsRow
					same := func(a, b kindsRow) bool { return a.ID == b.ID && a.Long == b.Long }
					if err := find(&many, "id >= $1", "a"); err != nil || !slices.EqualFunc(many, want, same) {
						t.Errorf("%+v, %v", many, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// An SQLite connection with an interrupted read is dropped, with its prepared statements: closing the database does not
// close them again.
func TestCloseAfterAnInterruptedRead(t *testing.T) {
	db := storetest.Value(Open(t.Context(), sqliteFile(t), noteKinds, Options{MaxConns: 1}))(t)
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
		_, err := db.Migrate(ctx, noteSchema)
		return err
	}))
	db.Start(func(int) State { return nil })
	var row noteRow
	storetest.Wants(t, db.Find(t.Context(), &row, "id = $1", "", "none"), fault.RecordNotFound)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var n int64
	if err := db.read.NewRaw("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c").
		Scan(ctx, &n); err == nil {
		t.Fatal("an endless query has ended")
	}
	storetest.Must(t, db.Close())
}

// Pages of a snapshot are found by an index even before the first ANALYZE, when the planner assumes that every table is
// small. Other readers keep their plans.
func TestSnapshotPlansByIndex(t *testing.T) {
	db := open(t, pgtest.DSN(t))
	settings := Query{From: "(SELECT 1) AS one", Columns: "current_setting('enable_sort') || ' ' || " +
		"current_setting('enable_bitmapscan') || ' ' || current_setting('enable_seqscan') AS id"}
	var inside, outside struct{ ID string }
	storetest.Must(t, db.Snapshot(t.Context(), func(ctx context.Context) error {
		return db.Ask(ctx, &inside, settings)
	}))
	storetest.Must(t, db.Ask(t.Context(), &outside, settings))
	storetest.Equal(t, inside.ID, "off off off", "settings of a snapshot")
	storetest.Equal(t, outside.ID, "on on on", "settings of a snapshot")
}

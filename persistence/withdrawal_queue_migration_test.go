package persistence

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
	"castellan/persistence/money"
)

// migrationsBefore are the migrations of SQLite that come before one.
func migrationsBefore(t *testing.T, first string) fs.FS {
	t.Helper()
	all, err := engine.MigrationsOf(migrations, false)
	storetest.Must(t, err)
	some := fstest.MapFS{}
	for _, m := range all {
		if m.Name < first {
			some["migrations/sqlite/"+m.Name] = &fstest.MapFile{Data: []byte(m.Text)}
		}
	}
	if len(some) < 50 || len(some) == len(all) {
		t.Fatalf("%d of %d migrations come before %s", len(some), len(all), first)
	}
	return some
}

// lines are the rows of a query, one a line.
func lines(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	storetest.Must(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	storetest.Must(t, err)
	for rows.Next() {
		cells, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		storetest.Must(t, rows.Scan(into...))
		all = append(all, fmt.Sprint(cells...))
	}
	storetest.Must(t, rows.Err())
	return all
}

// The migration that makes the queue of withdrawals again keeps every row, index, trigger,
// condition and reference of a database that is in use.
func TestWithdrawalQueueMigration(t *testing.T) {
	const rebuild, rows = "0071_withdrawal_request.sql", 5000
	file := filepath.Join(t.TempDir(), "test.db")
	db, err := Open(t.Context(), "sqlite:"+file, Options{})
	storetest.Must(t, err)
	t.Cleanup(func() { storetest.Must(t, db.Close()) })
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
		_, err := db.Migrate(ctx, migrationsBefore(t, rebuild))
		return err
	}))

	// Without the references of withdrawals to the ledger, which the migration does not touch.
	raw, err := sql.Open("sqlite", "file:"+file+"?_pragma=foreign_keys(0)")
	storetest.Must(t, err)
	t.Cleanup(func() { storetest.Must(t, raw.Close()) })
	exec := func(statement string, args ...any) error {
		_, err := raw.ExecContext(t.Context(), statement, args...)
		return err
	}
	const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
	storetest.Must(t, exec(numbers+`INSERT INTO withdrawal (id, user_id, asset_id, hi, lo, fee_hi, fee_lo, status,
		to_address, hold_id, at, version) SELECT printf('w%05d', i), 'u' || (i % 7), 1 + i % 3, i, i % 11, 0, 0, -1,
		'address ' || i, 'hold ' || i, 1700000000000 + i, 1 FROM n`, rows))
	storetest.Must(t, exec(numbers+`INSERT INTO withdrawal_queue (id, user_id, asset_id, status, address, address_tag,
		external_id, attempt_identifier, tx_id, own_fee, fee_hi, fee_lo, at, version) SELECT printf('w%05d', i),
		'u' || (i % 7), 1 + i % 3, 4 + i % 4, 'address ' || i, substr('tag', 1, i % 4), 'e''' || i, 'a' || (i % 5),
		'x' || i, i % 2, (i % 2) * i, (i % 2) * 999999999999999999, 1700000000000 + i, 1 + i % 9 FROM n`, rows))

	const columns = `id, user_id, asset_id, status, address, address_tag, external_id, attempt_identifier, tx_id, own_fee,
		fee_hi, fee_lo, at, version`
	table := func() []string { return lines(t, raw, "SELECT "+columns+" FROM withdrawal_queue ORDER BY id") }
	schema := func(kind string) []string {
		return lines(t, raw, "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = '"+kind+"' ORDER BY name")
	}
	references := func() []string { return lines(t, raw, "PRAGMA foreign_key_list(withdrawal_queue)") }
	before, indexes, triggers, refers := table(), schema("index"), schema("trigger"), references()
	withdrawals := lines(t, raw, "SELECT * FROM withdrawal ORDER BY id")
	if len(before) != rows || len(triggers) < 10 || len(refers) != 1 {
		t.Fatalf("%d rows, %d triggers, references %v", len(before), len(triggers), refers)
	}

	var applied []string
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) (err error) {
		applied, err = db.Migrate(ctx, migrationsBefore(t, "0072"))
		return err
	}))
	if !slices.Equal(applied, []string{rebuild}) {
		t.Fatalf("applied %v", applied)
	}
	storetest.Same(t, table(), before)
	storetest.Same(t, lines(t, raw, "SELECT * FROM withdrawal ORDER BY id"), withdrawals)
	storetest.Same(t, references(), refers)
	storetest.Same(t, lines(t, raw, "SELECT DISTINCT reason FROM withdrawal_queue"), []string{""})
	after := schema("index")
	for _, was := range indexes { // only the condition of the entries that are not final is another one
		if !slices.Contains(after, was) && !strings.HasPrefix(was, "withdrawal_queue_active") {
			t.Errorf("lost or changed: %s", was)
		}
	}
	for _, name := range []string{"active", "final"} {
		if !slices.ContainsFunc(after, func(s string) bool { return strings.HasPrefix(s, "withdrawal_queue_"+name) }) {
			t.Errorf("no index withdrawal_queue_%s", name)
		}
	}
	now := schema("trigger")
	for _, was := range triggers {
		if !slices.Contains(now, was) {
			t.Errorf("lost or changed: %s", was)
		}
	}
	if left := lines(t, raw, "SELECT name FROM sqlite_master WHERE name LIKE '%\\_next' ESCAPE '\\'"); left != nil {
		t.Errorf("left over: %v", left)
	}
	if broken := lines(t, raw, "PRAGMA foreign_key_check(withdrawal_queue)"); broken != nil {
		t.Errorf("broken references: %v", broken)
	}
	storetest.Same(t, lines(t, raw, "PRAGMA integrity_check"), []string{"ok"})

	for condition, set := range map[string]string{"an unknown status": "status = 13", "a status of no queue": "status = 3",
		"no user": "user_id = NULL", "a fee that is not its own": "own_fee = 0, fee_lo = 1", "no version": "version = 0",
		"another kind of value": "at = 'now'"} {
		if exec("UPDATE withdrawal_queue SET "+set+" WHERE id = 'w00001'") == nil {
			t.Errorf("the table takes %s", condition)
		}
	}
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
		_, err := Migrate(ctx, db)
		return err
	}))
	Start(db, []byte("audit key of the test"), "test")
	store := money.NewTransactions(db)
	q, err := store.Queued(t.Context(), "w00002") // 4 + 2%4 is a withdrawal that waits for the hot wallet
	storetest.Must(t, err)
	if q.Status != transaction.HotWalletIsEmpty || q.ExternalID != "e'2" || q.Fee != nil || q.Version != 3 ||
		!q.At.Equal(time.UnixMilli(1_700_000_000_002)) {
		t.Errorf("read %+v", q)
	}
	q.Status, q.Reason = transaction.QueueFailed, "no route"
	storetest.Must(t, db.Commit(t.Context(), transaction.SetQueued{Queued: q}))
	if err := db.Commit(t.Context(), transaction.SetQueued{Queued: q}); err != commit.ErrFenced {
		t.Errorf("a version that has moved on: %v", err)
	}
	q, err = store.Queued(t.Context(), "w00002")
	storetest.Must(t, err)
	if q.Status != transaction.QueueFailed || q.Reason != "no route" || q.Version != 4 {
		t.Errorf("written %+v", q)
	}
}

package money_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/accounting"
	"castellan/domain/money/balance"
	"castellan/domain/money/balance/balancetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"

	"github.com/uptrace/bun"
)

func TestBalanceStore(t *testing.T) {
	for name, test := range balancetest.Cases {
		t.Run(name, func(t *testing.T) {
			persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
				test(t, balancetest.Site{Store: money.NewBalances(db), Ledger: money.NewLedger(db), Commit: db})
			})
		})
	}
}

// Sums of a user, movements of a period and the days of assets are found by index, however many movements there are.
func TestBalancesAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := money.NewBalances(db), t.Context()
		days := func(fs []record.Filter) *bun.SelectQuery {
			return money.AssetDays.Selected(db.Conn(ctx).NewSelect().Model((*money.AssetDayRow)(nil)), record.Part{Where: fs})
		}
		for name, c := range map[string]struct {
			query            *bun.SelectQuery
			sqlite, postgres string
		}{
			"what a user has": {s.SumsQuery(ctx, balance.Query{UserID: new("u")}), "sqlite_autoindex_account_2",
				"account_kind_owner_asset_id_key"},
			"an asset": {s.SumsQuery(ctx, balance.Query{Assets: []int64{1}}), "account_asset", "Index Scan using account_"},
			"a period": {s.MovedQuery(ctx, "0", "9"), "sqlite_autoindex_transfer_1",
				"Index Scan using transfer_"},
			"days":           {days(money.DayFilters(1, 2, nil)), "sqlite_autoindex_asset_day_1", "asset_day_pkey"},
			"days before":    {days(money.BeforeFilters(1)), "asset_day_asset (asset_id=? AND day<?)", "asset_day_asset"},
			"first and last": {s.SpansQuery(ctx), "asset_day_asset (asset_id=?)", "asset_day_asset"},
		} {
			plan, index := persistencetest.Explain(t, db, c.query), c.sqlite
			if db.Postgres() {
				index = c.postgres
			}
			for _, whole := range []string{"SCAN d\n", "SCAN b\n", "SCAN transfer", "Seq Scan on asset_day",
				"Seq Scan on transfer", "Seq Scan on balance"} {
				if strings.Contains(plan+"\n", whole) {
					t.Errorf("%s: reads a whole table:\n%s", name, plan)
				}
			}
			if !strings.Contains(plan, index) {
				t.Errorf("%s: the plan does not use %s:\n%s", name, index, plan)
			}
		}
	})
}

// bookedDay is the day of the movements of these tests.
var bookedDay = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// owned is an account in an asset: of a user, or the treasury if no owner is given.
func owned(owner string, asset int64) ledger.Account {
	if owner == "" {
		return ledger.Account{Kind: ledger.Treasury, Asset: asset}
	}
	return ledger.Account{Kind: ledger.User, Owner: owner, Asset: asset}
}

// books makes one transfer.
func books(t *testing.T, db *persistence.DB, at time.Time, kind string, from, to ledger.Account, sum string) {
	t.Helper()
	l := ledgertest.New(money.NewLedger(db), db)
	l.Decimals = func(context.Context, int64) (int, error) { return 18, nil }
	transfer := ledger.New(at, kind, fmt.Sprint(from, to, at, sum), from, to, amount.Must(sum))
	_, err := l.Do(t.Context(), audit.By{UserID: "op"}, ledger.Movement{Transfers: []ledger.Transfer{transfer}})
	storetest.Must(t, err)
}

// repeats adds copies of the last transfer, later than it and within its millisecond. Each moves a number of units.
func repeats(t *testing.T, db *persistence.DB, copies int, units int64) {
	t.Helper()
	persistencetest.Exec(t, db, fmt.Sprintf("INSERT INTO transfer (id, group_id, kind, ref, digest, asset_id, unit, "+
		"debit_id, credit_id, hi, lo, reason, actor_id, at, effective_at) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL "+
		"SELECT n + 1 FROM c WHERE n < %d) SELECT substr(t.id, 1, 10) || 'ZZ%02d%05d' || (1000000 + c.n), t.group_id, "+
		"t.kind, '%d times %d, ' || c.n, t.digest, t.asset_id, t.unit, t.debit_id, t.credit_id, %d, 0, t.reason, "+
		"t.actor_id, t.at, t.effective_at "+
		"FROM transfer AS t, c WHERE t.id = (SELECT MAX(id) FROM transfer)", copies, min(units, 99),
		copies%100_000, copies, units, units))
}

// The movements of a period are added up exactly, also if they are more than the 20,000 that one statement reads.
func TestMovementsOfManyTransfers(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		day := balance.DayOf(bookedDay)
		moved := func(want string) {
			t.Helper()
			got, err := money.NewBalances(db).Moved(t.Context(), bookedDay, bookedDay.Add(48*time.Hour))
			if storetest.Must(t, err); fmt.Sprint(got) != want {
				t.Errorf("%v, want %s", got, want)
			}
		}
		books(t, db, bookedDay, "pay", owned("", 1), owned("u", 1), "0.5")
		repeats(t, db, 19_999, 2)
		moved(fmt.Sprintf("[{%d 1 39998.5 0 0}]", day))
		books(t, db, bookedDay.Add(time.Hour), "pay", owned("", 1), owned("u", 1), "7")
		moved(fmt.Sprintf("[{%d 1 40005.5 0 0}]", day))
		books(t, db, bookedDay.Add(24*time.Hour), "pay", owned("", 1), owned("u", 1), "2")
		moved(fmt.Sprintf("[{%d 1 40005.5 0 0} {%d 1 2 0 0}]", day, day+1))
	})
}

// mostUnits are the whole units of the largest amount.
const mostUnits = 999_999_999_999_999_999

// Movements whose sum no amount can hold are an error, in one statement and over several, in and out.
func TestMovementsOutOfRange(t *testing.T) {
	for _, to := range []string{"u", ""} {
		for _, before := range []int{1, 19_999} { // the last movement is the only one of a second statement
			db := persistencetest.SQLite(t)
			from := map[string]string{"": "u"}[to]
			books(t, db, bookedDay.Add(-time.Hour), "pay", owned("", 1), owned("u", 1), "1")
			books(t, db, bookedDay, "pay", owned(from, 1), owned(to, 1), "1")
			repeats(t, db, before, 1)
			if _, err := money.NewBalances(db).Moved(t.Context(), bookedDay, bookedDay.Add(time.Hour)); err != nil {
				t.Error(err)
			}
			repeats(t, db, 1, mostUnits)
			got, err := money.NewBalances(db).Moved(t.Context(), bookedDay, bookedDay.Add(time.Hour))
			if !errors.Is(err, amount.ErrRange) || got != nil {
				t.Errorf("to %q, after %d: %v, %v", to, before, got, err)
			}
		}
	}
}

// A sum of balances that no amount can hold is an error. Amounts that are locked are shown as the largest amount.
func TestSumsOutOfRange(t *testing.T) {
	db := persistencetest.SQLite(t)
	for _, owner := range []string{"u", "v"} {
		books(t, db, bookedDay, "pay", owned("", 1), owned(owner, 1), "1")
	}
	sums := func() (string, error) {
		got, err := money.NewBalances(db).Sums(t.Context(), balance.Query{})
		return fmt.Sprint(got), err
	}
	const most = " = 999999999999999999, seq = seq + 1, version = version + 1 WHERE account_id LIKE 'user%'"
	persistencetest.Exec(t, db, "UPDATE balance SET locked_hi"+most)
	if got, err := sums(); err != nil || got != "[{1 2 0 "+amount.Most.String()+"}]" {
		t.Errorf("locked: %s, %v", got, err)
	}
	persistencetest.Exec(t, db, "UPDATE balance SET posted_hi"+most)
	if got, err := sums(); !errors.Is(err, amount.ErrRange) || got != "[]" {
		t.Errorf("posted: %s, %v", got, err)
	}
}

// A journal reads the totals of the transfers booked in a period, by day, asset, kind and kinds of accounts. The period
// has its first instant and not its last.
func TestTotalsOfAJournal(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		fee := ledger.Account{Kind: ledger.Fee, Asset: 1}
		books(t, db, bookedDay, "pay", owned("", 1), owned("u", 1), "3")
		books(t, db, bookedDay.Add(time.Hour), "pay", owned("", 1), owned("v", 1), "0.25")
		books(t, db, bookedDay.Add(2*time.Hour), "pay", owned("u", 1), owned("v", 1), "1")
		books(t, db, bookedDay.Add(3*time.Hour), "charge", owned("u", 1), fee, "0.5")
		books(t, db, bookedDay.Add(3*time.Hour), "pay", owned("", 2), owned("u", 2), "9")
		books(t, db, bookedDay.Add(24*time.Hour-time.Millisecond), "pay", owned("u", 1), owned("", 1), "0.125")
		books(t, db, bookedDay.Add(24*time.Hour), "pay", owned("", 1), owned("u", 1), "5")
		total := func(day int, asset int64, kind string, from, to ledger.Kind, sum string, count int64) accounting.Total {
			return accounting.Total{Day: bookedDay.AddDate(0, 0, day), Asset: asset, Kind: kind, Debit: from, Credit: to,
				Sum: amount.Must(sum), Count: count}
		}
		first := []accounting.Total{total(0, 1, "charge", ledger.User, ledger.Fee, "0.5", 1),
			total(0, 1, "pay", ledger.Treasury, ledger.User, "3.25", 2),
			total(0, 1, "pay", ledger.User, ledger.Treasury, "0.125", 1),
			total(0, 1, "pay", ledger.User, ledger.User, "1", 1), total(0, 2, "pay", ledger.Treasury, ledger.User, "9", 1)}
		for _, c := range []struct {
			from, to time.Time
			want     []accounting.Total
		}{
			{bookedDay, bookedDay.Add(24 * time.Hour), first},
			{bookedDay, bookedDay.Add(24*time.Hour + time.Millisecond),
				append(first, total(1, 1, "pay", ledger.Treasury, ledger.User, "5", 1))},
			{bookedDay.Add(time.Millisecond), bookedDay.Add(time.Hour + time.Millisecond),
				[]accounting.Total{total(0, 1, "pay", ledger.Treasury, ledger.User, "0.25", 1)}},
			{bookedDay.Add(48 * time.Hour), bookedDay.Add(72 * time.Hour), nil},
		} {
			got, err := money.NewAccounting(db).Totals(t.Context(), c.from, c.to)
			if storetest.Must(t, err); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("from %v to %v:\n%v\nwant\n%v", c.from, c.to, got, c.want)
			}
		}
	})
	db := persistencetest.SQLite(t)
	books(t, db, bookedDay, "pay", owned("", 1), owned("u", 1), "1")
	repeats(t, db, 1, mostUnits)
	got, err := money.NewAccounting(db).Totals(t.Context(), bookedDay, bookedDay.Add(time.Hour))
	if !errors.Is(err, amount.ErrRange) || got != nil {
		t.Errorf("out of range: %v, %v", got, err)
	}
}

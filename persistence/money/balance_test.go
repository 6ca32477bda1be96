package money_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/accounting"
	"castellan/domain/money/balance"
	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestBalanceStore(t *testing.T) {
	// Each case needs its own database, because a ledger is never emptied.
	for name, test := range map[string]func(*testing.T, *persistence.DB){"Sums": balanceSums, "Moved": balanceMoved,
		"Days": balanceDays, "AtOnce": balancesAtOnce} {
		t.Run(name, func(t *testing.T) { persistencetest.Both(t, test) })
	}
}

// Sums of a user, movements of a period and the days of assets are found by index, however many movements there are.
func TestBalancesAreFoundByIndex(t *testing.T) {
	persistencetest.WithReads(t, func(db *persistence.DB, r *persistencetest.Reads) {
		wants := func(sqlite, postgres string, err error) {
			r.Helper()
			plan, index := r.Plan(err), sqlite
			if db.Postgres() {
				index = postgres
			}
			for _, whole := range []string{"SCAN d\n", "SCAN b\n", "SCAN transfer", "Seq Scan on asset_day",
				"Seq Scan on transfer", "Seq Scan on balance"} {
				if strings.Contains(plan+"\n", whole) {
					r.Errorf("reads a whole table:\n%s", plan)
				}
			}
			if !strings.Contains(plan, index) {
				r.Errorf("does not use %s:\n%s", index, plan)
			}
		}
		s, ctx := money.NewBalances(db), r.Context()
		wants("sqlite_autoindex_account_2", "account_kind_owner_asset_id_key",
			storetest.Err(s.Sums(ctx, balance.Query{UserID: new("u")})))
		wants("account_asset", "Index Scan using account_", storetest.Err(s.Sums(ctx, balance.Query{Assets: []int64{1}})))
		wants("sqlite_autoindex_transfer_1", "Index Scan using transfer_",
			storetest.Err(s.Moved(ctx, bookedDay, bookedDay.Add(time.Hour))))
		wants("sqlite_autoindex_asset_day_1", "asset_day_pkey", storetest.Err(s.Days(ctx, 1, 2, nil)))
		wants("asset_day_asset (asset_id=? AND day<?)", "asset_day_asset", storetest.Err(s.Before(ctx, 1)))
		wants("asset_day_asset (asset_id=?)", "asset_day_asset", storetest.Err(s.Spans(ctx)))
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
func books(t *testing.T, db *persistence.DB, at time.Time, kind string, from, to ledger.Account, sum string,
	with ...commit.Write) {
	t.Helper()
	transfer := ledger.New(at, kind, fmt.Sprint(from, to, at, sum), from, to, amount.Must(sum))
	does(t, db, ledger.Movement{Transfers: []ledger.Transfer{transfer}, With: with})
}

func does(t *testing.T, db *persistence.DB, m ledger.Movement) {
	t.Helper()
	l := ledgertest.New(money.NewLedger(db), db)
	l.Decimals = func(context.Context, int64) (int, error) { return 18, nil }
	_, err := l.Do(t.Context(), audit.By{UserID: "op"}, m)
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

// Movements are added up exactly beyond the largest amount, in one statement and over several, in and out.
func TestMovementsBeyondAnAmount(t *testing.T) {
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
			sums := map[string]string{"u": "%d 0", "": "0 %d"}[to]
			want := fmt.Sprintf("[{%d 1 "+sums+" 0}]", balance.DayOf(bookedDay), mostUnits+1+int64(before))
			if err != nil || fmt.Sprint(got) != want {
				t.Errorf("to %q, after %d: %v, %v, want %s", to, before, got, err, want)
			}
		}
	}
}

// Balances are added up exactly beyond the largest amount, and so is what is locked.
func TestSumsBeyondAnAmount(t *testing.T) {
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
	if got, err := sums(); err != nil || got != "[{1 2 0 1999999999999999998}]" {
		t.Errorf("locked: %s, %v", got, err)
	}
	persistencetest.Exec(t, db, "UPDATE balance SET posted_hi"+most)
	if got, err := sums(); err != nil || got != "[{1 1999999999999999998 0 1999999999999999998}]" {
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
				Sum: amount.Must(sum).Sum(), Count: count}
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
	if err != nil || len(got) != 1 || got[0].Sum.String() != "1000000000000000000" {
		t.Errorf("beyond an amount: %v, %v", got, err)
	}
}

// balanceNoon is noon of a day.
var balanceNoon = bookedDay.Add(12 * time.Hour)

// Sums are exact; a lock beyond one balance does not reduce another.
func balanceSums(t *testing.T, db *persistence.DB) {
	const tiny = "0.000000000000000001"
	for i := range 12 { // more parts than one integer can hold
		books(t, db, balanceNoon, "test", owned("", 1), owned(fmt.Sprint("u", i), 1), "0.999999999999999999")
	}
	books(t, db, balanceNoon, "test", owned("", 2), owned("u0", 2), "499999999999999998")
	books(t, db, balanceNoon, "test", owned("", 2), owned("u1", 2), "1."+tiny[2:])
	books(t, db, balanceNoon, "test", owned("", 3), owned("u3", 3), "5")
	books(t, db, balanceNoon, "test", owned("u3", 3), owned("", 3), "5")
	books(t, db, balanceNoon, "test", owned("", 3), owned("u2", 3), "5")
	books(t, db, balanceNoon, "test", owned("u2", 3), owned("", 3), "5")
	hold := func(owner string, asset int64, sum string) {
		h := ledger.NewHold(balanceNoon, "test", owner+sum, "test", owned(owner, asset), amount.Must(sum))
		h.Beyond = true
		does(t, db, ledger.Movement{Take: []ledger.Hold{h}})
	}
	hold("u0", 1, "7.5")
	hold("u1", 1, tiny)
	hold("u0", 2, "0.5")
	hold("u2", 3, "999999999999999999")
	hold("u3", 3, "999999999999999999")
	const all, one, two = "{1 11.999999999999999988 10.999999999999999988 7.500000000000000001}",
		"{2 499999999999999999.000000000000000001 499999999999999998.500000000000000001 0.5}",
		"{3 0 0 1999999999999999998}"
	for _, tc := range []struct {
		q    balance.Query
		want string
	}{
		{balance.Query{}, "[" + all + " " + one + " " + two + "]"},
		{balance.Query{Assets: []int64{3, 1, 99}}, "[" + all + " " + two + "]"},
		{balance.Query{Assets: []int64{}}, "[]"},
		{balance.Query{UserID: new("u1")}, "[{1 0.999999999999999999 0.999999999999999998 " + tiny + "} {2 1." + tiny[2:] +
			" 1." + tiny[2:] + " 0}]"},
		{balance.Query{UserID: new("u0"), Assets: []int64{1}}, "[{1 0.999999999999999999 0 7.5}]"},
		{balance.Query{UserID: new("u0"), Assets: []int64{}}, "[]"},
		{balance.Query{UserID: new("nobody")}, "[]"},
	} {
		got, err := money.NewBalances(db).Sums(t.Context(), tc.q)
		if storetest.Must(t, err); fmt.Sprint(got) != tc.want {
			t.Errorf("%+v:\n got %v\nwant %s", tc.q, got, tc.want)
		}
	}
}

func balanceMoved(t *testing.T, db *persistence.DB) {
	s := money.NewBalances(db)
	midnight := balanceNoon.Add(-12 * time.Hour)
	books(t, db, midnight, "test", owned("", 1), owned("a", 1), "3")
	books(t, db, balanceNoon, "test", owned("a", 1), owned("b", 1), "1")
	books(t, db, midnight.Add(24*time.Hour-time.Millisecond), "test", owned("b", 1), owned("", 1), "0.25")
	books(t, db, midnight.Add(24*time.Hour), "test", owned("", 2), owned("a", 2), "9")
	books(t, db, balanceNoon, "test", owned("", 3), ledger.Account{Kind: ledger.Fee, Asset: 3}, "1") // of no user
	first := balance.DayOf(balanceNoon)
	for _, tc := range []struct {
		from, to time.Time
		want     string
	}{
		{midnight, midnight.Add(48 * time.Hour), fmt.Sprintf("[{%d 1 4 1.25 0} {%d 2 9 0 0}]", first, first+1)},
		{midnight, midnight.Add(24 * time.Hour), fmt.Sprintf("[{%d 1 4 1.25 0}]", first)},
		{balanceNoon, balanceNoon.Add(time.Millisecond), fmt.Sprintf("[{%d 1 1 1 0}]", first)},
		{midnight.Add(48 * time.Hour), midnight.Add(72 * time.Hour), "[]"},
	} {
		got, err := s.Moved(t.Context(), tc.from, tc.to)
		if storetest.Must(t, err); fmt.Sprint(got) != tc.want {
			t.Errorf("from %v: %v, want %s", tc.from, got, tc.want)
		}
	}
	for hours, want := range map[int]string{0: "0 true", 24: "1 true", 25: "0 false"} {
		day, ok, err := s.Next(t.Context(), midnight.Add(time.Duration(hours)*time.Hour))
		if ok {
			day -= first
		}
		if storetest.Must(t, err); fmt.Sprint(day, ok) != want {
			t.Errorf("after %d hours: %d %v, want %s", hours, day, ok, want)
		}
	}
}

func summedDay(n, asset int64, posted string) balance.Day {
	return balance.Day{Day: n, Asset: asset, In: amount.Must("1").Sum(), Out: amount.Must("2").Sum(),
		Posted: amount.Must(posted).Sum()}
}

func balanceDays(t *testing.T, db *persistence.DB) {
	s := money.NewBalances(db)
	for asset := range int64(3) {
		books(t, db, balanceNoon, "test", owned("", asset+1), owned("a", asset+1), "1") // its asset exists
	}
	for _, some := range [][]balance.Day{{summedDay(10, 1, "5"), summedDay(10, 2, "-6.5")}, {summedDay(12, 1, "7")},
		{summedDay(12, 1, "8")}} {
		storetest.Must(t, db.Commit(t.Context(), balance.Summed{Days: some})) // the last one comes too late
	}
	list := func(what string, got any, err error, want string) {
		t.Helper()
		if storetest.Must(t, err); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", what, got, want)
		}
	}
	spans, err := s.Spans(t.Context())
	list("spans", spans, err, "[{1 10 12} {2 10 10}]")
	got, err := s.Days(t.Context(), 10, 12, nil)
	list("all days", got, err, "[{10 1 1 2 5} {10 2 1 2 -6.5} {12 1 1 2 7}]")
	got, err = s.Days(t.Context(), 11, 12, []int64{1, 2})
	list("later days", got, err, "[{12 1 1 2 7}]")
	got, err = s.Days(t.Context(), 0, 99, []int64{})
	list("days of nothing", got, err, "[]")
	for before, want := range map[int64]string{10: "[]", 11: "[{10 1 1 2 5} {10 2 1 2 -6.5}]",
		13: "[{10 2 1 2 -6.5} {12 1 1 2 7}]"} {
		got, err = s.Before(t.Context(), before)
		list(fmt.Sprint("before ", before), got, err, want)
	}
	wide := summedDay(20, 1, "999999999999999999.5") // sums have no bound
	wide.In, wide.Posted = wide.Posted.Add(wide.Posted), amount.Sum{}.Sub(wide.Posted).Sub(wide.Posted)
	storetest.Must(t, db.Commit(t.Context(), balance.Summed{Days: []balance.Day{wide}}))
	got, err = s.Days(t.Context(), 20, 20, nil)
	list("a wide day", got, err, "[{20 1 1999999999999999999 2 -1999999999999999999}]")
}

// Of concurrent writers of a day one wins, and none fails.
func balancesAtOnce(t *testing.T, db *persistence.DB) {
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			storetest.Must(t, db.Commit(t.Context(), balance.Summed{Days: []balance.Day{summedDay(1, 1, fmt.Sprint(i)),
				summedDay(1, 2, fmt.Sprint(i))}}))
		})
	}
	all.Wait()
	got, err := money.NewBalances(db).Days(t.Context(), 1, 1, nil)
	if storetest.Must(t, err); len(got) != 2 || got[0].Posted != got[1].Posted {
		t.Errorf("%v", got)
	}
}

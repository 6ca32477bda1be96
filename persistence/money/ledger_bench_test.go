package money_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/money"
)

// durable runs a benchmark on both databases, with every commit on the disk.
func durable(b *testing.B, bench func(b *testing.B, db *persistence.DB)) {
	run := func(b *testing.B, dsn string) {
		db, err := persistence.Open(b.Context(), dsn, persistence.Options{Timeout: time.Minute})
		storetest.Must(b, err)
		defer db.Close()
		if _, err = persistence.Migrate(b.Context(), db); err != nil {
			b.Fatal(err)
		}
		persistence.Start(db, []byte("audit key of the benchmark"), "bench")
		bench(b, db)
	}
	b.Run("sqlite", func(b *testing.B) { run(b, "sqlite:"+filepath.Join(b.TempDir(), "bench.db")) })
	b.Run("postgres", func(b *testing.B) {
		server := storetest.Value(pgtest.Start(pgtest.Durable()))(b)
		defer server.Stop()
		run(b, server.DSN())
	})
}

// unitOf is a decided movement and its row in the audit.
func unitOf(t ledger.Transfer) []commit.Write {
	sum := t.Digest()
	return []commit.Write{ledger.Post{Transfer: t}, audit.Record{At: t.At, Action: ledger.ActionTransfer,
		ActorID: "op", UserID: t.Credit.Owner, Target: t.ID, Detail: hex.EncodeToString(sum[:])}}
}

// BenchmarkLedgerVerify proves a ledger of 10⁶ transfers between 10⁵ accounts. MB is
// the most that the heap had meanwhile.
func BenchmarkLedgerVerify(b *testing.B) {
	durable(b, func(b *testing.B, db *persistence.DB) {
		const users, each = 100_000, 10
		storetest.Must(b, db.Commit(b.Context(), ledger.AddAsset{ID: 1, Unit: 1e16}))
		began, one, total := time.Now().Add(-time.Hour), amount.Must("0.37"), amount.Amount{}
		treasury := ledger.Account{Kind: ledger.Treasury, Asset: 1}
		storetest.Must(b, db.Commit(b.Context(), ledger.Open{Account: treasury}))
		user := func(i int) ledger.Account {
			return ledger.Account{Kind: ledger.User, Owner: fmt.Sprintf("%026d", i), Asset: 1}
		}
		const batch = 1000
		for n := 0; n < users*each; n += batch {
			var ws []commit.Write
			round := n / users
			for i := n; i < n+batch; i++ {
				a := user(i % users)
				if round == 0 {
					ws = append(ws, ledger.Open{Account: a})
				}
				t := ledger.New(began.Add(time.Duration(i)*time.Millisecond), "bench", fmt.Sprint(i), treasury, a, one)
				t.Unit, t.CreditSeq, t.EffectiveAt = 1e16, int64(round+1), t.At
				out, _ := one.Neg()
				ws = append(append(ws, unitOf(t)...), ledger.Add{Account: treasury, Amount: out, Count: 1})
			}
			storetest.Must(b, db.Commit(b.Context(), ws...))
		}
		for range each {
			total, _ = total.Add(one)
		}
		for n := 0; n < users; n += batch {
			var ws []commit.Write
			for i := n; i < n+batch; i++ {
				ws = append(ws, ledger.Save{Balance: ledger.Balance{Account: user(i), Posted: total, Seq: each, Version: 1}})
			}
			storetest.Must(b, db.Commit(b.Context(), ws...))
		}
		peak := peakHeap()
		b.ResetTimer()
		defer func() { b.ReportMetric(float64(peak())/1e6, "MB") }()
		for range b.N {
			totals, err := ledger.Verify(b.Context(), money.NewLedger(db))
			if err != nil || totals[0].Transfers != users*each {
				b.Fatal(totals, err)
			}
		}
	})
}

// peakHeap watches the heap until it is asked for the most that was in use.
func peakHeap() (peak func() uint64) {
	debug.FreeOSMemory()
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		var m runtime.MemStats
		var top uint64
		for {
			select {
			case <-done:
				most <- top
				return
			case <-time.After(50 * time.Millisecond):
				runtime.ReadMemStats(&m)
				top = max(top, m.HeapInuse)
			}
		}
	}()
	return func() uint64 { close(done); return <-most }
}

var flowMovements = flag.Int("flow.movements", 1_000_000, "movements of 31 days in BenchmarkFlow")

// loadFlow writes withdrawals of 31 days by one service key, past the foreign keys, and returns the end of the days.
func loadFlow(b *testing.B, driver, dsn, loosen string) time.Time {
	b.Helper()
	const part = 1000
	raw := storetest.Value(sql.Open(driver, dsn))(b)
	defer raw.Close()
	c := storetest.Value(raw.Conn(b.Context()))(b)
	exec := func(statement string) {
		if _, err := c.ExecContext(b.Context(), statement); err != nil {
			b.Fatalf("%.200s: %v", statement, err)
		}
	}
	exec(loosen)
	exec("BEGIN")
	end := time.Now().Truncate(time.Millisecond)
	step := 31 * policy.Day / time.Duration(*flowMovements)
	for at := 0; at < *flowMovements; at += part {
		var rows []string
		for i := at; i < min(at+part, *flowMovements); i++ {
			when := end.Add(step * time.Duration(i-*flowMovements+1)).UTC()
			f := policy.Facts{Kind: policy.Withdrawal, At: when, Requested: when, Direction: policy.Out,
				Asset: policy.Asset{CurrencyCode: "BTC", Network: "BTC"}, Amount: amount.Must("0.5"), Value: amount.Must("50"),
				Rated: true, Initiator: policy.Initiator{Type: policy.Service, Name: "shop"},
				Account: policy.AccountFacts{ID: fmt.Sprint("u", i%1000), Level: 1}, Read: policy.Wants{Any: true, Value: true}}
			text := storetest.Value(json.Marshal(f))(b)
			rows = append(rows, fmt.Sprintf("('%s', 'u%d', 1, 0, 500000000000000000, 0, 0, 1, 'x', 'h%d', %d, 1, "+
				"'SERVICE:shop', '%s')", id.New(when), i%1000, i, when.UnixMilli(), text))
		}
		exec("INSERT INTO withdrawal (id, user_id, asset_id, hi, lo, fee_hi, fee_lo, status, to_address, hold_id, at, " +
			"version, initiator, facts) VALUES " + strings.Join(rows, ", "))
	}
	exec("COMMIT")
	return end
}

// BenchmarkFlow measures a sum of 31 days over 10⁶ movements of one key, whose past hours are stored, and the rehearsal
// of the 10⁵ oldest of them.
func BenchmarkFlow(b *testing.B) {
	run := func(b *testing.B, dsn string, load func() time.Time) {
		db, err := persistence.Open(b.Context(), dsn, persistence.Options{Timeout: 5 * time.Minute})
		storetest.Must(b, err)
		defer db.Close()
		if _, err = persistence.Migrate(b.Context(), db); err != nil {
			b.Fatal(err)
		}
		persistence.Start(db, []byte("audit key of the benchmark"), "bench")
		end := load()
		past, flow := money.NewTransactions(db), transaction.Flow{Kind: policy.Withdrawal, Direction: policy.Out}
		if err := past.KeepTotals(b.Context(), []transaction.Flow{flow}, end.Add(-transaction.FlowKept), end); err != nil {
			b.Fatal(err)
		}
		b.Run("sum", func(b *testing.B) {
			q := transaction.CountedQuery{Flow: flow, Initiator: "SERVICE:shop", After: end.Add(-31 * policy.Day)}
			for b.Loop() {
				_, all, err := past.Counted(b.Context(), nil, q)
				if err != nil || len(all[0]) != 1 || all[0][0].Number != int64(*flowMovements) {
					b.Fatalf("%+v, %v", all, err)
				}
			}
		})
		b.Run("rehearsal", func(b *testing.B) {
			j := &transaction.Judge{Past: past}
			r := policy.Rule{Label: "r", Status: policy.Active, Kinds: []policy.Kind{policy.Withdrawal},
				Match: policy.Match{Sums: []policy.Sum{{Per: policy.PerInitiator, Window: policy.Span(policy.Day),
					Of: policy.Value}}},
				Effect: policy.Effect{Type: policy.Wait, For: policy.Span(policy.Day), After: policy.AfterRequest}}
			for b.Loop() {
				found, _, err := j.Rehearse(context.Background(), end.Add(-31*policy.Day), r)
				want := int64(min(transaction.MaxRehearsed, *flowMovements))
				if err != nil || found[0].Held != want || len(found[0].Waits) != int(want) {
					b.Fatalf("%+v, %v", found[0].Held, err)
				}
			}
		})
	}
	b.Run("sqlite", func(b *testing.B) {
		file := filepath.Join(b.TempDir(), "bench.db")
		run(b, "sqlite:"+file, func() time.Time { return loadFlow(b, "sqlite", "file:"+file, "PRAGMA foreign_keys = OFF") })
	})
	b.Run("postgres", func(b *testing.B) {
		server := storetest.Value(pgtest.Start(pgtest.Durable()))(b)
		defer server.Stop()
		run(b, server.DSN(), func() time.Time {
			return loadFlow(b, "pgx", server.DSN(), "SET session_replication_role = replica")
		})
	})
}

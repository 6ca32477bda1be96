package money_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/id"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/money"
)

var flowMovements = flag.Int("flow.movements", 1_000_000, "movements of 31 days in BenchmarkFlow")

// loadFlow writes withdrawals of 31 days by one service key, past the foreign keys, and returns the end of the days.
func loadFlow(b *testing.B, driver, dsn, loosen string) time.Time {
	b.Helper()
	const part = 1000
	raw, err := sql.Open(driver, dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	c, err := raw.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
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
			text, err := json.Marshal(f)
			if err != nil {
				b.Fatal(err)
			}
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
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		if _, err = persistence.Migrate(b.Context(), db); err != nil {
			b.Fatal(err)
		}
		persistence.Start(db, []byte("audit key of the benchmark"), "bench")
		end := load()
		past, flow := money.NewTransactions(db), transaction.Flow{Kind: policy.Withdrawal, Direction: policy.Out}
		if err := past.CloseHours(b.Context(), flow, end.Add(-transaction.FlowKept), end); err != nil {
			b.Fatal(err)
		}
		b.Run("sum", func(b *testing.B) {
			q := transaction.CountedQuery{Flow: flow, Initiator: "SERVICE:shop", After: end.Add(-31 * policy.Day)}
			for b.Loop() {
				all, err := past.Counted(b.Context(), q)
				if err != nil || len(all) != 1 || all[0].Number != int64(*flowMovements) {
					b.Fatalf("%+v, %v", all, err)
				}
			}
		})
		b.Run("rehearsal", func(b *testing.B) {
			j := &transaction.Judge{Past: past}
			r := policy.Rule{Label: "r", Status: policy.Active, Kinds: []policy.Kind{policy.Withdrawal},
				Match:  policy.Match{Sums: []policy.Sum{{Per: policy.PerInitiator, Window: policy.Span(policy.Day), Of: policy.Value}}},
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
		server, err := pgtest.Start(pgtest.Durable())
		if err != nil {
			b.Fatal(err)
		}
		defer server.Stop()
		run(b, server.DSN(), func() time.Time {
			return loadFlow(b, "pgx", server.DSN(), "SET session_replication_role = replica")
		})
	})
}

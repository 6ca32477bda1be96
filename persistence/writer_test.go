package persistence

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/audit"
	"castellan/domain/challenge"
	"castellan/domain/change"
	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/id"
	"castellan/domain/message"
	"castellan/domain/outbox"
	"castellan/domain/password"
	"castellan/internal/pgtest"
)

func sample(id string) challenge.Challenge {
	now := time.Now().UnixMilli()
	return challenge.Challenge{ID: id, UserID: "u1", Action: "LOGIN", Flow: challenge.FlowLogin, CreatedAt: now, ExpiresAt: now + 600_000,
		Body: challenge.Body{Subject: "u1", Required: 1, Methods: []challenge.Method{{ID: "m1", Name: challenge.SMS, LifetimeMs: 120_000, ExpiresAt: now + 120_000,
			Digest: challenge.Digest{Key: "k", Sum: []byte{1, 2, 3}}}}}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCommitRoundTrip(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store := t.Context(), NewChallenges(db)
		c := sample("c1")
		must(t, db.Commit(ctx, challenge.Insert{Challenge: c, Command: []byte("sealed\x00'")}, audit.Record{At: time.Now(), Action: "LOGIN", Outcome: audit.Success},
			change.Note{Topic: change.Users, Key: "u1"}))
		got, err := store.Load(ctx, "c1")
		must(t, err)
		if got.Version != 1 || got.Methods[0].Digest.Key != "k" || got.Required != 1 {
			t.Fatalf("read back %+v", got)
		}
		command, err := store.Command(ctx, "c1")
		must(t, err)
		if string(command) != "sealed\x00'" {
			t.Fatalf("command %q", command)
		}
		got.Wrong = 3
		must(t, db.Commit(ctx, challenge.Update{Challenge: got}))
		if err := db.Commit(ctx, challenge.Update{Challenge: got}); !errors.Is(err, commit.ErrFenced) {
			t.Fatalf("a stale update: %v", err)
		}
		if again, _ := store.Load(ctx, "c1"); again.Version != 2 || again.Wrong != 3 {
			t.Fatalf("after the update %+v", again)
		}
		if err := db.Commit(ctx, challenge.Insert{Challenge: c}); fault.CodeOf(err) != fault.RecordAlreadyExist {
			t.Fatalf("a second insert: %v", err)
		}
		if _, err := store.Load(ctx, "nobody"); fault.CodeOf(err) != fault.ChallengeNotFound {
			t.Fatalf("an unknown id: %v", err)
		}
		if n, err := db.VerifyAudit(ctx, []byte("audit key of the test")); n != 1 || err != nil {
			t.Fatalf("audit: %d rows, %v", n, err)
		}
	})
}

// watched notes which transactions had to be on the disk.
type watched struct {
	transactor
	flushed []bool
}

func (w *watched) transact(ctx context.Context, steps []step, flush bool) (map[int]bool, error) {
	w.flushed = append(w.flushed, flush)
	return w.transactor.transact(ctx, steps, flush)
}

// What need not be on the disk is committed like anything else, but a
// transaction is flushed for whichever unit of it asks for that.
func TestUnflushed(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store := t.Context(), NewChallenges(db)
		w := &watched{transactor: db.common}
		db.common = w
		must(t, db.Commit(ctx, challenge.Insert{Challenge: sample("c1")}, commit.Unflushed{}))
		must(t, db.Commit(ctx, challenge.Insert{Challenge: sample("c2")}))
		c, err := store.Load(ctx, "c1")
		must(t, err)
		must(t, db.Commit(ctx, challenge.Update{Challenge: c}, commit.Unflushed{}))
		if err := db.Commit(ctx, challenge.Update{Challenge: c}, commit.Unflushed{}); !errors.Is(err, commit.ErrFenced) {
			t.Errorf("a stale update: %v", err)
		}
		if want := []bool{false, true, false, false}; !slices.Equal(w.flushed, want) {
			t.Errorf("flushed %v, want %v", w.flushed, want)
		}
		a, b := &unit{writes: []commit.Write{commit.Unflushed{}, challenge.Insert{Challenge: sample("c3")}}}, &unit{writes: []commit.Write{challenge.Insert{Challenge: sample("c4")}}}
		_, _, err = db.writer.once([]*unit{a, b})
		must(t, err)
		if !w.flushed[len(w.flushed)-1] {
			t.Error("a unit that has to be on the disk was not, because of another one")
		}
	})
}

// SQLite's connection waits for the disk but where it need not.
func TestUnflushedOnSQLite(t *testing.T) {
	db := open(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db"))
	level := statementOf[guardedRow]("SELECT v.n {FROM v} WHERE (SELECT synchronous FROM pragma_synchronous) = v.version")
	for _, c := range []struct {
		flush bool
		level int64 // 1: NORMAL, 2: FULL
	}{{true, 2}, {false, 1}, {true, 2}} {
		asks := step{plan: &plan{}, writes: []commit.Write{commit.Guard{}}, units: []int{0}, calls: []call{callOf(level, []guardedRow{{N: "0", Version: c.level}}, []int{0}, []string{"0"})}}
		if failed, err := db.common.transact(t.Context(), []step{asks}, c.flush); err != nil || len(failed) > 0 {
			t.Errorf("flush %v: the level is not %d: %v", c.flush, c.level, err)
		}
		var now int
		must(t, db.write.NewRaw("PRAGMA synchronous").Scan(t.Context(), &now))
		if now != 2 {
			t.Errorf("flush %v: others commit at level %d afterwards", c.flush, now)
		}
	}
}

// PostgreSQL answers before its log is flushed, and only then. The server is
// this test's own: the log is everybody's.
func TestUnflushedOnPostgres(t *testing.T) {
	server, err := pgtest.Start()
	must(t, err)
	t.Cleanup(server.Stop)
	db := open(t, server.DSN())
	ahead := func(writes ...commit.Write) (n int) {
		for range 20 {
			must(t, db.Commit(t.Context(), append(writes, challenge.Insert{Challenge: sample(id.New(time.Now()))})...))
			var is bool
			must(t, db.read.NewRaw("SELECT pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()").Scan(t.Context(), &is))
			if is {
				n++
			}
		}
		return n
	}
	if n := ahead(commit.Unflushed{}); n == 0 {
		t.Error("twenty asynchronous commits waited for the log")
	}
	if n := ahead(); n > 10 { // the log has more than ours in it
		t.Errorf("%d of twenty commits did not wait for the log", n)
	}
}

// Whoever watches is told of every transaction once, with all that it made.
func TestCommitsAreObserved(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		var mu sync.Mutex
		var units, statements int
		var took time.Duration
		db.OnCommit(func(c Committed) {
			mu.Lock()
			defer mu.Unlock()
			units, statements, took = units+c.Units, statements+c.Statements, took+c.Took
		})
		before := db.Units()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { must(t, db.Commit(t.Context(), challenge.Insert{Challenge: sample(fmt.Sprint("o", i))})) })
		}
		wg.Wait()
		stale := sample("o1")
		stale.Version = 9
		if err := db.Commit(t.Context(), challenge.Update{Challenge: stale}); !errors.Is(err, commit.ErrFenced) {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if units != 20 || int64(units) != db.Units()-before || statements < 1 || statements > 40 || took <= 0 {
			t.Errorf("%d units in %d statements, %v", units, statements, took)
		}
	})
}

// A refused unit leaves nothing behind, and does not harm its neighbours.
func TestUnitsAreAtomic(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store := t.Context(), NewChallenges(db)
		must(t, db.Commit(ctx, challenge.Insert{Challenge: sample("old")}))
		stale, _ := store.Load(ctx, "old")
		stale.Version = 9
		var wg sync.WaitGroup
		var fenced, exists, ok atomic.Int32
		count := func(err error) {
			switch {
			case err == nil:
				ok.Add(1)
			case errors.Is(err, commit.ErrFenced):
				fenced.Add(1)
			case fault.CodeOf(err) == fault.RecordAlreadyExist:
				exists.Add(1)
			default:
				t.Error(err)
			}
		}
		for i := range 60 {
			wg.Go(func() {
				id := fmt.Sprintf("n%02d", i)
				switch i % 3 {
				case 0: // good
					count(db.Commit(ctx, challenge.Insert{Challenge: sample(id)}))
				case 1: // its fence fails
					count(db.Commit(ctx, challenge.Insert{Challenge: sample(id)}, challenge.Update{Challenge: stale}))
				default: // its key is taken
					count(db.Commit(ctx, challenge.Insert{Challenge: sample(id)}, challenge.Insert{Challenge: sample("old")}))
				}
			})
		}
		wg.Wait()
		if ok.Load() != 20 || fenced.Load() != 20 || exists.Load() != 20 {
			t.Errorf("%d committed, %d fenced, %d refused", ok.Load(), fenced.Load(), exists.Load())
		}
		refs, err := store.Open(ctx, "u1", time.Now())
		must(t, err)
		if len(refs) != 21 {
			t.Errorf("%d rows, want the 20 good ones and the old one", len(refs))
		}
	})
}

// Two hundred writers race for one row; each sees the version it read or is
// fenced, so the counter in the row counts every success once.
func TestFenceUnderRace(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store := t.Context(), NewChallenges(db)
		must(t, db.Commit(ctx, challenge.Insert{Challenge: sample("c")}))
		var wg sync.WaitGroup
		var won atomic.Int32
		for range 200 {
			wg.Go(func() {
				c, err := store.Load(ctx, "c")
				if err != nil {
					t.Error(err)
					return
				}
				c.Wrong++
				if err := db.Commit(ctx, challenge.Update{Challenge: c}); err == nil {
					won.Add(1)
				} else if !errors.Is(err, commit.ErrFenced) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		c, err := store.Load(ctx, "c")
		must(t, err)
		if c.Wrong != int(won.Load()) || won.Load() == 0 {
			t.Errorf("%d successes, the row counted %d", won.Load(), c.Wrong)
		}
	})
}

func TestBudgetIsFencedFromItsFirstRow(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store := t.Context(), NewChallenges(db)
		b, err := store.Budget(ctx, "u1", challenge.FlowLogin)
		must(t, err)
		b.OTP = []int64{1}
		var wg sync.WaitGroup
		var won atomic.Int32
		for range 20 {
			wg.Go(func() {
				if err := db.Commit(ctx, challenge.Spend{Budget: b}); err == nil {
					won.Add(1)
				} else if !errors.Is(err, commit.ErrFenced) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d first writes", won.Load())
		}
		key := challenge.BudgetKey("u1", challenge.FlowLogin)
		if err := db.Commit(ctx, commit.Guard{On: commit.AttemptBudget, Key: key, Version: 0}); !errors.Is(err, commit.ErrFenced) {
			t.Errorf("a guard that expects no row: %v", err)
		}
		must(t, db.Commit(ctx, commit.Guard{On: commit.AttemptBudget, Key: key, Version: 1}))
		b, _ = store.Budget(ctx, "u1", challenge.FlowLogin)
		b.OTP = append(b.OTP, 2)
		must(t, db.Commit(ctx, challenge.Spend{Budget: b}))
		if b, _ = store.Budget(ctx, "u1", challenge.FlowLogin); b.Version != 2 || len(b.OTP) != 2 {
			t.Errorf("after two writes %+v", b)
		}
	})
}

func TestInTxJoinsAndRollsBack(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store := t.Context(), NewChallenges(db)
		boom := errors.New("boom")
		err := db.InTx(ctx, func(ctx context.Context) error {
			must(t, db.Commit(ctx, challenge.Insert{Challenge: sample("a")}, audit.Record{Action: "X"}))
			if _, err := store.Load(ctx, "a"); err != nil {
				t.Errorf("a transaction sees its own row: %v", err)
			}
			return boom
		})
		if !errors.Is(err, boom) {
			t.Fatal(err)
		}
		if _, err := store.Load(ctx, "a"); fault.CodeOf(err) != fault.ChallengeNotFound {
			t.Errorf("after the rollback: %v", err)
		}
		must(t, db.InTx(ctx, func(ctx context.Context) error {
			return db.Commit(ctx, challenge.Insert{Challenge: sample("a")}, audit.Record{Action: "X"})
		}))
		if n, err := db.VerifyAudit(ctx, []byte("audit key of the test")); n != 1 || err != nil {
			t.Errorf("audit: %d rows, %v", n, err)
		}
	})
}

func TestSupersedeClosesOnlyPending(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store := t.Context(), NewChallenges(db)
		done := sample("done")
		done.State = challenge.Done
		must(t, db.Commit(ctx, challenge.Insert{Challenge: sample("open")}, challenge.Insert{Challenge: done}))
		must(t, db.Commit(ctx, challenge.Supersede{ID: "open"}, challenge.Supersede{ID: "done"}, challenge.Supersede{ID: "nobody"}))
		a, _ := store.Load(ctx, "open")
		b, _ := store.Load(ctx, "done")
		if a.State != challenge.Closed || a.Reason != challenge.Superseded || a.Version != 2 || b.State != challenge.Done || b.Version != 1 {
			t.Errorf("open: %v %v, done: %v", a.State, a.Reason, b.State)
		}
	})
}

func TestOutboxLeasesOnce(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store, now := t.Context(), NewOutbox(db), time.UnixMilli(1_700_000_000_000)
		for i := range 30 {
			must(t, db.Commit(ctx, outbox.Add{Message: outbox.Message{ID: fmt.Sprint("m", i), Channel: "SMS", Destination: []byte("d"), UserID: "u", Prefix: "p",
				CreatedAt: now, ExpiresAt: now.Add(time.Hour), LeaseUntil: now, Payload: []byte("x"), Proven: i%2 == 0}}))
		}
		var mu sync.Mutex
		seen := map[string]int{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				ms, err := store.Claim(ctx, now, 30*time.Second, 10)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, m := range ms {
					seen[m.ID]++
				}
			})
		}
		wg.Wait()
		for id, n := range seen {
			if n > 1 {
				t.Errorf("%s was leased %d times", id, n)
			}
		}
		for len(seen) < 30 { // what a skipped lock left over is still there to claim
			ms, err := store.Claim(ctx, now, 30*time.Second, 10)
			must(t, err)
			if len(ms) == 0 {
				t.Fatalf("%d of 30 messages can be claimed", len(seen))
			}
			for _, m := range ms {
				seen[m.ID]++
			}
		}
		if ms, _ := store.Claim(ctx, now.Add(30*time.Second), time.Second, 100); len(ms) != 30 {
			t.Errorf("after the leases lapsed %d messages are due", len(ms))
		}
		if queued, oldest, err := store.Backlog(ctx); queued != 30 || !oldest.Equal(now) || err != nil {
			t.Errorf("a backlog of %d since %v, %v", queued, oldest, err)
		}
		must(t, db.Commit(ctx, outbox.Settle{ID: "m0", State: outbox.Sent, At: now, Attempt: 1}, outbox.Settle{ID: "m1", State: outbox.Sent, Keep: true}))
		if ms, _ := store.Recent(ctx, nil, 100); len(ms) != 29 {
			t.Errorf("%d payloads, want 29: one was erased at delivery", len(ms))
		}
		n, err := store.Usage(ctx, now.Add(time.Minute), "p")
		must(t, err)
		sent, err := store.Sendings(ctx, "u", now.Add(-time.Minute))
		must(t, err)
		proven := 0
		for _, s := range sent {
			if s.Proven {
				proven++
			}
		}
		if n != 30 || len(sent) != 30 || proven != 15 {
			t.Errorf("usage %d, %d sendings, %d proven", n, len(sent), proven)
		}
		must(t, store.Erase(ctx, now.Add(2*time.Hour)))
		if ms, _ := store.Recent(ctx, nil, 100); len(ms) != 1 {
			t.Errorf("%d payloads after expiry, want the one that is kept", len(ms))
		}
		if queued, oldest, err := store.Backlog(ctx); queued != 0 || !oldest.IsZero() || err != nil {
			t.Errorf("a backlog of %d since %v, %v after everything expired", queued, oldest, err)
		}
	})
}

// The hashes of rows that exist already do not change.
func TestAuditHashes(t *testing.T) {
	r := auditRow{Chain: "s-0", Seq: 7, At: 1700000000123, ActorID: "a", UserID: "u", Action: "LOGIN", Outcome: "success", IP: "127.0.0.1", RequestID: "q", Detail: "ışık"}
	if got := hex.EncodeToString(r.sum(macOf([]byte("key")), []byte{1, 2})); got != "286bee749eae6a926540c6a348bd5b8db57fb4cca793d58a69a13c37356909d6" {
		t.Errorf("a row: %s", got)
	}
	if got := hex.EncodeToString(checkpointRow{ID: "c", Heads: `{"s-0":7}`}.sum(macOf([]byte("key")))); got != "1909df49934f3f8b4fc92ddd273f23b00c2a93f2faf5734d19619a051c95ff0e" {
		t.Errorf("a checkpoint: %s", got)
	}
}

func TestAuditChainNoticesTampering(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, key := t.Context(), []byte("audit key of the test")
		for i := range 20 {
			must(t, db.Commit(ctx, audit.Record{At: time.Now(), Action: fmt.Sprint("A", i), Outcome: audit.Success}))
		}
		must(t, db.Checkpoint(ctx, time.Now(), key))
		if n, err := db.VerifyAudit(ctx, key); n != 20 || err != nil {
			t.Fatalf("%d rows, %v", n, err)
		}
		exec := func(q string) {
			if _, err := db.write.ExecContext(ctx, q); err != nil {
				t.Fatal(err)
			}
		}
		exec("UPDATE audit SET detail = 'forged' WHERE seq = 7")
		if _, err := db.VerifyAudit(ctx, key); !errors.Is(err, ErrTampered) {
			t.Errorf("a changed row: %v", err)
		}
		exec("UPDATE audit SET detail = '' WHERE seq = 7")
		if _, err := db.VerifyAudit(ctx, key); err != nil {
			t.Errorf("restored: %v", err)
		}
		exec("DELETE FROM audit WHERE seq > 15")
		if _, err := db.VerifyAudit(ctx, key); !errors.Is(err, ErrTampered) {
			t.Errorf("a cut end: %v", err)
		}
		must(t, db.Checkpoint(ctx, time.Now(), key)) // as every minute
		if _, err := db.VerifyAudit(ctx, key); !errors.Is(err, ErrTampered) {
			t.Errorf("a cut end, after one more checkpoint: %v", err)
		}
	})
}

func TestRecentMessages(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store, now := t.Context(), NewOutbox(db), time.Now()
		var ws []commit.Write
		for i := range 300 {
			m := outbox.Message{ID: fmt.Sprintf("m%03d", i), ChallengeID: "c", MethodID: fmt.Sprint(i), Channel: message.SMS, Destination: []byte("crowd"), State: outbox.Sent,
				CreatedAt: now.Add(time.Duration(i) * time.Millisecond), Payload: []byte("x")}
			if i == 0 {
				m.Destination = []byte("one")
			}
			ws = append(ws, outbox.Add{Message: m})
		}
		must(t, db.Commit(ctx, ws...))
		for _, c := range []struct {
			to    string
			limit int
			want  int
			first string
		}{{"", 0, 300, "m299"}, {"", 7, 7, "m299"}, {"one", 0, 1, "m000"}, {"crowd", 0, 299, "m299"}, {"nobody", 0, 0, ""}} {
			var to []byte
			if c.to != "" {
				to = []byte(c.to)
			}
			got, err := store.Recent(ctx, to, c.limit)
			if err != nil || len(got) != c.want || c.want > 0 && got[0].ID != c.first {
				t.Errorf("to %q, limit %d: %d messages, %v", c.to, c.limit, len(got), err)
			}
		}
	})
}

func TestFeed(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, feed := t.Context(), NewChanges(db)
		before := time.Now().Add(-time.Second)
		must(t, db.Commit(ctx, change.Note{Topic: change.MFA, Key: "a"}, change.Note{Topic: change.Keys, Key: "b"}))
		es, err := feed.Since(ctx, before)
		must(t, err)
		if len(es) != 2 || es[0].Topic != change.MFA || es[1].ID <= es[0].ID {
			t.Errorf("feed %+v", es)
		}
		must(t, feed.Purge(ctx, time.Now().Add(time.Minute)))
		if es, _ := feed.Since(ctx, before); len(es) != 0 {
			t.Errorf("%d notes after the purge", len(es))
		}
	})
}

func TestPurgeRemovesWhatIsOld(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, store, now := t.Context(), NewChallenges(db), time.Now()
		old, young := sample(id.New(now.Add(-time.Hour))), sample(id.New(now))
		for _, c := range []challenge.Challenge{old, young} {
			must(t, db.Commit(ctx, challenge.Insert{Challenge: c}, challenge.Record{Outcome: challenge.Outcome{ChallengeID: c.ID, ExpiresAt: now.UnixMilli(), Sealed: []byte("x")}}))
		}
		lives := challenge.Outcome{ChallengeID: id.New(now.Add(-time.Hour)), ExpiresAt: now.UnixMilli() + 1, Sealed: []byte("x")} // of a long challenge
		must(t, db.Commit(ctx, challenge.Record{Outcome: lives}))
		must(t, store.Purge(ctx, now.Add(-time.Minute)))
		must(t, store.PurgeOutcomes(ctx, now, now.Add(-time.Minute)))
		if _, err := store.Load(ctx, young.ID); err != nil {
			t.Errorf("the young one: %v", err)
		}
		if _, err := store.Load(ctx, old.ID); fault.CodeOf(err) != fault.ChallengeNotFound {
			t.Errorf("the old one: %v", err)
		}
		if n, err := db.read.NewSelect().Table("outcome").Count(ctx); n != 2 || err != nil {
			t.Errorf("%d outcomes are left, want that of the young one and the one that lives, %v", n, err)
		}
	})
}

// Of a table without an index for its age a part is looked at each time, and
// then the next one, until it begins anew.
func TestPurgeByParts(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ctx, guards := t.Context(), NewPasswordGuards(db)
		at := time.UnixMilli(1_700_000_000_000)
		const all = purgeLook + 10
		must(t, db.InTx(ctx, func(ctx context.Context) error {
			for from := 0; from < all; from += 1000 {
				var ws []commit.Write
				for i := from; i < min(from+1000, all); i++ {
					until := at.Add(time.Hour)
					if i%1000 == 5 || i >= purgeLook { // one in a thousand, and all of the second part
						until = at
					}
					ws = append(ws, password.SaveGuard{Guard: password.Guard{Key: fmt.Sprintf("%06d", i)}, Until: until})
				}
				if err := db.Commit(ctx, ws...); err != nil {
					return err
				}
			}
			return nil
		}))
		left := func() int {
			n, err := db.read.NewSelect().Table("password_guard").Count(ctx)
			must(t, err)
			return int(n)
		}
		for i, want := range []int{all - purgeLook/1000, all - purgeLook/1000 - 10, all - purgeLook/1000 - 10} {
			must(t, guards.Purge(ctx, at.Add(time.Minute)))
			if n := left(); n != want {
				t.Errorf("after %d times %d rows are left, want %d", i+1, n, want)
			}
		}
		must(t, guards.Purge(ctx, at.Add(2*time.Hour)))
		if n := left(); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

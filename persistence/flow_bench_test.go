package persistence_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/session"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

// BenchmarkFlow measures the database work of a whole login: its reads and its
// four units, under 64 callers. cpu-µs/flow is the processor time of this process
// and of PostgreSQL; it depends less on a busy machine than the time of a flow.
func BenchmarkFlow(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		benchmarkFlow(b, "sqlite:"+filepath.Join(b.TempDir(), "flow.db"), 0)
	})
	b.Run("postgres", func(b *testing.B) {
		server := storetest.Value(pgtest.Start(pgtest.Durable()))(b)
		defer server.Stop()
		benchmarkFlow(b, server.DSN(), server.PID())
	})
}

const flowUsers = 2000

func flowPhone(i int) string { return fmt.Sprintf("+90533%07d", i%flowUsers) }

func benchmarkFlow(b *testing.B, dsn string, server int) {
	db, err := persistence.Open(b.Context(), dsn, persistence.Options{Timeout: time.Minute})
	storetest.Must(b, err)
	defer db.Close()
	if _, err = persistence.Migrate(b.Context(), db); err != nil {
		b.Fatal(err)
	}
	persistence.Start(db, []byte("audit key of the benchmark"), "flow")
	for i := 0; i < flowUsers; i += 100 {
		var ws []commit.Write
		for j := range 100 {
			u := user.New(id.New(time.Now()), time.Now())
			u.Phone = flowPhone(i + j)
			ws = append(ws, user.Add{User: u, PasswordHash: "x"})
		}
		storetest.Must(b, db.Commit(b.Context(), ws...))
	}
	var next atomic.Int64
	before := processorTime(server)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := loginFlow(b, db, int(next.Add(1))); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric((processorTime(server)-before).Seconds()*1e6/float64(b.N), "cpu-µs/flow")
}

// loginFlow asks and writes what a login with a code asks and writes.
func loginFlow(b *testing.B, db *persistence.DB, i int) error {
	ctx, now, store := b.Context(), time.Now(), factor.NewChallenges(db)
	e, err := account.NewUsers(db).Login(ctx, user.Identifier{Phone: flowPhone(i)}, "nobody")
	if err != nil {
		return err
	}
	until, same := now.Add(time.Hour), commit.Guard{On: commit.UserCredentials, Key: e.User.ID, Version: e.User.CV}
	err = db.Commit(ctx, password.SaveGuard{Guard: e.Guard, Until: until}, commit.Unflushed{})
	if err != nil {
		return err
	}
	if _, err := store.Open(ctx, e.User.ID, now); err != nil {
		return err
	}
	if _, err := store.Budget(ctx, e.User.ID, challenge.FlowLogin); err != nil {
		return err
	}
	c := persistencetest.Challenge(id.New(now))
	c.UserID = e.User.ID
	m := outbox.Message{ID: id.New(now), ChallengeID: c.ID, MethodID: "m1", UserID: e.User.ID, Channel: message.SMS,
		Destination: []byte("sealed destination"), Prefix: "90533", CreatedAt: now, ExpiresAt: until,
		LeaseUntil: until, Payload: make([]byte, 120)}
	e.Guard.Version++
	err = db.Commit(ctx, same, password.SaveGuard{Guard: e.Guard, Until: until},
		challenge.Insert{Challenge: c, Command: make([]byte, 200)}, outbox.Add{Message: m})
	if err != nil {
		return err
	}
	err = db.Commit(ctx, outbox.Settle{ID: m.ID, State: outbox.Sent, At: now, Attempt: 1}, commit.Unflushed{})
	if err != nil {
		return err
	}
	c.Version, c.State = 1, challenge.Done
	outcome := challenge.Outcome{ChallengeID: c.ID, CreatedAt: c.CreatedAt, ExpiresAt: c.ExpiresAt,
		Sealed: make([]byte, 400)}
	return db.Commit(ctx, same, challenge.Update{Challenge: c}, challenge.Record{Outcome: outcome},
		session.Add{CV: e.User.CV, Session: session.Session{ID: id.New(now), UserID: e.User.ID, CreatedAt: now,
			LastSeenAt: now, ExpiresAt: until, IP: "192.0.2.1", Brand: "Acme", Model: "One"}},
		audit.Record{At: now, UserID: e.User.ID, ActorID: e.User.ID, Action: "LOGIN", Outcome: audit.Success,
			IP: "192.0.2.1"})
}

// processorTime is that of this process, and of a server and its children.
func processorTime(server int) time.Duration {
	var own syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	sum := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	if server == 0 {
		return sum
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		stat, _ := os.ReadFile(filepath.Join(p, "stat"))
		times, _ := os.ReadFile(filepath.Join(p, "schedstat"))
		_, after, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(after); len(f) < 2 || f[1] != strconv.Itoa(server) &&
			filepath.Base(p) != strconv.Itoa(server) {
			continue
		}
		if f := strings.Fields(string(times)); len(f) > 0 {
			ns, _ := strconv.ParseInt(f[0], 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

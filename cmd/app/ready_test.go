package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"castellan/config"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
	"castellan/persistence/persistencetest"
)

// settings are those of development mode, with cheap hashes.
func settings(t *testing.T, edit ...func(*config.Config)) config.Config {
	cfg := config.Default()
	cfg.Dev, cfg.DataDir = true, t.TempDir()
	cfg.Password.Argon2MemoryKiB, cfg.Password.Argon2Time = 64, 1
	for _, e := range edit {
		e(&cfg)
	}
	return cfg.Resolved()
}

// at are settings of a database.
func at(dsn string) func(*config.Config) {
	return func(cfg *config.Config) { cfg.Database.URL = config.Secret(dsn) }
}

// both runs a test on both databases.
func both(t *testing.T, test func(*testing.T, config.Config)) {
	t.Helper()
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": persistencetest.File, "postgres": pgtest.DSN} {
		t.Run(name, func(t *testing.T) { test(t, settings(t, at(dsn(t)))) })
	}
}

// assembled is a service with every part, which serves no requests.
func assembled(t *testing.T, edit ...func(*config.Config)) *service {
	t.Helper()
	cfg := settings(t, edit...)
	v := storetest.Value(Open(t.Context(), cfg))(t)
	s := &service{cfg: cfg, o: Options{Log: slog.New(slog.DiscardHandler)}, log: slog.New(slog.DiscardHandler),
		Deployment: v}
	storetest.Must(t, s.build(t.Context(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}))
	storetest.Must(t, s.node.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.node.Stop(ctx)
		s.leave()
		v.Close()
	})
	return s
}

// A node is ready exactly if a request that writes could be served. Each cause is made to happen: readiness, metric and
// the answer to a write name it, and all are well when it has ended. TestFullDisk and the tests of the engine make the
// others happen.
func TestReadinessNamesTheCause(t *testing.T) {
	asleep := func(s *service, _ *pgtest.Server) { time.Sleep(200 * time.Millisecond) } // sessions read their settings
	system := func(set string) func(*service, *pgtest.Server) {
		return func(s *service, server *pgtest.Server) {
			sql(t, server.DSN(), "ALTER SYSTEM "+set, "SELECT pg_reload_conf()")
			asleep(s, server)
		}
	}
	role := func(of string) func(*service, *pgtest.Server) {
		return func(_ *service, server *pgtest.Server) {
			sql(t, strings.Replace(server.DSN(), "app@", "boss@", 1), "ALTER ROLE app "+of,
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
		}
	}
	for _, c := range []struct {
		cause      string
		writes     bool // go on
		begin, end func(*service, *pgtest.Server)
	}{
		{"unreachable", false, func(_ *service, p *pgtest.Server) { p.Kill() },
			func(_ *service, p *pgtest.Server) { storetest.Must(t, p.Restart()) }},
		{"read_only", false, system("SET default_transaction_read_only = on"), system("RESET default_transaction_read_only")},
		{"refused", false, role("NOLOGIN"), role("LOGIN")},
		{"no_answer", false, system("SET synchronous_standby_names = 'missing'"), system("RESET synchronous_standby_names")},
		{"no_answer", false, func(_ *service, p *pgtest.Server) { p.Freeze() },
			func(_ *service, p *pgtest.Server) { p.Thaw() }},
		{"change_feed", true, func(_ *service, p *pgtest.Server) { sql(t, p.DSN(), "ALTER TABLE change RENAME TO hidden") },
			func(_ *service, p *pgtest.Server) { sql(t, p.DSN(), "ALTER TABLE hidden RENAME TO change") }},
		{"draining", true, func(s *service, _ *pgtest.Server) { s.draining.Store(true) },
			func(s *service, _ *pgtest.Server) { s.draining.Store(false) }},
		{"actors", true, func(s *service, _ *pgtest.Server) { s.node.Stop(t.Context()) }, nil},
	} {
		t.Run(c.cause, func(t *testing.T) {
			t.Parallel()
			pgtest.Need(t)
			server, err := pgtest.Start()
			storetest.Must(t, err)
			t.Cleanup(server.Stop)
			sql(t, server.DSN(), "CREATE ROLE boss SUPERUSER LOGIN")
			s := assembled(t, at(server.DSN()))
			s.DB.EndPatience()
			check := func(cause string) bool {
				before := time.Now()
				got, err := s.judgeReadiness(within(t))
				if took := time.Since(before); took > 10*time.Second { // not bounded
					t.Errorf("a check took %v", took)
				}
				return got == cause && (err == nil) == (cause == "") && scraped(t, s) == cause
			}
			if !check("") {
				t.Fatal("a sound node is not ready")
			}
			c.begin(s, server)
			until(t, "not ready because of "+c.cause, func() bool { return check(c.cause) })
			err = s.commit.Commit(within(t), audit.Record{At: time.Now(), Action: "LOGIN", Outcome: audit.Success})
			if code := fault.CodeOf(err); c.writes && err != nil || !c.writes && code != fault.Unavailable &&
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a write: %v", err)
			}
			if c.end != nil {
				c.end(s, server)
				until(t, "ready again", func() bool { return check("") })
			}
		})
	}
}

// within is the context of one check.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), readyTime)
	t.Cleanup(cancel)
	return ctx
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not ", what)
		}
	}
}

// scraped is the cause in the metrics; "" if castellan_ready is 1.
func scraped(t *testing.T, s *service) string {
	t.Helper()
	found := make(chan prometheus.Metric, 2)
	s.scrapeReady(found)
	close(found)
	cause := ""
	for m := range found {
		var out dto.Metric
		storetest.Must(t, m.Write(&out))
		for _, l := range out.Label {
			cause = l.GetValue()
		}
		if len(out.Label) == 0 && (out.Gauge.GetValue() == 1) != (cause == "") {
			t.Errorf("castellan_ready is %v, and the cause %q", out.Gauge.GetValue(), cause)
		}
	}
	return cause
}

// sql runs statements on a server.
func sql(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, dsn)
	storetest.Must(t, err)
	defer c.Close(ctx)
	for _, s := range statements {
		_, err := c.Exec(ctx, s)
		storetest.Must(t, err)
	}
}

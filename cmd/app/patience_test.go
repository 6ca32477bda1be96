package app

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/config"
	"castellan/domain/kit/storetest"
	"castellan/internal/logtest"
	"castellan/internal/pgtest"
)

// slow blocks the statements of a start for longer than a request may wait. Another connection locks the table of
// methods, which a start reads, and on SQLite the file, which it writes.
func slow(t *testing.T, d *Deployment) (release func()) {
	t.Helper()
	held, over, ended := make(chan error), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- d.DB.InTx(t.Context(), func(ctx context.Context) (err error) {
			if d.DB.Postgres() {
				_, err = d.DB.Conn(ctx).ExecContext(ctx, "LOCK TABLE mfa_method IN ACCESS EXCLUSIVE MODE")
			}
			held <- err
			<-over
			return err
		})
	}()
	storetest.Must(t, <-held)
	return func() {
		close(over)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A start waits for a slow database, and logs that in one line: opening and loading the snapshots, as a node does, and
// opening alone, as a command does.
func TestStartIsPatient(t *testing.T) {
	for name, dsn := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.DataDir, cfg.Database.URL, cfg.Dev = t.TempDir(), config.Secret(dsn(t)), true
			cfg.Password.Argon2MemoryKiB, cfg.Password.Argon2Time = 64, 1
			cfg = cfg.Resolved()
			first := storetest.Value(Open(t.Context(), cfg))(t)
			defer first.Close()
			first.DB.EndPatience() // it serves, and only the second one waits
			said := logtest.Default(t)
			release := slow(t, first)
			const longer = 2500 * time.Millisecond // than the 1.5 s of a request
			released := make(chan struct{})
			time.AfterFunc(longer, func() {
				for end := time.Now().Add(time.Minute); !strings.Contains(said.String(), "waiting for") &&
					time.Now().Before(end); {
					time.Sleep(10 * time.Millisecond) // a slow machine may reach the database late
				}
				release()
				close(released)
			})
			defer func() { <-released }() // the end of the test cancels its transaction
			began := time.Now()
			d, err := Open(t.Context(), cfg)
			if err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			defer d.Close()
			log := slog.New(slog.DiscardHandler)
			s := &service{Deployment: d, cfg: cfg, o: Options{Log: log}, log: log}
			if err := s.build(t.Context(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}); err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			defer s.leave()
			if took := time.Since(began); took < longer {
				t.Errorf("after %v nothing was slow", took)
			}
			if n := strings.Count(said.String(), "waiting for"); n != 1 {
				t.Errorf("said %d times that it waits:\n%s", n, said)
			}
		})
	}
}

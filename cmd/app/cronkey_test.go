package app

import (
	"errors"
	"path/filepath"
	"testing"

	"castellan/cmd/app/metrics"
	"castellan/config"
	"castellan/domain/access/cronkey"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/internal/pgtest"
)

// A key change by the command line reaches a running node over the feed, which is read four times a second (D-AUTH-07).
func TestNodesFollowCronKeys(t *testing.T) {
	for name, dsn := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			cfg, err := config.Load("", []string{"CASTELLAN_DEV=true", "CASTELLAN_DATA_DIR=" + dir, "CASTELLAN_DATABASE_URL=" +
				dsn(t),
				"CASTELLAN_PASSWORD_ARGON2_MEMORY_KIB=8", "CASTELLAN_PASSWORD_ARGON2_TIME=1"})
			if err != nil {
				t.Fatal(err)
			}
			open := func() *Deployment {
				t.Helper()
				v, err := Open(ctx, cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { v.Close() })
				return v
			}
			v := open()
			s := &service{Deployment: v, cfg: cfg, metrics: metrics.New("", "")}
			if err := errors.Join(s.database(), s.backOffice()); err != nil {
				t.Fatal(err)
			}
			command := open() // another process, with its own key cache
			issuer := cronkey.Issuer{Changes: command.Changes(change.CronKeys), Ring: command.Ring}
			knows := func(header string) bool {
				t.Helper()
				if err := s.feed.Poll(ctx); err != nil {
					t.Fatal(err)
				}
				name, ok := s.crons.Client(header)
				return ok && name == "rates"
			}
			header, err := issuer.Add(ctx, audit.Operator, "rates")
			if err != nil || !knows(header) {
				t.Fatalf("a key that was added is not taken: %v", err)
			}
			if err := issuer.Remove(ctx, audit.Operator, "rates"); err != nil || knows(header) {
				t.Errorf("a key that was removed is taken: %v", err)
			}
		})
	}
}

package office

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/persistence"
	"castellan/persistence/kit"
)

// backdate adds audit rows that are sixty days old, as a process of that time did.
func backdate(t *testing.T, s *blackbox.Site, rows int) {
	t.Helper()
	db, err := persistence.Open(t.Context(), s.DSN, persistence.Options{Timeout: time.Minute})
	storetest.Must(t, err)
	defer func() { storetest.Must(t, db.Close()) }()
	keys, err := keyring.Open(t.Context(), kit.NewKeys(db), filepath.Join(s.Dir, "master.key"), false, time.Now)
	storetest.Must(t, err)
	persistence.Start(db, keys.Ring().Audit(), id.New(time.Now()))
	for i := range rows {
		storetest.Must(t, db.Commit(t.Context(), audit.Record{At: time.Now().Add(-60 * 24 * time.Hour),
			Action: fmt.Sprint("OLD_", i), Outcome: audit.Success}))
	}
}

// The command moves old audit rows to files that prove their integrity, and audits each move (D-EXT-03).
func TestAuditArchiveCommand(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		n.Session(t, s.Seeded("user"))
		n.Stop()
		run := func(code int, args ...string) string {
			t.Helper()
			got := s.Command("", append([]string{"audit"}, args...)...)
			if got.Code != code {
				t.Fatalf("audit %v: exit %d, want %d: %s%s", args, got.Code, code, got.Out, got.ErrOut)
			}
			return got.Out + got.ErrOut
		}
		contains := func(text, want string) {
			t.Helper()
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in:\n%s", want, text)
			}
		}
		contains(run(1, "archive"), "--keep to 720h or more")
		contains(run(1, "archive", "--keep", "24h"), "--keep to 720h or more")
		contains(run(0, "archive", "--keep", "720h"), "0 rows are older")
		contains(run(0, "archive", "--keep", "720h", "--write"), "0 rows older than 720h0m0s are archived")

		backdate(t, s, 25)
		young := s.Count("audit") - 25
		s.Set("AUDIT_KEEP=720h")
		folder := t.TempDir()
		contains(run(0, "archive", "--to", folder), "25 rows are older than 720h0m0s; nothing was written")
		if files, _ := filepath.Glob(filepath.Join(folder, "audit-archive", "*")); len(files) != 0 {
			t.Errorf("a dry run wrote %v", files)
		}
		contains(run(0, "archive", "--to", folder, "--write"), "25 rows older than 720h0m0s are archived")
		files, _ := filepath.Glob(filepath.Join(folder, "audit-archive", "000001-*.jsonl.gz"))
		if left := s.Count("audit"); left < young || left > young+3 || len(files) != 1 { // commands add a few
			t.Fatalf("%d rows are left of %d, files %v", left, young+25, files)
		}
		contains(run(0, "verify"), "previous archive 1, "+filepath.Base(files[0]))
		contains(run(0, "verify", "--archive", files[0]), "25 rows in 1 files, starting with archive 1, are valid")

		// The service archives old rows by itself, to the folder of files.
		backdate(t, s, 5)
		n = s.Start()
		blackbox.Until(t, blackbox.Within(20), "the archive of the night", func() bool {
			return strings.Contains(n.Log(), `msg="audit archive" counter=2 rows=5`)
		})
		n.Stop()
		own, _ := filepath.Glob(filepath.Join(s.Dir, "files", "audit-archive", "000002-*.jsonl.gz"))
		if len(own) != 1 {
			t.Fatalf("files %v", own)
		}
		contains(run(0, "verify", "--archive", own[0], "--archive", files[0]), "30 rows in 2 files")
		file := filepath.Join(folder, "000003-00.jsonl.gz")
		storetest.Must(t, os.WriteFile(file, []byte("x"), 0o600))
		contains(run(1, "verify", "--archive", file), "not an archive")
	})
}

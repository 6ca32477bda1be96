package office

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	db := storetest.Value(persistence.Open(t.Context(), s.DSN, persistence.Options{Timeout: time.Minute}))(t)
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
		s.Says(1, "audit archive", "--keep to 720h or more")
		s.Says(1, "audit archive --keep 24h", "--keep to 720h or more")
		s.Says(0, "audit archive --keep 720h", "0 rows are older")
		s.Says(0, "audit archive --keep 720h --write", "0 rows older than 720h0m0s are archived")

		backdate(t, s, 25)
		young := s.Count("audit") - 25
		s.Set("AUDIT_KEEP=720h")
		folder := t.TempDir()
		s.Says(0, "audit archive --to "+folder, "25 rows are older than 720h0m0s; nothing was written")
		if files, _ := filepath.Glob(filepath.Join(folder, "audit-archive", "*")); len(files) != 0 {
			t.Errorf("a dry run wrote %v", files)
		}
		s.Says(0, "audit archive --write --to "+folder, "25 rows older than 720h0m0s are archived")
		files, _ := filepath.Glob(filepath.Join(folder, "audit-archive", "000001-*.jsonl.gz"))
		if left := s.Count("audit"); left < young || left > young+3 || len(files) != 1 { // commands add a few
			t.Fatalf("%d rows are left of %d, files %v", left, young+25, files)
		}
		s.Says(0, "audit verify", "previous archive 1, "+filepath.Base(files[0]))
		s.Says(0, "audit verify --archive "+files[0], "25 rows in 1 files, starting with archive 1, are valid")

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
		s.Says(0, "audit verify --archive "+own[0]+" --archive "+files[0], "30 rows in 2 files")
		file := filepath.Join(folder, "000003-00.jsonl.gz")
		storetest.Must(t, os.WriteFile(file, []byte("x"), 0o600))
		s.Says(1, "audit verify --archive "+file, "not an archive")
	})
}

// Checkpoints of the audit trail leave the database: in the log, and signed to an address. A kept checkpoint
// reveals rows that were deleted together with their checkpoints (D-EXT-03).
func TestAuditAnchorsRevealDeletedRows(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		type anchor struct {
			Counter int64
			MAC     string
			signed  bool
		}
		posted := make(chan anchor, 10)
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var a anchor
			body, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(body, &a)
			a.signed = strings.HasPrefix(r.Header.Get("webhook-signature"), "v1,") &&
				r.Header.Get("webhook-id") == fmt.Sprint("audit-checkpoint-", a.Counter)
			posted <- a
		}))
		defer receiver.Close()
		s.Set("AUDIT_ANCHOR_URL="+receiver.URL, "AUDIT_ANCHOR_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		// A process publishes the current end of the trail when it stops.
		run := func() anchor {
			t.Helper()
			n := s.Start()
			n.Session(t, s.Seeded("user"))
			n.Stop()
			var a anchor
			select {
			case a = <-posted:
			case <-time.After(30 * time.Second):
				t.Fatalf("nothing was posted; the log:\n%s", n.Log())
			}
			if line := fmt.Sprintf(`counter=%d mac=%s`, a.Counter, a.MAC); !a.signed || !strings.Contains(n.Log(), line) &&
				!strings.Contains(n.Log(), fmt.Sprintf(`"counter":%d,"mac":"%s"`, a.Counter, a.MAC)) {
				t.Errorf("posted %+v; the log:\n%s", a, n.Log())
			}
			return a
		}
		verify := func(code int, a anchor, texts ...string) {
			t.Helper()
			s.Says(code, fmt.Sprintf("audit verify --at-least %d:%s", a.Counter, a.MAC), texts...)
		}
		one, two := run(), run()
		if one.Counter != 1 || two.Counter != 2 {
			t.Fatalf("%+v, %+v", one, two)
		}
		verify(0, one, "all chains are valid", "anchored")
		verify(0, two, "all chains are valid", "anchored")
		s.Says(0, "audit verify", "checkpoints from 1 on are not anchored")
		s.Says(1, "audit verify --at-least two", "COUNTER:MAC")
		s.Exec("DELETE FROM audit WHERE at > (SELECT at FROM audit_checkpoint WHERE counter = 1)")
		s.Exec("DELETE FROM audit_checkpoint WHERE counter = 2")
		verify(0, one)
		verify(1, two, "checkpoints end at 1, before 2")
	})
}

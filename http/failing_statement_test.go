package httpapi_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
	"castellan/internal/blackbox"
	"castellan/persistence/engine"
)

// fuse makes one statement of the program fail.
type fuse struct {
	mu    sync.Mutex
	left  int    // statements until the failing one; 0: none fails
	blown string // the statement that failed
	spare bool   // whether a request may succeed without it
	acted bool   // whether the audit row of a change was written
	begun bool   // whether a challenge was written
}

// elsewhere are statements of the background, and begins and ends of transactions.
var elsewhere = regexp.MustCompile(`^(BEGIN|COMMIT|ROLLBACK|UPDATE "?outbox|SELECT .* FROM "?outbox)|"change"` +
	`|next_at <|(touched|last_seen|expires)_at <|hold_until <|folded|user.search|job_item|audit_checkpoint` +
	fmt.Sprintf(`|DELETE FROM "refused_login"|AS part$|LIMIT %d$`, engine.PurgeBatch))

// copies are reads of records that a node keeps in memory. Outside a transaction they are those of the node, which run
// again soon if they fail; those of jobs are of the actors that run them.
var copies = regexp.MustCompile(`^SELECT .* FROM "(mfa_\w+|firewall_rule|role_resource_permission|currency\w*|` +
	`service_key|cron_key|guard_route|parameter)" AS "\w+"( (LEFT )?JOIN .*)?( WHERE \(+label IN .*)? ORDER BY|` +
	`FROM "(user_role|job|allowed_ip|hash_kind|keys|money_rule)"|"cv", "u"."countries"`)

// superseded is the read of an owner whose challenge was closed by another start. It follows the commit of that start.
var superseded = regexp.MustCompile(`^SELECT .* FROM "challenge" AS "t" WHERE \(id = `)

var ms = regexp.MustCompile(`\b\d{13}\b`)

func (f *fuse) trace(ctx context.Context, statement string) (fails bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 && f.blown == "" || app.InTask(ctx) || elsewhere.MatchString(statement) {
		return false
	}
	if f.left == 0 {
		// The writer runs the units of a failed batch one by one; their rows may get a later instant.
		f.spare = f.spare || ms.ReplaceAllString(statement, "") == ms.ReplaceAllString(f.blown, "")
		return false
	}
	f.left--
	if fails = f.left == 0; fails {
		// A statement after the audit row follows the commit, or belongs to a job.
		f.blown, f.spare = statement, f.acted || !commit.Inside(ctx) &&
			(copies.MatchString(statement) || f.begun && superseded.MatchString(statement))
	}
	f.begun = f.begun || strings.HasPrefix(statement, "INSERT INTO challenge ")
	f.acted = f.acted || strings.HasPrefix(statement, "INSERT INTO audit ")
	return fails
}

// arm makes the n-th statement from now on fail.
func (f *fuse) arm(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.blown, f.spare, f.acted, f.begun = n, "", false, false, false
}

// disarm returns the statement that failed, "" if none did, and whether a request may succeed without it.
func (f *fuse) disarm() (blown string, spare bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	blown, f.left, f.blown = f.blown, 0, ""
	return blown, f.spare
}

// The request of each operation is sent with its first statement failing, then with its second, and so on until all of
// them run. No other test runs beside it: statements of the background would take the places of those of requests.
// Without a statement of its work the answer is 500 or 503 and the tables are as before; the last request is
// answered as the example says.
func TestFailingStatements(t *testing.T) {
	for name, dsn := range databases {
		t.Run(name, func(t *testing.T) {
			dir, f := t.TempDir(), &fuse{}
			l := startWith(t, dir, dsn(t), app.Options{Trace: f.trace, Log: slog.New(slog.DiscardHandler)})
			w := watch(l)
			defer w.db.Close()
			sent := 0
			for _, e := range script() {
				sent += w.withFailures(e, f)
			}
			t.Logf("%d requests", sent)
		})
	}
}

// mayLackReads are operations that name what they could not read.
var mayLackReads = []string{"getSetup"}

// withFailures sends the example of an operation with one statement after the other failing, and returns how often.
func (w *watched) withFailures(e rest.Endpoint, f *fuse) int {
	w.t.Helper()
	blackbox.Until(w.t, time.Minute, "the jobs of earlier operations end", func() (ended bool) {
		storetest.Must(w.t, w.db.QueryRow("SELECT count(*) = 0 FROM job WHERE state IN ('queued', 'running')").Scan(&ended))
		return ended
	})
	var who *person
	var h blackbox.Headers
	var request, path, body, suspect string
	for n := 1; ; n++ {
		if n == 1 || usedUp(e) {
			who = w.before(e)
			request = w.filled(e, e.Example().Request)
			path, body = target(e, request)
			h = w.headers(e, who, path, body)
		}
		before := w.state()
		f.arm(n)
		a, err := w.Try(e.Method, path, body, h)
		blown, spare := f.disarm()
		storetest.Must(w.t, err)
		if blown != "" && (a.Status == 500 || a.Status == 503) {
			for name, rows := range w.state() {
				if rows != before[name] {
					w.t.Errorf("%s failed without its statement %d, but changed the table %s\n%.300s\n%s", e.Key(), n, name, blown, a)
				}
			}
			continue
		}
		if want := string(e.Example().Refused); a.Code() != want || want == "" && a.Status != 200 {
			w.t.Errorf("%s is answered by %s without its statement %d\n%.300s", e.Key(), a, n, blown)
		} else if blown != "" && !spare && !slices.Contains(mayLackReads, e.ID) {
			asked, _, _ := strings.Cut(blown, " WHERE ")
			if e.Method == "GET" && asked != suspect { // it may belong to the background: it is sent again
				suspect = asked
				n--
				continue
			}
			w.t.Errorf("%s succeeds without its statement %d\n%.300s", e.Key(), n, blown)
		}
		if blown != "" && (a.Status != 200 || e.Method == "GET") {
			continue
		}
		w.keep(e.ID, a)
		if a.Status == 200 {
			w.after(e, who, request, a)
		}
		return n
	}
}

// usedUp reports whether a request uses up its credential even if it fails.
func usedUp(e rest.Endpoint) bool {
	switch e.Credential {
	case rest.PAuth, rest.PAuthOrDevice, rest.Device, rest.OTAuth:
		return true
	}
	return e.OTP || e.Renewal || e.WantsBodyHash
}

// watched are the tables of a program. They are read again only if something was written since.
type watched struct {
	*live
	db    *sql.DB
	read  func() map[string]string
	mark  string
	found map[string]string
}

// watch reads the content of the tables that stand still, and the length of others that a failed request must not
// extend. A code of an authenticator is used up by a failed request, too.
func watch(l *live) *watched {
	w := &watched{live: l, db: l.open()}
	w.db.SetMaxOpenConns(1) // the mark of SQLite belongs to a connection
	var counts []string
	for _, rows := range []string{"session", "challenge", "outbox", "audit WHERE outcome = 'success'"} {
		counts = append(counts, fmt.Sprintf("SELECT '%s', CAST(count(*) AS TEXT) FROM %s", strings.Fields(rows)[0], rows))
	}
	w.read = l.reader(w.db, func(table string) bool {
		return moves(table) || table == "totp" || strings.HasPrefix(table, "user_search")
	}, counts...)
	return w
}

func (w *watched) state() map[string]string {
	w.t.Helper()
	text := "PRAGMA data_version"
	if w.postgres() {
		text = "SELECT pg_current_snapshot()::text"
	}
	var mark string
	storetest.Must(w.t, w.db.QueryRow(text).Scan(&mark))
	if mark != w.mark {
		w.mark, w.found = mark, w.read()
	}
	return w.found
}

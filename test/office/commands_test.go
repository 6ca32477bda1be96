package office

import (
	"encoding/base64"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Migrations are applied once, by the first process.
func TestConcurrentMigrationsApplyOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Empty()
		got := make([]blackbox.Output, 4)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i] = s.Command("", "migrate") })
		}
		all.Wait()
		applied := 0
		for _, o := range got {
			if o.Code != 0 || !strings.Contains(o.Out, "up to date") {
				t.Errorf("migrate: exit %d, %s%s", o.Code, o.Out, o.ErrOut)
			}
			if strings.Contains(o.Out, "applied ") {
				applied++
			}
		}
		storetest.Equal(t, applied, 1, "processes that applied migrations")
		s.Has(0, "keys")
		s.Start().Session(t, s.Seeded("user"))
	})
}

// A used address stops the start with a message that names the setting, before the start creates anything.
func TestAddressInUseStopsStart(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Empty()
	l := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	for _, key := range []string{"http.addr", "metrics.addr"} {
		n := s.Begin(strings.ToUpper(strings.ReplaceAll(key, ".", "_")) + "=" + l.Addr().String())
		if code := n.Wait(); code != 1 || !strings.Contains(n.Log(), key+": listen tcp") ||
			!strings.Contains(n.Log(), "address already in use") {
			t.Errorf("exit %d, want 1, %s and the reason:\n%s", code, key, n.Log())
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "castellan.db")); !os.IsNotExist(err) {
			t.Errorf("%s is in use, and a database was created (%v)", key, err)
		}
	}
	s.Start().Stop()
}

// Audit verify names the first row that was tampered with (D-EXT-03).
func TestAuditVerifyNamesTamperedRow(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss := blackbox.Admin(t, s, n)
		blackbox.Tune(t, n, boss, "SMS", 60_000, 1)
		n.Do(t, "POST", "/auth/login", map[string]string{"email": "absent@example.test", "password": "wrong-password"}, nil).
			Is(t, 401, "INVALID_CREDENTIALS")
		n.Ok(t, "POST", "/auth/logout", nil, boss)
		n.Stop()
		for _, action := range []string{"LOGIN", "LOGOUT"} {
			if s.Count("audit WHERE action = $1", action) == 0 {
				t.Errorf("no audit row of %s", action)
			}
		}
		s.Says(0, "audit verify", "all chains are valid")
		s.Exec("UPDATE audit SET actor_id = 'somebody else' WHERE action = 'LOGOUT'")
		s.Says(1, "audit verify")
		s.Exec("DELETE FROM audit WHERE action = 'LOGOUT'")
		s.Says(1, "audit verify")
	})
}

// A start waits for a database that does not answer yet, because both may be started together. A missing
// database stops it.
func TestDatabaseIsAwaitedAtStart(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "postgres")
	proxy := s.Behind()
	proxy.Become(blackbox.Resets)
	n := s.Begin()
	blackbox.Until(t, blackbox.Within(10), "a word that the database does not answer",
		func() bool { return strings.Contains(n.Log(), "waiting for it") })
	proxy.Become(blackbox.Good)
	n.Ready()
	n.Session(t, s.Seeded("user"))
	n.Stop()

	u := storetest.Value(url.Parse(s.DSN))(t)
	u.Path = "/of_nobody"
	got := s.CommandWith([]string{"DATABASE_URL=" + u.String()}, "", "migrate")
	if got.Code != 1 || !strings.Contains(got.ErrOut, `"of_nobody" does not exist`) ||
		strings.Contains(got.ErrOut, "waiting for it") {
		t.Errorf("exit %d, %s", got.Code, got.ErrOut)
	}
}

// A mailing continues on another node when its owner is killed (15 s) or drains (1 s), and sends no mail
// twice.
func TestMailingMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	c, m := blackbox.ClusterMails(t, 250, 40*time.Millisecond)
	m.Moves(blackbox.Within(5), "the first mail")
	victim := m.Found(c.Nodes)
	victim.Kill()
	c.Forget(victim)
	m.Moves(blackbox.Within(15), "mail after the kill")
	leaving := m.Found(c.Nodes)
	leaving.Terminate()
	time.Sleep(100 * time.Millisecond) // the mails under way have arrived
	m.Moves(blackbox.Within(0.9), "mail after the drain")
	c.Forget(leaving)
	m.Box.Slow(0)
	m.Ends(c.Nodes[0], blackbox.Within(20), 1)
}

// The job commands, for a job that is cancelled while it sends, and for one that fails because the mail server
// is down.
func TestJobCommandsCancelAndRetry(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		box := s.Relay()
		n := s.Start()
		box.Slow(50 * time.Millisecond)
		m := blackbox.StartMailing(t, s, box, n, 150)
		m.Moves(blackbox.Within(5), "the first mail")
		s.Says(0, "jobs cancel "+m.ID)
		blackbox.Until(t, blackbox.Within(2), "cancelled", func() bool {
			j, ok := m.At(n)
			return ok && j.Status == "cancelled"
		})
		j, _ := m.At(n)
		if j.Skipped == 0 || j.Done+j.Failed+j.Unknown+j.Skipped != j.Total || j.FinishedAt == nil {
			t.Errorf("%+v", j)
		}
		out := s.Says(1, "jobs watch "+m.ID).Out
		if !strings.Contains(out, "cancelled [") || !strings.Contains(out, "skipped") {
			t.Errorf("watch: %q", out)
		}
		s.Says(0, "jobs list --status cancelled", m.ID+"  terms-of-service")
		items := s.Says(0, "jobs items "+m.ID+" --state done").Out
		storetest.Equal(t, strings.Count(items, "\tdone\t"), j.Done, "items are done")
		s.Says(1, "jobs resend "+m.ID)
		for _, command := range []string{"watch", "items", "cancel", "resend"} {
			s.Says(1, "jobs "+command+" absent", `no job "absent"`)
		}
		// A crash leaves items with an unknown result; an operator sends them again.
		s.Exec("UPDATE job SET state = 'done', unknown = 3, skipped = skipped - 3 WHERE id = $1", m.ID)
		s.Exec("UPDATE job_item SET state = 4 WHERE job_id = $1 AND n > 147 AND n <= 150", m.ID)
		s.Exec("UPDATE job_item SET state = 5 WHERE job_id = $1 AND state = 0", m.ID)
		box.Slow(0)
		s.Says(1, "jobs cancel "+m.ID, "over: done")
		s.Says(0, "jobs resend "+m.ID)
		s.Says(0, "jobs watch "+m.ID, "terms-of-service done [")
		if again, _ := m.At(n); again.Unknown != 0 || again.Done != j.Done+3 {
			t.Errorf("sent again: %+v, before %+v", again, j)
		}
	})
}

// A new installation has two contracts. The command line adds others and applications of companies, each once and
// audited (D-CON-01, section 4.20 of the interface).
func TestRecordCommands(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		for _, c := range []struct {
			args []string
			code int
			out  string
		}{
			{[]string{"contract", "add", "SALES", "Distance sales", "--version", "2026-1", "--passive"}, 0, "3\n"},
			{[]string{"contract", "add", "SALES", "Again"}, 1, ""},
			{[]string{"contract", "add", "sales", "x"}, 1, ""},
			{[]string{"contract", "add", "EMPTY", ""}, 1, ""},
			{[]string{"contract", "list"}, 0, "1\tTERMS_OF_USE\t-\tTerms of use\n2\tPRIVACY\t-\tPrivacy notice\n" +
				"3\tSALES\t2026-1\tDistance sales\n"},
			{[]string{"corporate", "add", "Acme A.Ş.", "1234567890", "--status", "APPROVED"}, 0, "1\n"},
			{[]string{"corporate", "add", " ", "1"}, 1, ""},
		} {
			got := s.Command("", c.args...)
			if got.Code != c.code || got.Out != c.out || c.code != 0 && got.ErrOut == "" {
				t.Errorf("%q: exit %d, %s%s", c.args, got.Code, got.Out, got.ErrOut)
			}
		}
		for clause, want := range map[string]int{
			"contract WHERE active": 2,
			"corporate_application WHERE status = 'APPROVED' AND tax_number = '1234567890'":               1,
			"audit WHERE action = 'CONTRACT_ADD' AND actor_id = 'operator' AND target = 'SALES'":          1,
			"audit WHERE action = 'CORPORATE_APPLICATION_ADD' AND actor_id = 'operator' AND target = '1'": 1,
		} {
			s.Has(want, clause)
		}
	})
}

// The program prints the licences of every linked module, each in the linked version, and the image contains
// the same file.
func TestLicensesCoverEveryLinkedModule(t *testing.T) {
	t.Parallel()
	const format = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}"
	list := exec.Command("go", "list", "-deps", "-f", format, "../../cmd/castellan")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	modules, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	printed := blackbox.NewSite(t, "sqlite").Command("", "version", "--licenses")
	storetest.Equal(t, printed.Code, 0, "exit", printed.ErrOut)
	lines := slices.Compact(slices.Sorted(strings.Lines(string(modules))))
	for _, module := range lines {
		if module = strings.TrimSpace(module); module == "" || strings.HasPrefix(module, "castellan/") {
			continue
		}
		storetest.Contains(t, printed.Out, "\n"+module+": ", "notices; run make generate")
	}
	for _, data := range []string{"country-flag-icons", "Unicode CLDR", "IP2Location LITE", "The Go standard library"} {
		storetest.Contains(t, printed.Out, "\n"+data+": ", "notices")
	}
	file := storetest.Value(os.ReadFile("../../Dockerfile"))(t)
	const copied = "COPY --from=build /src/LICENSE /src/cmd/castellan/THIRD_PARTY_NOTICES /licenses/"
	storetest.Contains(t, string(file), copied, "Dockerfile")
}

// A rejected identity returns to the queue after its user uploads another document or an operator reopens it
// (D-KYC-01).
func TestReopenKYC(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		me := s.AddUser("user")
		who := n.Auth(t, me)
		state := func() string { t.Helper(); return s.Text("SELECT kyc_confirm FROM users WHERE id = '" + me.ID + "'") }
		reopen := func(exit int) {
			t.Helper()
			if got := s.Command("", "user", "reopen-kyc", me.Mail); got.Code != exit || state() != "waitingApproval" {
				t.Errorf("exit %d, %s, %s", got.Code, got.ErrOut, state())
			}
		}
		reject := func() { s.Exec("UPDATE users SET kyc_confirm = 'rejected' WHERE id = '" + me.ID + "'") }
		reopen(1)
		reject()
		reopen(0)
		reject()
		n.Ok(t, "POST", "/document/upload-document", map[string]any{"fileName": "a.pdf", "description": "another",
			"base64Data": base64.StdEncoding.EncodeToString([]byte("%PDF-1.7"))},
			blackbox.Headers{"x-auth": who["x-auth"], "tenant-id": "default"})
		storetest.Equal(t, state(), "waitingApproval", "after an upload")
		blackbox.Until(t, blackbox.Within(5), "two audit rows", func() bool {
			return s.Count("audit WHERE action = 'KYC_REOPEN' AND user_id = $1", me.ID) == 2
		})
	})
}

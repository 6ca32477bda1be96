package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/pgtest"
	"castellan/internal/porttest"
)

// A full disk is named: writes are 503 with Retry-After, readiness, log and metrics name the disk, and the service
// recovers. A limit of the size of files stands for the disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	addr := porttest.Free(t)
	n := s.Start("METRICS_ADDR="+addr, "LIMITS_ENABLED=false")
	who := s.Seeded("user")
	n.Login(t, who)
	if blackbox.Value(blackbox.Scrape(t, addr), "castellan_disk_free_bytes", "of=database") < 1 {
		t.Error("no gauge of the free bytes")
	}
	var former unix.Rlimit
	limit := func(size uint64) {
		l := unix.Rlimit{Cur: size, Max: former.Max}
		storetest.Must(t, unix.Prlimit(n.PID(), unix.RLIMIT_FSIZE, &l, nil))
	}
	storetest.Must(t, unix.Prlimit(n.PID(), unix.RLIMIT_FSIZE, nil, &former))
	limit(1)
	for range 5 {
		got := storetest.Value(n.Try("POST", "/auth/login", blackbox.LoginBody(who), nil))(t)
		got.Is(t, 503, "UNAVAILABLE")
		if got.Header.Get("Retry-After") == "" || !strings.Contains(got.String(), "disk") {
			t.Errorf("a login: %v %s", got.Header, got)
		}
	}
	got, err := n.Try("GET", "/health/ready", nil, nil)
	if got.Is(t, 503, "UNAVAILABLE"); err != nil {
		t.Fatal(err)
	}
	n.Do(t, "GET", "/health/live", nil, nil).Is(t, 200, "")
	if got := blackbox.Scrape(t, addr); blackbox.Value(got, "castellan_not_ready", "cause=disk") != 1 ||
		blackbox.Value(got, "castellan_ready") != 0 {
		t.Error("the metrics do not name the disk")
	}
	if !strings.Contains(n.Log(), "cause=disk") && !strings.Contains(n.Log(), `"cause":"disk"`) {
		t.Error("the log does not name the disk")
	}
	limit(former.Cur)
	n.Awaits(t, 5*time.Second, 200, "GET", "/health/ready", nil, nil)
	n.Login(t, who)
}

// A second process does not serve the SQLite file of a first one, by no name; commands may use it. After a kill it is
// free at once.
func TestSecondServeOnOneFileIsRefused(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	first := s.Start()
	file := strings.TrimPrefix(s.DSN, "sqlite:")
	link := filepath.Join(t.TempDir(), "link.db")
	storetest.Must(t, os.Symlink(file, link))
	for _, name := range []string{file, link} {
		second := s.Begin("DATABASE_URL=sqlite:" + name)
		code := second.Wait()
		if code != 1 || !strings.Contains(second.Log()+second.Out(), "an SQLite file is for one process") {
			t.Errorf("%s: exit %d: %s", name, code, second.Log())
		}
	}
	s.AddUser("user")
	first.Kill()
	s.Start()
}

// Two processes on one database without a cluster are a warning in both logs and a finding of the doctor. One process,
// and a cluster, are none.
func TestProcessesWithoutClusterAreNamed(t *testing.T) {
	t.Parallel()
	const line, finding = "processes serve one database without a cluster", "2 processes serve this database"
	s := blackbox.NewSite(t, "postgres")
	a := s.Start()
	storetest.Lacks(t, s.Command("", "doctor").Out, "processes serve", "one process")
	b := s.Start()
	blackbox.Until(t, 20*time.Second, "named in both logs", func() bool {
		return strings.Contains(a.Log(), line) && strings.Contains(b.Log(), line)
	})
	s.Says(0, "doctor", finding)
	boss := blackbox.Admin(t, s, a)
	storetest.Contains(t, a.Do(t, "GET", "/admin/setup", nil, boss).String(), finding, "the setup")
	whole := blackbox.NewSite(t, "postgres")
	c := whole.Cluster()
	c.Join()
	c.Join()
	storetest.Lacks(t, whole.Command("", "doctor").Out, "processes serve", "a cluster")
}

// Behind a pooler of sessions the service logs in; behind one of transactions it does not start, and says why.
func TestServiceBehindPgBouncer(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "postgres")
	direct := s.DSN
	s.DSN = pgtest.Pooler(t, direct, "pool_mode=session", "default_pool_size=40")
	n := s.Set("DATABASE_URL=" + s.DSN).Start()
	n.Do(t, "GET", "/health/ready", nil, nil).Is(t, 200, "")
	n.Login(t, s.Seeded("user"))
	n.Stop()
	s.DSN = pgtest.Pooler(t, direct, "pool_mode=transaction")
	refused := s.Set("DATABASE_URL=" + s.DSN).Begin()
	if code := refused.Wait(); code != 1 || !strings.Contains(refused.Log(), "pool_mode = session") {
		t.Errorf("exit %d: %s", code, refused.Log())
	}
}

// While a server of PostgreSQL refuses connections, or turns its sessions read-only, every request is served or gets
// 503 with Retry-After, and all are served again without a restart.
func TestRefusalsOfTheDatabaseAre503(t *testing.T) {
	t.Parallel()
	server := storetest.Value(pgtest.Start())(t)
	t.Cleanup(server.Stop)
	boss := blackbox.NewSiteOn(t, server.DSN())
	for _, text := range []string{"CREATE ROLE service LOGIN", "CREATE DATABASE served OWNER service"} {
		boss.Exec(text)
	}
	s := blackbox.NewSiteOn(t, strings.NewReplacer("app@", "service@", "/postgres?", "/served?").Replace(server.DSN()))
	n := s.Set("LIMITS_ENABLED=false").Start()
	who := s.AddUser("user")
	session := blackbox.Admin(t, s, n)
	for _, c := range []struct {
		begin []string
		end   string
		lasts bool // until the end; otherwise new sessions are served at once
	}{
		{[]string{"ALTER ROLE service NOLOGIN", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity " +
			"WHERE usename = 'service'"}, "ALTER ROLE service LOGIN", true},
		{[]string{"ALTER ROLE service SET default_transaction_read_only = off",
			"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"}, "SELECT 1", false},
	} {
		for _, text := range c.begin {
			boss.Exec(text)
		}
		refused := 0
		for i := range 20 {
			for _, q := range []struct {
				method, path string
				body         any
				headers      blackbox.Headers
			}{{"POST", "/auth/login", blackbox.LoginBody(who), nil}, {"GET", blackbox.SessionsPath, nil, session},
				{"GET", "/admin/audit", nil, session}} {
				got, err := n.Try(q.method, q.path, q.body, q.headers)
				if got.Status == http.StatusServiceUnavailable {
					refused++
				}
				if err != nil || got.Status != http.StatusOK && (got.Status != 503 || got.Header.Get("Retry-After") == "") {
					t.Errorf("%s %d: %s %v %s", c.begin[0], i, q.path, err, got)
				}
			}
		}
		if refused == 0 && c.lasts {
			t.Errorf("%s: nothing was refused", c.begin[0])
		}
		boss.Exec(c.end)
		n.Awaits(t, blackbox.Within(5), 200, "POST", "/auth/login", blackbox.LoginBody(who), nil)
	}
}

// Killed at any moment of its first start, the service comes up at the next one, with one set of keys and
// seeds and with working logins.
func TestKillDuringFirstStart(t *testing.T) {
	t.Parallel()
	for _, kind := range blackbox.Databases {
		for round := range firstStarts {
			t.Run(fmt.Sprint(kind, round), func(t *testing.T) {
				t.Parallel()
				s := blackbox.NewSite(t, kind)
				for range 3 {
					n := s.Begin()
					time.Sleep(time.Duration(20+rand.IntN(200)) * time.Millisecond)
					n.Kill()
				}
				n := s.Start()
				for clause, want := range map[string]int{"users": 2, "mfa_method": 4, "mfa_action": 9,
					"keys WHERE purpose = 'signing'": 1} {
					s.Has(want, clause)
				}
				blackbox.Admin(t, s, n)
				n.Session(t, s.Seeded("user"))
			})
		}
	}
}

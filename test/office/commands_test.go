package office

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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
		n.Do(t, "POST", "/auth/login", map[string]string{"email": "nobody@example.test", "password": "wrong-password"}, nil).
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

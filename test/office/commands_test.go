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
	"castellan/web"
)

// Every command prints its help without any settings.
func TestHelpNeedsNoSettings(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	for _, c := range []struct {
		args  string
		wants []string
	}{
		{"", []string{"serve", "migrate", "config", "doctor", "version", "user add", "user unlock", "user withdrawals",
			"user allow-ip", "user reopen-kyc",
			"user clear-geofilter", "keys rotate", "cron-key add", "cron-key list", "cron-key remove",
			"audit verify", "device enroll", "device approve", "--config", "CASTELLAN_"}},
		{"serve", []string{"SIGTERM", "1012", "CASTELLAN_DATABASE_URL"}},
		{"migrate", []string{"migrations"}},
		{"config", []string{"settings"}},
		{"doctor", []string{"--json", "KEY: state, effect, remedy", "control off", "read-only", "exit status"}},
		{"health", []string{"--live", "/health/ready", "HEALTHCHECK"}},
		{"version", []string{"--licenses"}},
		{"user", []string{"add", "unlock", "allow-ip", "clear-geofilter"}},
		{"user add", []string{"--email", "--country-code", "--phone", "--password-stdin", "--role", "--name", "--surname",
			"admin"}},
		{"user unlock", []string{"<user>"}},
		{"user withdrawals", []string{"<user>", "prohibit", "allow", "isWithdrawProhibited"}},
		{"user reopen-kyc", []string{"<user>", "waitingApproval"}},
		{"user allow-ip", []string{"<user>", "<cidr>", "--remove", "--clear", "192.0.2.0/24", "all addresses"}},
		{"user clear-geofilter", []string{"<user>", "session"}},
		{"user import", []string{"<file>", "--format", "keycloak", "--dry-run", "line N: reason", "move-in.md", "continues"}},
		{"user export", []string{"--output", "--with-secrets", "terminal"}},
		{"keys", []string{"rotate"}},
		{"keys rotate", []string{"--force", "signing", "sealing", "master"}},
		{"cron-key", []string{"add", "list", "remove"}},
		{"cron-key add", []string{"<name>", "cron-auth"}},
		{"cron-key list", []string{"name"}},
		{"cron-key remove", []string{"<name>", "second"}},
		{"device", []string{"enroll", "ongoing", "approve", "deny", "alarm"}},
		{"device enroll", []string{"--server", "--token-file", "CASTELLAN_DEVICE_TOKEN", "--alg", "--method", "--code",
			"--key", "0600"}},
		{"device ongoing", []string{"--json", "--key"}},
		{"device approve", []string{"--number", "<challenge>"}},
		{"device deny", []string{"<challenge>"}},
		{"device alarm", []string{"<challenge>", "sessions"}},
		{"jobs", []string{"list", "watch", "items", "cancel", "resend"}},
		{"jobs resend", []string{"<job>", "unknown", "twice"}},
		{"rates", []string{"import"}},
		{"rates import", []string{"<file>", "base,quote,rate,date", "nothing"}},
		{"audit", []string{"verify"}},
		{"audit verify", []string{"invalid", "--at-least"}},
		{"backup", []string{"--to", "master key", "one instant"}},
		{"restore", []string{"--from", "--verify", "empty place", "reconcile"}},
		{"restore in-place", []string{"--point", "Stop every node"}},
		{"restore reconcile", []string{"--wallet", "--finish", "withdrawalId,externalId,state,txId"}},
		{"ledger verify", []string{"first fault", "audit verify"}},
	} {
		got := s.Command("", append(strings.Fields(c.args), "--help")...)
		if got.Code != 0 || got.ErrOut != "" || !strings.Contains(got.Out, "Usage: castellan") {
			t.Errorf("%s --help: exit %d, %s%s", c.args, got.Code, got.Out, got.ErrOut)
		}
		for _, want := range c.wants {
			if !strings.Contains(got.Out, want) {
				t.Errorf("%s --help says nothing of %q:\n%s", c.args, want, got.Out)
			}
		}
	}
	if _, err := os.Stat(s.Dir); err == nil {
		t.Error("asking for help made a data folder")
	}
}

// An invalid command line or invalid settings exit with 2. All errors are listed at once, before anything
// opens.
func TestInvalidSettingsAreAllListed(t *testing.T) {
	t.Parallel()
	yaml := filepath.Join(t.TempDir(), "castellan.yaml")
	storetest.Must(t, os.WriteFile(yaml, []byte("http:\n  adr: 127.0.0.1:1\nmfa:\n  max_open: many\n"), 0o600))
	for _, c := range []struct {
		name     string
		settings []string
		args     string
		wants    []string
	}{
		{"unknown variables", []string{"HTTP_ADRESS=x", "MFA_GARDED=y", "LOG_LEVEL=loud", "TOKENS_X_AUTH_TTL=1s"}, "serve",
			[]string{"4 faults", "CASTELLAN_HTTP_ADRESS", "CASTELLAN_MFA_GARDED", "CASTELLAN_MFA_GUARDED", "log.level",
				"tokens.x_auth_ttl"}},
		{"file", nil, "--config " + yaml + " serve", []string{"2 faults", "http.adr", "castellan.yaml:2", "did you mean " +
			"addr", "mfa.max_open", "castellan.yaml:4"}},
		{"development beyond loopback", []string{"HTTP_ADDR=0.0.0.0:0"}, "serve", []string{"http.addr", "loopback"}},
		{"no limits in production", []string{"DEV=false", "LIMITS_ENABLED=false"}, "serve",
			[]string{"limits.enabled", "dev"}},
		{"cluster on SQLite", []string{"CLUSTER_GOSSIP_ADDR=127.0.0.1:7946", "CLUSTER_ACTOR_ADDR=127.0.0.1:7947"}, "serve",
			[]string{"cluster.gossip_addr", "PostgreSQL"}},
		{"any page may act", []string{"HTTP_CORS_ORIGINS=*"}, "serve", []string{"http.cors_origins"}},
		{"a secret that is wrong",
			[]string{"DATABASE_URL=mysql://u:hunter2@h/x",
				"SMS_URL=http://gateway.example.test/?key=hunter2", "RATES_URL=http://rates.example.test/?key=hunter2"}, "serve",
			[]string{"database.url", "sms.url", "rates", "loopback"}},
		{"no command", nil, "sing", []string{"sing", "castellan --help"}},
		{"no flag", nil, "serve --loud", []string{"--loud"}},
		{"no user", nil, "user add --email a@example.test", []string{"--country-code", "--phone"}},
		{"no role", nil, "user add --email a@example.test --country-code 90 --phone 5321234567 --password-stdin --role king",
			[]string{"--role", "admin"}},
		{"no file", nil, "--config /no/such/file serve", []string{"/no/such/file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := blackbox.NewSite(t, "sqlite")
			got := s.CommandWith(c.settings, "", strings.Fields(c.args)...)
			if got.Code != 2 {
				t.Errorf("exit %d, want 2: %s", got.Code, got.ErrOut)
			}
			for _, want := range c.wants {
				if !strings.Contains(got.ErrOut, want) {
					t.Errorf("nothing said of %q:\n%s", want, got.ErrOut)
				}
			}
			if strings.Contains(got.Out+got.ErrOut, "hunter2") {
				t.Errorf("a secret is shown:\n%s", got.ErrOut)
			}
			if _, err := os.Stat(s.Dir); err == nil {
				t.Error("something was opened first")
			}
		})
	}
}

// The effective settings are listed completely, with explanation and source, and without a secret. The layers
// apply in order.
func TestConfigCommandShowsSourcesAndNoSecrets(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	file := filepath.Join(t.TempDir(), "castellan.yaml")
	if err := os.WriteFile(file, []byte("mfa:\n  max_open: 7\n  exec_wait: 3s\nmail:\n  host: mail.example.test\n  "+
		"from: a@example.test\n  username: u\n  password: hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := s.CommandWith(
		[]string{
			"MFA_EXEC_WAIT=4s",
			"DATABASE_URL=postgres://me:hunter2@db.example.test/castellan",
			"SMS_URL=https://sms.example.test/send?key=hunter2",
			"SMS_PARAMS=to={{to}},text={{text}},key=hunter2",
			"SMS_HEADERS=Authorization=hunter2",
		},
		"",
		"--config",
		file,
		"config",
	)
	if got.Code != 0 || got.ErrOut != "" {
		t.Fatalf("exit %d, %s", got.Code, got.ErrOut)
	}
	if strings.Contains(got.Out, "hunter2") {
		t.Errorf("a secret is shown:\n%s", got.Out)
	}
	for _, want := range []string{
		"max_open: 7 # CASTELLAN_MFA_MAX_OPEN (file)", "exec_wait: 4s # CASTELLAN_MFA_EXEC_WAIT (env)", "max_renewals: 5 " +
			"# CASTELLAN_MFA_MAX_RENEWALS (default)",
		"CASTELLAN_KEYS_MASTER_FILE", "CASTELLAN_HTTP_TRUSTED_PROXIES", "CASTELLAN_HTTP_PUBLIC_URL", "CASTELLAN_DATA_DIR",
		"db.example.test", "Development mode",
	} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("nothing said of %q:\n%s", want, got.Out)
		}
	}
	if v := s.Command("", "version"); v.Code != 0 || !strings.HasPrefix(v.Out, "castellan "+web.Version+"-dev (commit ") {
		t.Errorf("version: exit %d, %s", v.Code, v.Out)
	}
	if v := s.CommandWith([]string{"LOG_LEVEL=loud"}, "", "version"); v.Code != 0 {
		t.Errorf("version with settings that cannot be used: exit %d, %s", v.Code, v.ErrOut)
	}
}

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
		if applied != 1 {
			t.Errorf("%d of %d processes applied migrations, want one", applied, len(got))
		}
		if n := s.Count("keys"); n != 0 {
			t.Errorf("migrate made %d keys: it must need no master key", n)
		}
		s.Start().Session(t, s.Seeded("user"))
	})
}

// A used address stops the start with a message that names the setting, before the start creates anything.
func TestAddressInUseStopsStart(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Empty()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	storetest.Must(t, err)
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
		verify := func() blackbox.Output { t.Helper(); return s.Command("", "audit", "verify") }
		if got := verify(); got.Code != 0 || !strings.Contains(got.Out, "all chains are valid") {
			t.Fatalf("audit verify: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		s.Exec("UPDATE audit SET actor_id = 'somebody else' WHERE action = 'LOGOUT'")
		if got := verify(); got.Code != 1 || got.ErrOut == "" {
			t.Errorf("after a change: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		s.Exec("DELETE FROM audit WHERE action = 'LOGOUT'")
		if got := verify(); got.Code != 1 || got.ErrOut == "" {
			t.Errorf("after a removal: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
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
	blackbox.Until(
		t,
		blackbox.Within(10),
		"a word that the database does not answer",
		func() bool { return strings.Contains(n.Log(), "waiting for it") },
	)
	proxy.Become(blackbox.Good)
	n.Ready()
	n.Session(t, s.Seeded("user"))
	n.Stop()

	u, err := url.Parse(s.DSN)
	storetest.Must(t, err)
	u.Path = "/of_nobody"
	got := s.CommandWith([]string{"DATABASE_URL=" + u.String()}, "", "migrate")
	if got.Code != 1 || !strings.Contains(got.ErrOut, `"of_nobody" does not exist`) ||
		strings.Contains(got.ErrOut, "waiting for it") {
		t.Errorf("exit %d, %s", got.Code, got.ErrOut)
	}
}

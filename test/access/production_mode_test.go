package access

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// Without development mode there are no seeded accounts, no pages that show codes and no default secret. An
// operator makes the first administrator, and the running service accepts the login. Passwords are hashed at
// the full cost.
func TestProductionModeHasNoDefaultAccess(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Production().Set("PASSWORD_ARGON2_MEMORY_KIB=", "PASSWORD_ARGON2_TIME=")
		gateway := s.Gateway()
		n := s.Start()
		for _, path := range []string{"/", "/dev/outbox", "/dev/service", "/dev/outbox/page", "/dev/", "/static/index.html",
			"/static/outbox.html", "/static/docs.html", "/static/authenticator.html", "/metrics", "/debug/pprof/"} {
			n.Do(t, "GET", path, nil, nil).Is(t, 404, "NOT_FOUND")
		}
		for _, path := range []string{"/health/live", "/health/ready", "/openapi.json", "/asyncapi.json", "/docs",
			"/.well-known/jwks.json", "/.well-known/vapid.json", "/authenticator", "/authenticator/service", "/setup"} {
			a := n.Ok(t, "GET", path, nil, nil)
			policy := a.Header.Get("Content-Security-Policy")
			if strings.Contains(policy, "localhost") ||
				path == "/authenticator" && !strings.Contains(policy, "frame-ancestors 'none'") {
				t.Errorf("%s: %s", path, policy)
			}
		}
		s.Has(0, "users")
		if _, err := os.Stat(filepath.Join(s.Dir, "dev-login.txt")); err == nil {
			t.Error("there are logins of development mode")
		}
		storetest.Equal(t, n.Out(), "", "standard output")
		for file, want := range map[string]os.FileMode{"master.key": 0o600, ".": 0o700} {
			info, err := os.Stat(filepath.Join(s.Dir, file))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v; want mode %o", file, info.Mode(), err, want)
			}
		}

		boss := blackbox.NewAccount(900)
		add := func(password string, more ...string) blackbox.Output {
			return s.Command(password, append([]string{"user", "add", "--email", boss.Mail, "--country-code", boss.Country,
				"--phone", boss.Phone, "--password-stdin"}, more...)...)
		}
		for _, weak := range []string{"short\n", "password123\n", boss.Phone + "\n", "\n", ""} {
			got := add(weak, "--role", "admin")
			if got.Code != 1 || weak != "\n" && weak != "" && strings.Contains(got.ErrOut+got.Out, strings.TrimSpace(weak)) {
				t.Errorf("password %q: exit %d, %s", weak, got.Code, got.ErrOut)
			}
		}
		got := add(boss.Password+"\n", "--role", "admin", "--name", "Ada", "--surname", "Lovelace")
		if got.Code != 0 || len(strings.TrimSpace(got.Out)) != 26 || strings.Count(got.Out, "\n") != 1 {
			t.Fatalf("user add: exit %d, %q %s; want the id alone", got.Code, got.Out, got.ErrOut)
		}
		if again := add(boss.Password + "\n"); again.Code != 1 || !strings.Contains(again.ErrOut, "already exists") {
			t.Errorf("the same account again: exit %d, %s", again.Code, again.ErrOut)
		}
		f := n.Login(t, boss)
		final := n.Complete(t, f, f.Method(t, "SMS"), blackbox.CodeIn(t, gateway.Wait(t, boss.Number(), 1).Text)).
			Is(t, 200, "")
		who := blackbox.Headers{"x-auth": blackbox.CheckFinal(t, f, final)}
		storetest.Equal(t, blackbox.ClaimsOf(t, who["x-auth"])["sub"], any(strings.TrimSpace(got.Out)), "sub")
		n.Awaits(t, blackbox.Within(1), 200, "GET", blackbox.ActionsPath, nil, who) // by then an administrator

		// A correct password of an account that was inserted by hand takes as long as a wrong one: one hash.
		began := time.Now()
		n.Do(t, "POST", "/auth/login", map[string]string{"email": "nobody@example.test", "password": "tall-lantern-0"}, nil).
			Is(t, 401, "INVALID_CREDENTIALS")
		if took := time.Since(began); took < 5*time.Millisecond {
			t.Errorf("an unknown account was refused after %v: no hash takes so short", took)
		}
	})
}

// Accounts that development mode seeded cannot be used without it, whatever their password. They work again
// when it is on (D-EXT-04, issue text 1).
func TestSeededAccountsAreRefusedInProduction(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss, demo := s.Seeded("admin"), s.Seeded("user")
		info, err := os.Stat(filepath.Join(s.Dir, "dev-login.txt"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("dev-login.txt: %v, %v", info, err)
		}
		for _, want := range []string{boss.Password, demo.Password, boss.Phone, demo.Phone, "/dev/outbox", "/docs",
			"dev-login.txt"} {
			blackbox.Until(t, blackbox.Within(2), "the first start shows "+want,
				func() bool { return strings.Contains(n.Out(), want) })
		}
		n.Stop()
		n = s.Start()
		blackbox.Until(t, blackbox.Within(2), "a later start names the file",
			func() bool { return strings.Contains(n.Out(), "dev-login.txt") })
		storetest.Lacks(t, n.Out(), demo.Password, "a later start")
		token, _ := n.Session(t, demo)
		begun := n.Login(t, boss)
		code := n.Code(t, boss, "SMS")
		n.Stop()

		file := filepath.Join(s.Dir, "master.key")
		s.Set("DEV=", "KEYS_MASTER_FILE="+file)
		s.Gateway()
		n = s.Start()
		made := s.AddUser("user")
		wrong := made
		wrong.Password += "x"
		refused := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(wrong), nil).Is(t, 401, "INVALID_CREDENTIALS")
		for _, a := range []blackbox.Account{boss, demo} {
			got := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(a), nil)
			if blackbox.Alike(got) != blackbox.Alike(refused) {
				t.Errorf("a seeded account: %s, a wrong password: %s", got, refused)
			}
		}
		n.Login(t, made)
		// Their sessions and challenges are refused, too.
		n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token}).Is(t, 401, "TOKEN_REVOKED")
		n.Complete(t, begun, begun.Method(t, "SMS"), code).Is(t, 409, "CHALLENGE_CLOSED")
		n.Stop()
		s.Set("DEV=true")
		s.Start().Session(t, demo)
	})
}

// A hundred wrong passwords from many places lock the account for strangers, but not for its owner's places.
func TestHundredWrongPasswordsLockAccountForStrangers(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_WRONG_PASSWORDS_DAY=20")
		n := s.Start()
		user := s.AddUser("user")
		from := func(password, forwarded string) blackbox.Answer {
			t.Helper()
			a := user
			a.Password = password
			return n.Do(t, "POST", "/auth/login", blackbox.LoginBody(a), blackbox.Headers{"X-Forwarded-For": forwarded})
		}
		from(user.Password, "203.0.113.1").Is(t, 200, "") // a known place from now on
		for i := range 20 {
			from("wrong-password", fmt.Sprintf("198.51.100.%d", i)).Is(t, 401, "INVALID_CREDENTIALS")
		}
		from(user.Password, "198.51.100.99").Is(t, 429, "RATE_LIMITED")
		from(user.Password, "203.0.113.1").Is(t, 200, "")
		blackbox.Until(t, blackbox.Within(10), "notified by mail", func() bool {
			return slices.ContainsFunc(n.Letters(t, user.Mail), func(l blackbox.Letter) bool {
				return l.Subject == "Your Castellan account is under attack"
			})
		})
		for _, name := range []string{user.ID, user.Mail, user.Number()} {
			s.Says(0, "user unlock "+name, user.ID)
		}
		s.Says(1, "user unlock nobody@example.test", "no account")
		from(user.Password, "198.51.100.99").Is(t, 200, "")
	})
}

// Settings of the process reach the parts that they are for. A tenant and an issuer refuse the tokens of others, and a
// private address without a known country is blocked. A device shows the time of a login in the configured zone.
func TestSettingsReachTheirParts(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		var foreign []blackbox.Headers
		for _, setting := range []string{"TENANT_ID=other", "TOKENS_ISSUER=elsewhere"} {
			n := s.Start(setting)
			who := blackbox.Admin(t, s, n)
			n.Ok(t, "GET", blackbox.SessionsPath, nil, who)
			foreign = append(foreign, who)
			n.Stop()
		}
		n := s.Start("LANGUAGE_TIME_ZONE=Europe/Istanbul")
		demo, own := s.Seeded("user"), blackbox.Admin(t, s, n)
		n.Ok(t, "GET", blackbox.SessionsPath, nil, own)
		for _, who := range foreign {
			n.Do(t, "GET", blackbox.SessionsPath, nil, who).Is(t, 401, "UNAUTHENTICATED")
		}
		at := blackbox.From(t, n, blackbox.Here)
		session := at.Session(demo)
		p := blackbox.Enroll(t, n, demo, session["x-auth"], device.ES256, "")
		n.Login(t, demo)
		var pending []struct {
			Data struct {
				TS     int64
				Params struct{ DateTime string }
			}
		}
		p.Ongoing(t).Is(t, 200, "").Read(t, &pending)
		for _, push := range pending {
			there := time.UnixMilli(push.Data.TS).UTC().Add(3 * time.Hour)
			storetest.Equal(t, push.Data.Params.DateTime, there.Format("02.01.2006 15:04:05"))
		}
		storetest.Equal(t, len(pending), 1)
		f := blackbox.FlowOf(t, at.Ask("POST", "/user/geofilter/countries", `{"countryCode":"TR"}`, session))
		at.Complete(f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		at.Login(demo).Is(t, 200, "")
		n.Stop()
		n = s.Start("GEO_ALLOW_PRIVATE=false")
		blackbox.From(t, n, blackbox.Here).Login(demo).Is(t, 401, "INVALID_CREDENTIALS")
	})
}

// A counter that does not rise is reported, and refused unless the settings say otherwise.
func TestPasskeyCounter(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		who := blackbox.Admin(t, s, n)
		blackbox.Policy(t, n, who, "LOGIN", 1, `[["PUSH"],["SMS"]]`, `,"force":true,"passkeyAlone":true`)
		p := blackbox.EnrollPasskey(t, n, demo, x)
		p.Count = 5
		p.LogIn(t).Is(t, 200, "")
		p.LogIn(t).Is(t, 200, "")
		p.Count = 3
		p.LogIn(t).Is(t, 401, "INVALID_CREDENTIALS")
		rows := string(n.Ok(t, "GET", "/admin/audit?action=PASSKEY_COUNTER", nil, who).Body)
		if !strings.Contains(rows, p.ID) || !strings.Contains(rows, "the counter is 4 after 7") {
			t.Errorf("audit: %s", rows)
		}
		n.Stop()
		n = s.Start("WEBAUTHN_COUNTER=report")
		p.N, p.Origin = n, n.URL
		p.LogIn(t).Is(t, 200, "")
		p.Count = 20
		p.LogIn(t).Is(t, 200, "")
	})
}

// Only their owner can read the files of an embedded database, also in an existing folder that is open to
// others. A start warns of open files.
func TestStartWarnsOfReadableDatabaseFiles(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Production()
	file := filepath.Join(s.Dir, "castellan.db")
	storetest.Must(t, os.Mkdir(s.Dir, 0o755))
	files := []string{file, file + "-wal", file + "-shm"}
	for _, open := range [][]string{{s.Dir}, append(files, s.Dir)} { // the log and the index have the file's mode
		n := s.Start()
		for _, name := range files {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 && !slices.Contains(open, name) {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
		for _, name := range []string{s.Dir, file} { // the other two may be made after the warnings
			if is := strings.Contains(n.Log(), `"open: `+name+`"`); is != slices.Contains(open, name) {
				t.Errorf("warning of %s: %v", name, is)
			}
		}
		n.Stop()
		storetest.Must(t, os.Chmod(file, 0o644))
	}
}

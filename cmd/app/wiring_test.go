package app

import (
	"context"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"castellan/config"
	"castellan/domain/access/challenge"
	"castellan/domain/access/challenge/stepup"
	"castellan/domain/access/mfa"
	"castellan/domain/access/password"
	"castellan/domain/access/session"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/outbound/dispatch"
	"castellan/persistence"
)

// Every setting of a bound reaches its rule, each by a value of its own.
func TestSettingsReachTheirRules(t *testing.T) {
	c := config.Default()
	c.Password.QueueWait = 6 * time.Second
	l := &c.Limits
	l.WrongPasswords, l.WrongPasswordWindow, l.WrongPasswordsDay = 11, 12*time.Minute, 113
	l.DestinationPerHour, l.DestinationPerDay, l.UserPerDay, l.IPPerHour = 14, 15, 16, 17
	l.PushPending, l.PushWindow, l.PushPerDay = 18, 19*time.Minute, 20
	l.PushDenials, l.PushDenialWindow, l.PushPause = 21, 22*time.Minute, 23*time.Minute
	l.CountryPerDay = map[string]int{"90": 24}
	m := &c.MFA
	m.ChallengeTTL, m.PAuthGrace, m.ExecWait, m.MaxOpen = 25*time.Second, 26*time.Second, 27*time.Second, 28
	m.MaxRenewals, m.MethodAttempts, m.ChallengeAttempts, m.FactorAttempts = 29, 9, 10, 30
	m.OTPBudget, m.OTPBudgetWindow, m.TOTPBudget, m.TOTPBudgetWindow = 31, 32*time.Minute, 33, 34*time.Minute
	c.Outbox.Lease, c.Language.Default, c.Notices.Off = 35*time.Second, "ar", []string{"new-network"}

	same := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	const day = 24 * time.Hour
	same("wrong passwords", guardRules(c), password.GuardRules{PerPrefix: 11, Window: 12 * time.Minute, Total: 113,
		TotalSpan: day, PerRegion: 20, GoodFor: 30 * day, Wait: 6 * time.Second})
	same("challenges", rules(c), challenge.Rules{RenewCutoffMs: 120_000, CodeMaxAgeMs: 600_000, MaxRenewals: 29,
		MethodAttempts: 9, ChallengeAttempts: 10, FactorAttempts: 30, OTPBudget: 31, OTPBudgetWindowMs: 32 * 60_000,
		TOTPBudget: 33, TOTPBudgetWindowMs: 34 * 60_000})
	want := stepup.Config{TTL: 25 * time.Second, Grace: 26 * time.Second, ExecWait: 27 * time.Second, MaxOpen: 28,
		Lease: 35 * time.Second, MaxCodeAge: 10 * time.Minute, Language: "ar",
		Silent:     map[message.Kind]bool{message.NewNetwork: true},
		Caps:       stepup.Caps{DestinationHour: 14, DestinationDay: 15, UserDay: 16},
		PrefixHour: 17, DialDay: map[string]int{"90": 24},
		Push: challenge.PushRules{Sent: 18, Window: 19 * time.Minute, SentDay: 20, Denials: 21,
			DenialWindow: 22 * time.Minute, Pause: 23 * time.Minute}}
	same("messages and pushes", stepupConfig(c), want)
	l.Enabled = false
	want.Caps, want.PrefixHour, want.DialDay, want.Push = stepup.Caps{}, 0, nil, challenge.PushRules{}
	same("no limits", stepupConfig(c), want)
	same("wrong passwords without limits", guardRules(c).PerPrefix, 11)

	same("times of methods", methodTimes(c), mfa.Times{ChallengeMs: 25_000})
	c.Dev = true
	same("times of methods in development", methodTimes(c), mfa.Times{ChallengeMs: 25_000, LeastMs: 1000})
}

// The limits of concurrent deliveries (D-EXT-06): a wake-up host that is not known as prompt gets one, and all
// such hosts half. Mail is grouped by domain.
func TestDeliveryRules(t *testing.T) {
	all := deliveryRules(4)
	wake, letter := all[message.Push], all[message.MAIL]
	for _, c := range []struct{ got, want string }{
		{wake.Host(`{"type":"webhook","url":"https://Push.example.com:8443/a"}`), "push.example.com"},
		{letter.Host("a@Mail.Example.com"), "mail.example.com"},
	} {
		if c.got != c.want {
			t.Errorf("host %q, want %q", c.got, c.want)
		}
	}
	wake.Host, letter.Host = nil, nil
	if want := (dispatch.Rule{Slots: 64, Most: 32, Slow: 1, Slows: 32, RestAfter: 3, Rest: 5 * time.Minute,
		HalfLife: true}); !reflect.DeepEqual(wake, want) {
		t.Errorf("wake-ups: %+v", wake)
	}
	if want := (dispatch.Rule{Most: 4, Slow: 2}); !reflect.DeepEqual(letter, want) {
		t.Errorf("mail: %+v", letter)
	}
	if c := config.Default(); c.Push.Timeout != 3*time.Second {
		t.Errorf("a wake-up may take %v", c.Push.Timeout)
	}
}

// The assembled program takes the bounds of a site from the settings (D-GEN-14, D-PWD-05).
func TestSitesAreBounded(t *testing.T) {
	s := assembled(t, func(c *config.Config) {
		c.Limits.WrongPerPrefix, c.Limits.ExemptCIDRs = 2, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		c.Limits.WrongPasswords, c.Password.QueueWait = 7, 6*time.Second
	})
	for from, site := range map[string]string{"192.0.2.7": "", "203.0.113.7": "203.0.113.7/32",
		"2001:db8:0:1234::1": "2001:db8:0:1200::/56"} {
		ip := netip.MustParseAddr(from)
		if in, pass := s.logins.Place(ip), s.passwords.Service.Place(ip); in != site || pass != site {
			t.Errorf("%s shares the places of %q at a login and of %q at a change", from, in, pass)
		}
		for range 2 {
			s.logins.Spray.Wrong(t.Context(), ip)
		}
		err := s.logins.Spray.Judge(password.Guard{}, s.logins.Guards.Rules(), ip)
		if refused := fault.CodeOf(err) == fault.RateLimited; refused != (site != "") {
			t.Errorf("%s after two wrong passwords: %v", from, err)
		}
	}
	if got := s.logins.Guards.Rules(); got != guardRules(s.cfg) || got.PerPrefix != 7 || got.Wait != 6*time.Second {
		t.Errorf("the guards of logins: %+v", got)
	}
}

// The periodic tasks of a node fold refused logins, and make and publish checkpoints of the audit.
func TestPeriodicTasks(t *testing.T) {
	s := assembled(t)
	storetest.Must(t, s.commit.Commit(t.Context(), session.Refused{Site: "203.0.113.7/32",
		Minute: time.Now().Add(-5 * time.Minute).Truncate(time.Minute), Count: 3}))
	for _, x := range s.tasks {
		if err := x.do(t.Context()); err != nil {
			t.Errorf("%s: %v", x.complaint, err)
		}
	}
	rows, err := persistence.NewAudit(s.DB).List(context.Background(), audit.Query{Action: session.ActionLogin},
		page.Query[audit.Place]{Limit: 10})
	storetest.Must(t, err)
	if len(rows.Records) != 1 || !strings.HasPrefix(rows.Records[0].Detail, "3 refused with unknown identifiers") {
		t.Errorf("the audit has %+v", rows.Records)
	}
	for range 2 { // the first found no row
		for _, x := range s.tasks {
			storetest.Must(t, x.do(t.Context()))
		}
	}
	if s.anchors.counter.Load() == 0 {
		t.Error("no checkpoint was made")
	}
}

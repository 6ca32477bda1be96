package app

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/config"
	"castellan/domain/account/password"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/proof/stepup"
	"castellan/domain/session/session"
	"castellan/outbound/dispatch"
	"castellan/persistence/kit"
	"castellan/persistence/money"
)

// Every setting of a limit reaches its rule, each checked with its own value.
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

	const day = 24 * time.Hour
	storetest.Equal(t, guardRules(c), password.GuardRules{PerPrefix: 11, Window: 12 * time.Minute, Total: 113,
		TotalSpan: day, PerRegion: 20, GoodFor: 30 * day, Wait: 6 * time.Second})
	storetest.Equal(t, rules(c), challenge.Rules{RenewCutoffMs: 120_000, CodeMaxAgeMs: 600_000, MaxRenewals: 29,
		MethodAttempts: 9, ChallengeAttempts: 10, FactorAttempts: 30, OTPBudget: 31, OTPBudgetWindowMs: 32 * 60_000,
		TOTPBudget: 33, TOTPBudgetWindowMs: 34 * 60_000})
	want := stepup.Config{TTL: 25 * time.Second, Grace: 26 * time.Second, ExecWait: 27 * time.Second, MaxOpen: 28,
		Lease: 35 * time.Second, MaxCodeAge: 10 * time.Minute, Language: "ar",
		Silent:     map[message.Kind]bool{message.NewNetwork: true},
		Caps:       stepup.Caps{DestinationHour: 14, DestinationDay: 15, UserDay: 16},
		PrefixHour: 17, DialDay: map[string]int{"90": 24},
		Push: challenge.PushRules{Sent: 18, Window: 19 * time.Minute, SentDay: 20, Denials: 21,
			DenialWindow: 22 * time.Minute, Pause: 23 * time.Minute}}
	storetest.Same(t, stepupConfig(c), want)
	l.Enabled = false
	want.Caps, want.PrefixHour, want.DialDay, want.Push = stepup.Caps{}, 0, nil, challenge.PushRules{}
	storetest.Same(t, stepupConfig(c), want, "no limits")
	storetest.Equal(t, guardRules(c).PerPrefix, 11, "wrong passwords without limits")

	storetest.Equal(t, methodTimes(c), mfa.Times{ChallengeMs: 25_000})
	c.Dev = true
	storetest.Equal(t, methodTimes(c), mfa.Times{ChallengeMs: 25_000, LeastMs: 1000}, "development")
}

// How deliveries share their attempts (D-EXT-06). A host that has not proved to be prompt gets one wake-up, and all
// such hosts get half; mail is limited by domain.
func TestDeliveryRules(t *testing.T) {
	all := deliveryRules(4)
	wake, letter := all[message.Push], all[message.MAIL]
	storetest.Equal(t, wake.Host(`{"type":"webhook","url":"https://Push.example.com:8443/a"}`), "push.example.com")
	storetest.Equal(t, letter.Host("a@Mail.Example.com"), "mail.example.com")
	wake.Host, letter.Host = nil, nil
	storetest.Same(t, wake, dispatch.Rule{Slots: 64, Most: 32, Slow: 1, Slows: 32, RestAfter: 3, Rest: 5 * time.Minute,
		HalfLife: true})
	storetest.Same(t, letter, dispatch.Rule{Most: 4, Slow: 2})
	storetest.Equal(t, config.Default().Push.Timeout, 3*time.Second, "a wake-up may take")
}

// The age of the oldest message is in seconds, and 0 for an empty outbox.
func TestBacklogAge(t *testing.T) {
	var b backlog
	storetest.Equal(t, b.age(time.UnixMilli(1500)), 0)
	b.oldest.Store(500)
	storetest.Equal(t, b.age(time.UnixMilli(2000)), 1.5)
}

// The limits of a site (D-GEN-14, D-PWD-05) in the assembled program are those of the settings.
func TestSitesAreBounded(t *testing.T) {
	s := assembled(t, func(c *config.Config) {
		c.Limits.WrongPerPrefix, c.Limits.ExemptCIDRs = 2, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		c.Limits.WrongPasswords, c.Password.QueueWait = 7, 6*time.Second
	})
	for from, site := range map[string]string{"192.0.2.7": "", "203.0.113.7": "203.0.113.7/32",
		"2001:db8:0:1234::1": "2001:db8:0:1200::/56"} {
		ip := client.From(netip.MustParseAddr(from))
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

// The periodic work of a node: it removes expired rows, aggregates refused logins, and creates and publishes audit
// checkpoints.
func TestPeriodicTasks(t *testing.T) {
	s := assembled(t)
	storetest.Must(t, s.commit.Commit(t.Context(), change.Note{Topic: change.MFA}, session.Refused{
		Site: "203.0.113.7/32", Minute: time.Now().Add(-5 * time.Minute).Truncate(time.Minute), Count: 3}))
	notes := func() int {
		return int(storetest.Value(s.DB.Conn(t.Context()).NewSelect().Table("change").Count(t.Context()))(t))
	}
	err := s.DB.InTx(t.Context(), func(ctx context.Context) error {
		_, err := s.DB.Conn(ctx).NewUpdate().Table("change").Set("at = 0").Where("1 = 1").Exec(ctx)
		return err
	})
	if err != nil || notes() == 0 {
		t.Fatalf("no old note: %v", err)
	}
	for _, x := range s.tasks {
		if err := x.do(t.Context()); err != nil {
			t.Errorf("%s: %v", x.complaint, err)
		}
	}
	storetest.Equal(t, notes(), 0, "old notes are still there after every task ran")
	rows, err := kit.NewAudit(s.DB).List(context.Background(), audit.Query{Action: session.ActionLogin},
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

// The currencies in memory are loaded before the node serves, follow the change feed, and are reloaded after a
// gap of the feed.
func TestCurrenciesAreReloaded(t *testing.T) {
	s := assembled(t)
	known := func(code string) bool {
		return slices.ContainsFunc(s.currencies.Catalog().Pairs(nil), func(l currency.Listed) bool {
			return l.Currency.Code == code
		})
	}
	if !known("BTC") {
		t.Error("BTC is not known at the start")
	}
	other := storetest.Value(Open(t.Context(), s.cfg))(t)
	defer other.Close()
	add := func(code string, notes ...commit.Write) {
		t.Helper()
		storetest.Must(t, other.DB.InTx(t.Context(), func(ctx context.Context) error {
			store := money.NewCurrencies(other.DB)
			id, err := store.AddCurrency(ctx, currency.Currency{Code: code, Name: code})
			if err == nil {
				_, err = store.AddPair(ctx, currency.Pair{CurrencyID: id, NetworkID: 1})
			}
			if err == nil && len(notes) > 0 {
				err = other.DB.Commit(ctx, notes...)
			}
			return err
		}))
	}
	add("NEW1", change.Note{Topic: change.Currencies}, audit.Record{Action: "TEST"})
	if storetest.Must(t, s.feed.Poll(t.Context())); !known("NEW1") {
		t.Error("a currency of another node is not known after its note was read")
	}
	add("NEW2")
	if known("NEW2") {
		t.Error("a currency is known without a note and without a gap")
	}
	if storetest.Must(t, s.load(t.Context())); !known("NEW2") {
		t.Error("a currency of another node is not known after a gap")
	}
}

// Without a collector there is no tracer: no hook, no goroutine, no wrapped committer.
func TestNoTracer(t *testing.T) {
	s := assembled(t)
	if s.tracer != nil || traceRequests(s.tracer) != nil || s.commit.Committer != committer(s.DB, s.cfg.Database, nil) {
		t.Error("something follows requests without a need")
	}
	if _, same := s.commit.Committer.(interface{ Close() error }); !same {
		t.Errorf("commits go by a %T", s.commit.Committer)
	}
}

// The alarm of the ledger shows every run that failed, until one succeeds. A node that leaves raises none.
func TestNightlyAlarms(t *testing.T) {
	down := errors.New("down")
	var alarms atomic.Int64
	var night ledger.Night
	s := &service{log: slog.New(slog.DiscardHandler)}
	kind := s.nightly(&alarms, func(context.Context) ledger.Night { return night })
	leaving, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		night ledger.Night
		want  int64
		fails bool
	}{
		{"sound", t.Context(), ledger.Night{Totals: []ledger.Totals{{}}}, 0, false},
		{"suspense", t.Context(), ledger.Night{Totals: []ledger.Totals{{Unexplained: amount.Must("1").Sum()}, {}}}, 1, false},
		{"days are open", t.Context(), ledger.Night{Closing: down}, 1, true},
		{"the node leaves", leaving, ledger.Night{Closing: down, Verification: down}, 1, true},
		{"broken, too", t.Context(), ledger.Night{Closing: down, Verification: ledger.ErrBroken}, 2, false},
		{"unreadable", t.Context(), ledger.Night{Verification: down}, 1, true},
		{"sound again", t.Context(), ledger.Night{}, 0, false},
	} {
		night = c.night
		j, _, err := kind.Step(c.ctx, job.Job{})
		if (err != nil) != c.fails || alarms.Load() != c.want {
			t.Errorf("%s: %d alarms, %v", c.name, alarms.Load(), err)
		}
		if shown, serr := lastNight(t.Context(), nights{{}, j}, 7); serr != nil || err == nil && shown != c.want {
			t.Errorf("%s: another node shows %d, %v", c.name, shown, serr)
		}
	}
}

// nights are the nightly jobs, the last one first.
type nights []job.Job

func (n nights) List(context.Context, job.Query, page.Query[job.Place]) (page.Of[job.Job], error) {
	return page.Of[job.Job]{Records: n}, nil
}

// Every node shows the alarms of the last run, whichever node ran it: a failure until a run succeeds.
func TestLastNight(t *testing.T) {
	sound, retried := job.Job{State: job.Done}, job.Job{State: job.Paused, Attempts: 1}
	for _, c := range []struct {
		jobs       nights
		here, want int64
	}{
		{nil, 2, 0}, {nights{sound, retried}, 2, 0}, {nights{retried, sound}, 0, 1}, {nights{retried, sound}, 2, 2},
		{nights{{State: job.Running}, {State: job.Failed}, sound}, 0, 1},
		{nights{{State: job.Queued}, {State: job.Cancelled}, sound}, 3, 0},
		{nights{{State: job.Done, Result: "broken: by 0.9"}}, 0, 1},
	} {
		if got, err := lastNight(t.Context(), c.jobs, c.here); got != c.want || err != nil {
			t.Errorf("%+v: %d, %v, want %d", c, got, err, c.want)
		}
	}
}

// Browsers offer passkeys at localhost only.
func TestPrintedAddressesAreLocalhost(t *testing.T) {
	for addr, want := range map[string]string{"127.0.0.1:8080": "localhost:8080", "[::1]:80": "localhost:80",
		"0.0.0.0:1": "localhost:1", ":1": "localhost:1", "192.0.2.7:1": "192.0.2.7:1", "host.test:1": "host.test:1", "": ""} {
		storetest.Equal(t, browsable(addr), want, addr, "is printed as")
	}
}

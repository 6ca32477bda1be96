package session_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/session"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/kit"
	sessionstore "castellan/persistence/session"
)

func at(ip string, r session.LoginRequest) session.LoginRequest {
	r.Origin, r.Starter.IP = client.From(netip.MustParseAddr(ip)), ip
	return r
}

// tries logs in and expects an answer: "" is a challenge.
func (b *bench) tries(r session.LoginRequest, want fault.Code) *fault.Error {
	b.t.Helper()
	_, err := b.svc.Login(b.t.Context(), r)
	if fault.CodeOf(err) != want {
		b.t.Fatalf("from %s: %v, want %q", r.Origin.Addr, err, want)
	}
	e, _ := err.(*fault.Error)
	return e
}

// One password is tried on many accounts. After 120 wrong ones a site may try only for accounts that know it
// (D-GEN-14).
func TestSpray(t *testing.T) {
	const attacker, neighbour, home, elsewhere = "2001:db8:0:1::1", "2001:db8:0:ff::1", "2001:db8:0:2::1",
		"2001:db8:0:100::1"
	b := newBench(t)
	b.add(1, nil)
	b.add(2, nil)
	b.tries(at(home, request(1, secret)), "")
	began := b.now
	for i := range 120 {
		b.tries(at(attacker, request(1000+i, "kedi7şekeR")), fault.InvalidCredentials)
		b.now = b.now.Add(time.Second)
	}
	b.take()
	for _, r := range []session.LoginRequest{request(5000, "kedi7şekeR"), request(2, "kedi7şekeR"), request(2, secret)} {
		e := b.tries(at(neighbour, r), fault.RateLimited)
		if want := began.Add(10 * time.Minute).Sub(b.now); e.RetryAfter != want {
			t.Errorf("Retry-After %v, want %v", e.RetryAfter, want)
		}
	}
	if got := b.take(); strings.Contains(got, "commit") {
		t.Errorf("what is refused costs %s", got)
	}
	b.tries(at(home, request(1, secret)), "")
	b.tries(at(home, request(1, "kedi7şekeR")), fault.InvalidCredentials)
	b.tries(at(elsewhere, request(2, secret)), "")
	b.now = began.Add(10 * time.Minute)
	b.tries(at(attacker, request(2, secret)), "")
}

// Five regions close an account. The owner still gets in by the known network, a reset of the password, or the
// operator.
func TestDoorsOfAClosedAccount(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	b.tries(at("198.51.100.7", request(1, secret)), "")
	attack := func() {
		b.take()
		for region := range 5 {
			for i := range 20 {
				ip := fmt.Sprintf("203.0.%d.%d", region, i)
				_, err := b.svc.Login(t.Context(), at(ip, request(1, "kedi7şekeR")))
				if code := fault.CodeOf(err); code != fault.InvalidCredentials && code != fault.RateLimited {
					t.Fatal(err)
				}
			}
		}
		b.tries(at("192.0.2.1", request(1, secret)), fault.RateLimited)
		storetest.Equal(t, strings.Count(b.take(), "tell "+u.Email+" under-attack"), 1, "notices to the owner")
	}
	attack()
	b.tries(at("198.51.100.7", request(1, secret)), "")
	storetest.Must(t, b.db.Commit(t.Context(), password.ClearGuard{Key: u.ID}))
	b.tries(at("192.0.2.1", request(1, "kedi7şekeR")), fault.InvalidCredentials)
	attack()
	b.tries(at("198.51.100.7", request(1, secret)), "") // still known after the unlock
	storetest.Must(t, b.db.Commit(t.Context(), password.ResetBy(u.ID, "192.0.2.77/32", b.now)))
	attack()
	b.tries(at("192.0.2.77", request(1, secret)), "")
	b.tries(at("198.51.100.7", request(1, secret)), fault.RateLimited) // the former place knew only the old password
}

// Logins with unknown identifiers leave one audit row for each site and minute, and no history. Those of accounts are
// written one by one.
func TestUnknownIdentifierRefusalsAreFolded(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	b.add(2, func(a *user.Add) { a.Status = user.Blocked })
	b.now = b.now.Truncate(time.Minute)
	for i := range 7 {
		b.tries(request(100+i, secret), fault.InvalidCredentials)
	}
	b.tries(at("2001:db8:0:1::1", request(200, secret)), fault.InvalidCredentials)
	b.tries(at("2001:db8:0:2::1", request(201, secret)), fault.InvalidCredentials)
	b.tries(request(1, "kedi7şekeR"), fault.InvalidCredentials)
	b.tries(request(2, secret), fault.InvalidCredentials)
	b.now = b.now.Add(time.Minute)
	b.tries(request(300, secret), fault.InvalidCredentials)
	rows := func() (out []string) {
		t.Helper()
		storetest.Must(t, b.svc.FoldRefusals(t.Context()))
		p := storetest.Value(kit.NewAudit(b.db).List(t.Context(), audit.Query{Action: session.ActionLogin},
			page.Query[audit.Place]{Limit: 100}))(t)
		for _, r := range p.Records {
			out = append(out, fmt.Sprint(r.UserID != "", " ", r.IP, " ", r.Detail[:strings.LastIndex(r.Detail, " ")]))
		}
		slices.Sort(out)
		return out
	}
	if got := rows(); len(got) != 2 {
		t.Errorf("before the minute is over: %q", got)
	}
	b.now = b.now.Add(6 * time.Second) // the first minute ended longer ago than a commit takes
	b.svc = b.service()                // the node that answered is gone
	minute := b.now.Add(-time.Minute).UTC().Format("2006-01-02 15:04")
	if got, want := rows(), []string{
		"false 2001:db8::/56 2 refused with unknown identifiers in the minute " + minute,
		"false 203.0.113.9 7 refused with unknown identifiers in the minute " + minute,
		"true 203.0.113.9 password", "true 203.0.113.9 password",
	}; !slices.Equal(got, want) {
		t.Errorf("audit:\n%s", strings.Join(got, "\n"))
	}
	if got := rows(); len(got) != 4 {
		t.Errorf("folded again: %q", got)
	}
	b.now = b.now.Add(time.Minute)
	if got := rows(); len(got) != 5 {
		t.Errorf("after the second minute: %q", got)
	}
	all := storetest.Value(sessionstore.NewSessions(b.db).LoginsFrom(t.Context(), here.String(), 100))(t)
	if len(all) != 2 || len(b.history(u)) != 1 {
		t.Errorf("%d lines of history, want those of the two accounts", len(all))
	}
	// The counts of their tries do not stay either.
	key := "?" + b.svc.Conceal(request(100, secret).Who.String())
	if g := b.guard(key); len(g.Tries) == 0 {
		t.Fatal("tries for an unknown identifier are not counted")
	}
	guards := account.NewPasswordGuards(b.db)
	storetest.Must(t, guards.Purge(t.Context(), b.now.Add(24*time.Hour+time.Second)))
	if g := b.guard(key); g.Version != 0 {
		t.Errorf("a day later there is still %+v", g)
	}
}

// The owner is notified of a login from a network that is new to the account. The first login causes no notice, and a
// right password alone makes no network known (D-EXT-07).
func TestNewNetworks(t *testing.T) {
	b := newBench(t)
	b.add(1, nil)
	var want []string
	for i, c := range []struct {
		ip       string
		complete bool
		told     bool
	}{
		{"203.0.113.9", true, false},
		{"203.0.113.200", true, false}, // the same /24
		{"198.51.100.1", true, true},
		{"198.51.100.77", true, false},
		{"192.0.2.1", false, false},
		{"192.0.2.1", true, true},
		{"2001:db8:1:1::1", true, true},
		{"2001:db8:1:ffff::2", true, false}, // the same /48
		{"2001:db8:2::1", true, true},
		{"::ffff:203.0.113.1", true, false},
	} {
		r := request(1, secret)
		r.Origin, r.Starter.IP = client.From(netip.MustParseAddr(c.ip)), c.ip
		started := storetest.Value(b.svc.Login(t.Context(), r))(t)
		if !c.complete {
			continue
		}
		started.Challenge.Starter.IP = c.ip
		b.complete(started, b.starts[i].Command)
		if c.told {
			want = append(want, "user1@example.com new-network "+c.ip)
			slices.Sort(want)
		}
		if got := challengetest.Committed(t, delivery.NewOutbox(b.db)); !slices.Equal(got, want) {
			t.Fatalf("after %s: told %q, want %q", c.ip, got, want)
		}
	}
}

package registration_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/registration"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

// bounded is a platform whose networks may start three sign-ups an hour, and phone numbers and mail addresses two.
func bounded(t *testing.T) (*platform, *persistence.DB) {
	t.Helper()
	p, db := newPlatform(t), persistencetest.SQLite(t)
	guards := func(n int) *password.Guards {
		return password.NewGuards(account.NewPasswordGuards(db), db, password.Limit(n, time.Hour), p.Now)
	}
	p.Starts = &registration.Bounds{Networks: guards(3), Phones: guards(2), Mails: guards(2)}
	return p, db
}

// tries starts a sign-up of a phone number and a mail address from an address.
func tries(t *testing.T, p *platform, phone, mail, ip string) error {
	t.Helper()
	_, err := p.SignUps.Start(t.Context(), signUp(func(r *registration.SignUp) { r.Phone, r.Email = phone, mail }),
		challenge.Starter{IP: ip})
	return err
}

// crowd takes all places in the queue of hashes while a sign-up is read.
type crowd struct {
	*platform
	places []*password.Place
}

func (c *crowd) Subject(ctx context.Context, text string) (string, []string, error) {
	for {
		place, err := c.Hasher.Admit(password.Caller{Site: text})
		if err != nil {
			return c.platform.Subject(ctx, text)
		}
		c.places = append(c.places, place)
	}
}

// A start whose password was not hashed is counted for nothing.
func TestUnhashedStartIsNotCounted(t *testing.T) {
	p, _ := bounded(t)
	c := &crowd{platform: p}
	p.Engine = c
	for range 4 {
		storetest.Wants(t, tries(t, p, "5320000001", "a@example.com", "203.0.113.1"), fault.Overloaded)
		for _, place := range c.places {
			place.Leave()
		}
		c.places = nil
	}
	p.Engine = p
	storetest.Must(t, tries(t, p, "5320000001", "a@example.com", "203.0.113.1"))
	if len(p.started) != 1 {
		t.Errorf("%d started", len(p.started))
	}
}

// The key by which callers share places in the queue is that of their network, or as configured.
func TestPlaceOfSignUps(t *testing.T) {
	p := newPlatform(t)
	var asked []netip.Addr
	p.Place = func(from client.Origin) string { asked = append(asked, from.Addr); return "here" }
	storetest.Must(t, start(t, p))
	storetest.Same(t, asked, []netip.Addr{netip.MustParseAddr(from.IP)})
}

// rotated is an engine whose key was replaced.
type rotated struct{ *platform }

func (rotated) Subject(_ context.Context, text string) (string, []string, error) {
	return "?new/" + text, []string{"?" + text}, nil
}

// The starts under a replaced key still count.
func TestStartsOutliveAReplacedKey(t *testing.T) {
	p, _ := bounded(t)
	storetest.Must(t, tries(t, p, "5320000001", "a@example.com", "203.0.113.1"))
	storetest.Must(t, tries(t, p, "5320000001", "b@example.com", "203.0.113.2"))
	p.Engine = rotated{p}
	storetest.Wants(t, tries(t, p, "5320000001", "c@example.com", "203.0.113.3"), fault.RateLimited)
	storetest.Must(t, tries(t, p, "5320000002", "a@example.com", "203.0.113.3"))
}

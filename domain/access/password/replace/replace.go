// Package replace gives an account another password. A user who forgot it proves
// phone and mail first (section 4.3 of the interface). A user who is logged in
// proves the old one and a second factor (decisions D-PWD-01…07, D-AUTH-10,
// D-AUTH-11).
//
// The one idea: the starter of a reset learns nothing. A phone that belongs to
// nobody takes the same steps as one that belongs to a user and gets a decoy, a
// challenge that no value completes. From there on nothing differs.
//
// Start reading at Service, then reset.go and change.go.
package replace

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/password"
	"castellan/domain/access/session"
	"castellan/domain/access/user"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/token"
)

// The codes of the actions, and the audit's name for the use of an ot-auth.
const (
	ActionReset  = "RESET_PASSWORD"
	ActionChange = "UPDATE_PASSWORD"
	ActionSet    = "PASSWORD_SET"
)

// Signer signs tokens.
type Signer interface {
	Sign(c token.Claims) (string, error)
}

// Engine is what the flows need of the challenge engine.
type Engine interface {
	challenge.Starts
	challenge.Notices
	// Subject is the subject of the decoy for a phone that nobody has, and those that
	// it had while their key was another one.
	Subject(ctx context.Context, phone string) (subject string, former []string, err error)
}

// Service changes passwords. All fields are needed but Networks, Phones, Admits
// and Place.
type Service struct {
	Users    user.Store
	Sessions session.Store
	Tokens   Store
	Signer   Signer
	Engine   Engine
	Hasher   *password.Hasher
	Policy   password.Policy
	// Networks and Phones bound the starts of the reset (D-GEN-14); nil: without
	// bound.
	Networks, Phones *password.Guards
	// Wrong counts wrong old passwords of logged-in users; see WrongRules.
	Wrong *password.Guards
	// Commit must tell this node's revocations of the sessions that it ends
	// (session.Revoking).
	Commit commit.Committer
	Ring   *keyring.Ring
	// Admits reports whether an account may be used from where the starter is
	// (D-GEO-02); nil admits everybody. It answers from memory.
	Admits func(u user.User, from challenge.Starter) bool
	// Place names what shares places in the queue of hashes; nil: client.Site.
	Place    func(netip.Addr) string
	Dev      bool          // accounts seeded for development may be used
	TokenTTL time.Duration // of ot-auth
	Now      func() time.Time
}

// WrongRules let a logged-in user be wrong about the old password five times
// in 15 minutes (D-PWD-06).
func WrongRules() password.GuardRules { return password.Limit(5, 15*time.Minute) }

// usable reports whether an account may get a new password without logging in.
func (s *Service) usable(u user.User, from challenge.Starter) bool {
	return u.Active() && (s.Dev || !u.Demo) && (s.Admits == nil || s.Admits(u, from))
}

// check judges a new password by everything but history.
func (s *Service) check(u user.User, secret, verify string) error {
	if secret != verify {
		return fault.Invalid("passwordVerify", "is not the same as password")
	}
	return s.Policy.Check(secret, password.Personal{Phone: u.Phone, DialCode: u.CountryCode, Mail: u.Email})
}

// fresh refuses a password that is one of the stored ones: the active one and
// the one before it, nothing older (D-PWD-03). It hashes, so it is called
// outside of any transaction.
func fresh(ctx context.Context, place *password.Place, secret string, stored ...string) error {
	for _, phc := range stored {
		if phc == "" {
			continue
		}
		same, _, err := place.Verify(ctx, secret, phc)
		if err != nil {
			return err
		}
		if same {
			return fault.New(fault.PasswordReused, "the password must differ from the last two")
		}
	}
	return nil
}

// told is the notice that the password was changed.
func (s *Service) told(u user.User, ip string) []commit.Write {
	return s.Engine.Notice(u.Account(), message.PasswordChanged, nil, ip)
}

func record(at time.Time, userID, action string, o audit.Outcome, from challenge.Starter, detail string) audit.Record {
	r := audit.Record{At: at, UserID: userID, Action: action, Target: userID, Outcome: o, IP: from.IP,
		RequestID: from.RequestID, Detail: detail}
	if from.SessionID != "" {
		r.ActorID = userID
	}
	return r
}

// caller takes a place in the queue of hashes for who has a session or an ot-auth.
func (s *Service) caller(from challenge.Starter) password.Caller {
	a, _ := netip.ParseAddr(from.IP)
	if s.Place != nil {
		return password.Caller{Site: s.Place(a), Known: true}
	}
	return password.Caller{Site: client.Site(a), Known: true}
}

func prefix(ip string) string {
	a, _ := netip.ParseAddr(ip) // what is no address has the prefix ""
	return client.Prefix(a)
}

// maxFenced bounds how often a decision is made again because the account was
// changed meanwhile.
const maxFenced = 5

// again repeats a decision until nothing it was made on has moved.
func again(decide func() error) error {
	for range maxFenced {
		if err := decide(); !errors.Is(err, commit.ErrFenced) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the account is busy; try again").After(time.Second)
}

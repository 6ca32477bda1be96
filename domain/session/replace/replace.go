// Package replace changes the password of an account. A user who forgot it first proves phone and mail (section 4.3
// of the interface). A logged-in user proves the old password and a second factor (decisions D-PWD-01…07, D-AUTH-10,
// D-AUTH-11).
//
// The one idea: the starter of a reset learns nothing. A phone without an account takes the same steps as one with an
// account, and gets a decoy: a challenge that no value completes. After that nothing differs.
//
// Start reading at Service, then reset.go and change.go.
package replace

import (
	"context"
	"net/netip"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/session/session"
)

// The codes of the actions, and the audit's name for the use of an ot-auth token.
const (
	ActionReset  = "RESET_PASSWORD"
	ActionChange = "UPDATE_PASSWORD"
	ActionSet    = "PASSWORD_SET"
)

// Engine is the part of the challenge engine that the flows use.
type Engine interface {
	challenge.Starts
	challenge.Notices
	// Subject returns the subject of the decoy for a phone without an account, and its subjects under former keys.
	Subject(ctx context.Context, phone string) (subject string, former []string, err error)
}

// Service changes passwords. All fields are required except Networks and Phones.
type Service struct {
	Users    user.Store
	Sessions session.Store
	Tokens   Store
	Signer   session.Signer
	Engine   Engine
	Hasher   *password.Hasher
	Policy   password.Policy
	// Networks and Phones bound the starts of the reset (D-GEN-14); nil means no bound.
	Networks, Phones *password.Guards
	// Wrong counts wrong old passwords of logged-in users; see WrongRules.
	Wrong *password.Guards
	// Commit must report the sessions that it ends to the revocations of this node (session.Revoking).
	Commit commit.Committer
	Ring   *keyring.Ring
	// Admits reports whether an account may be used from the starter's location (D-GEO-02). It answers from memory.
	Admits func(u user.User, from challenge.Starter) bool
	// Place names the unit that shares places in the queue of hashes (password.Caller.Site).
	Place    func(client.Origin) string
	Dev      bool          // accounts seeded for development may be used
	TokenTTL time.Duration // of ot-auth
	Now      func() time.Time
}

// WrongRules allow a logged-in user five wrong old passwords in 15 minutes (D-PWD-06).
func WrongRules() password.GuardRules { return password.Limit(5, 15*time.Minute) }

// usable reports whether an account may get a new password without a login.
func (s *Service) usable(u user.User, from challenge.Starter) bool {
	return u.Active() && (s.Dev || !u.Demo) && s.Admits(u, from)
}

// check validates a new password against everything except the history.
func (s *Service) check(u user.User, secret, verify string) error {
	if secret != verify {
		return fault.Invalid("passwordVerify", "must be the same as password")
	}
	return s.Policy.Check(secret, password.Personal{Phone: u.Phone, DialCode: u.CountryCode, Mail: u.Email})
}

// fresh refuses a password that equals one of the stored ones: the active one and the one before it (D-PWD-03). It
// hashes, so it is called outside any transaction.
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

// secret reads the stored hashes of an account. A hash of another service is wrapped before it can become the previous
// one, so that none stays in the database after the password has changed (D-AUTH-19).
func (s *Service) secret(ctx context.Context, place *password.Place, userID string) (user.Secret, error) {
	stored, err := s.Users.Secret(ctx, userID)
	if err != nil || !password.Imported(stored.Hash) {
		return stored, err
	}
	wrapped, err := place.Wrap(ctx, stored.Hash)
	if err != nil || wrapped == stored.Hash {
		return stored, err
	}
	err = s.Commit.Commit(ctx, user.Rehash{UserID: userID, Old: stored.Hash, New: wrapped})
	stored.Hash = wrapped
	return stored, err
}

// notice returns the writes that notify the user of the change.
func (s *Service) notice(u user.User, ip string) []commit.Write {
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

// caller describes a caller with a session or an ot-auth token to the queue of hashes.
func (s *Service) caller(from challenge.Starter) password.Caller {
	a, _ := netip.ParseAddr(from.IP)
	return password.Caller{Site: s.Place(client.From(a)), Known: true}
}

// maxFenced bounds how often a decision is repeated because the account changed meanwhile.
const maxFenced = 5

// Token is the stored form of an ot-auth token that may still be used: the keyed hash of its jti and its user. A user
// has at most one.
type Token struct {
	ID        string // keyed hash of the jti
	UserID    string
	CV        int64 // credential version of the user when it was made
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Issue stores a token; it replaces the user's earlier one.
type Issue struct{ Token }

func (Issue) Table() string { return "reset_token" }
func (w Issue) Row() string { return w.UserID }

// Redeem uses up a user's token. It is a fence: the stored token must still have this id, and is deleted.
type Redeem struct{ UserID, ID string }

func (Redeem) Table() string            { return "reset_token" }
func (w Redeem) Fence() (string, int64) { return w.UserID, 1 }

// Store reads tokens. Writes go through commit.Committer as the values above.
// It is safe for concurrent use.
type Store interface {
	// Token reads a token by its id; RECORD_NOT_FOUND when it was used, was replaced or never existed.
	Token(ctx context.Context, id string) (Token, error)
	// Purge removes tokens that expired before an instant.
	Purge(ctx context.Context, expired time.Time) error
}

// Package bootstrap makes the first administrator of an installation by a setup link (decision D-EXT-20).
//
// The one idea: the link is a random token that only an operator with access to the database can create. A database has
// one link; it is stored as a keyed hash. The page of the link begins with the details of the account and gets back a
// sealed ticket. The ticket returns with the proof of a factor, so nothing is stored between the two steps.
//
// Start reading at Service.Create, then begin.go for the steps of the page.
package bootstrap

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
	"castellan/domain/kit/keyring"
)

// The audit names of this package.
const (
	ActionLink  = "SETUP_LINK"
	ActionAdmin = "SETUP_ADMINISTRATOR"
)

// Life is how long a link is valid after its creation.
const Life = 30 * time.Minute

// The domains of the hashes.
const (
	tokenDomain  = "setup link"
	ticketDomain = "setup ticket"
)

// Link is the setup link of a database, which has at most one.
type Link struct {
	Sum       keyring.Sum // of the token
	CreatedAt time.Time
	ExpiresAt time.Time
	// Spent is the hash of the ticket that has made the administrator; zero: the link is unused.
	Spent keyring.Sum
	// UserID is the administrator; "" while the link is unused.
	UserID string
}

// Store keeps the link. It is safe for concurrent use.
type Store interface {
	// Lock begins a transaction that decides on the link or adds an administrator: such transactions run one after
	// another.
	Lock(ctx context.Context) error
	// Get reads the link; RECORD_NOT_FOUND if there is none.
	Get(ctx context.Context) (Link, error)
	// Put replaces the link.
	Put(ctx context.Context, l Link) error
}

// Service makes and uses the link. Create needs Store, Users, Ring, Changes and Now only; the others are required for
// the steps of the page.
type Service struct {
	Store   Store
	Users   user.Store
	Ring    *keyring.Ring
	Changes admin.Changes // of change.Users, with the lock of Store
	Hasher  *password.Hasher
	Policy  password.Policy
	Party   passkey.Party
	Issuer  string           // shown by an authenticator app next to the account
	Tries   *password.Guards // requests of a network
	Log     *slog.Logger
	Now     func() time.Time
}

// Exists reports whether the installation has an administrator.
func Exists(ctx context.Context, users user.Store) (bool, error) {
	holders, err := users.Holders(ctx)
	return len(holders[user.RoleAdmin]) > 0, err
}

// Create replaces the link and returns its token.
//
// Errors: INVALID_STATE if an administrator exists.
func (s *Service) Create(ctx context.Context, by audit.By) (token string, l Link, err error) {
	token = rand.Text()
	err = s.Changes.Do(ctx, by, ActionLink, func(ctx context.Context) (done admin.Done, err error) {
		exists, err := Exists(ctx, s.Users)
		if err != nil {
			return done, err
		}
		if exists {
			return done, fault.New(fault.InvalidState, "an administrator exists")
		}
		now := s.Now()
		l = Link{Sum: s.Ring.Hash(tokenDomain, token), CreatedAt: now, ExpiresAt: now.Add(Life)}
		return admin.Done{Target: "setup-link", Detail: "valid until " + l.ExpiresAt.UTC().Format(time.RFC3339)},
			s.Store.Put(ctx, l)
	})
	return token, l, err
}

// invalid is the one answer to a token of no valid link, whatever the reason.
func invalid() error {
	return fault.New(fault.NotFound,
		"the setup link is not valid: it has expired, was replaced or used, or an administrator exists")
}

// valid reads the link of a token. A used link is valid for the ticket that used it, so that a lost answer can be
// repeated; ticket is "" if there is none.
func (s *Service) valid(ctx context.Context, token, ticket string) (l Link, err error) {
	if l, err = s.Store.Get(ctx); err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return l, err
	}
	// An absent link is compared like any other: it has no key, and no token matches it.
	if ok := s.Ring.Matches(l.Sum, tokenDomain, token); err != nil || !ok || !s.Now().Before(l.ExpiresAt) {
		return l, invalid()
	}
	if l.UserID != "" {
		if ticket == "" || !s.Ring.Matches(l.Spent, ticketDomain, ticket) {
			return l, invalid()
		}
		return l, nil
	}
	if exists, err := Exists(ctx, s.Users); err != nil {
		return l, err
	} else if exists {
		return l, invalid()
	}
	return l, nil
}

// seal and open convert the state of the page to a ticket of one link, and back.
func (s *Service) seal(l Link, d draft) (string, error) {
	text, err := json.Marshal(d)
	return jose.Encode(s.Ring.Seal(text, l.data())), err
}

func (s *Service) open(l Link, ticket string) (d draft, ok bool) {
	sealed, _ := jose.Decode(ticket) // nothing opens
	text, err := s.Ring.Open(sealed, l.data())
	return d, err == nil && json.Unmarshal(text, &d) == nil
}

// data is the associated data of the tickets of a link.
func (l Link) data() []byte { return append([]byte("setup/"), l.Sum.Sum...) }

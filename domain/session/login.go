package session

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"castellan/domain/audit"
	"castellan/domain/challenge"
	"castellan/domain/client"
	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/id"
	"castellan/domain/pack"
	"castellan/domain/password"
	"castellan/domain/token"
	"castellan/domain/user"
)

// ActionLogin is the code of the action that makes a session, and the name of
// a login in the audit.
const ActionLogin = "LOGIN"

// Signer signs tokens.
type Signer interface {
	Sign(c token.Claims) (string, error)
}

// Service logs people in and out. All fields are needed but Admits.
type Service struct {
	Users       user.Store
	Sessions    Store
	Hasher      *password.Hasher
	Guards      *password.Guards
	Starts      challenge.Starts
	Commit      commit.Committer
	Tokens      Signer
	Revocations *Revocations
	// Conceal is the keyed hash, as text, under which tries for an identifier
	// that nobody has are counted (D-GEN-14).
	Conceal func(identifier string) string
	// Admits tells whether the account may be used from where the starter is
	// (D-GEO-02); nil admits everybody. It is asked when the password was
	// judged and answers from memory, so that a refusal takes as long as any.
	Admits   func(u user.User, from challenge.Starter) bool
	Dev      bool // accounts seeded for development may log in
	TokenTTL time.Duration
	Now      func() time.Time
}

// LoginRequest is somebody who says who he is: by CountryCode and Phone, or by
// Email.
type LoginRequest struct {
	CountryCode string
	Phone       string
	Email       string
	Password    string
	DeviceID    string
	IP          netip.Addr
	Starter     challenge.Starter
}

func (r LoginRequest) identifier() (who user.Identifier, err error) {
	switch {
	case r.Email != "" && (r.Phone != "" || r.CountryCode != ""):
		return who, fault.Invalid("email", "give either a phone number or a mail address")
	case r.Email != "":
		who.Mail, err = user.CanonicalMail(r.Email)
	default:
		who.Phone, err = user.Canonical(r.CountryCode, r.Phone)
	}
	return who, err
}

// command is what a login keeps until the second factor is complete.
type command struct {
	Roles    []string
	DeviceID string
}

func (c command) pack() []byte { return pack.String(pack.Strings(nil, c.Roles), c.DeviceID) }

func unpack(data []byte) (c command, err error) {
	in := pack.Read(string(data))
	c.Roles, c.DeviceID = in.Strings(), in.String()
	return c, in.Err()
}

// Login checks a password and starts the challenge that makes the session. A
// place in the queue of hashes comes first, then the count of the try, then
// the hash; an unknown identifier, a wrong password, an account that may not
// log in and a country it may not log in from take the same steps, cost the
// same statements and get the same answer.
//
// Errors: INVALID_FIELD, INVALID_CREDENTIALS, RATE_LIMITED after too many
// wrong passwords, OVERLOADED, those of challenge.Starts, UNAVAILABLE.
func (s *Service) Login(ctx context.Context, r LoginRequest) (challenge.Started, error) {
	var none challenge.Started
	r.Starter = Clip(r.Starter)
	who, err := r.identifier()
	if err != nil {
		return none, err
	}
	place, err := s.Hasher.Admit()
	if err != nil {
		return none, err
	}
	defer place.Leave()
	seen, err := s.Users.Login(ctx, who, "?"+s.Conceal(who.String()))
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return none, err
	}
	u, secret, account := seen.User, seen.Secret, seen.Guard.Key
	attempt, err := s.Guards.ChargeSeen(ctx, seen.Guard, client.Prefix(r.IP))
	if err != nil {
		return none, err
	}
	defer attempt.Wrong()
	right, stale, err := place.Verify(ctx, r.Password, secret.Hash)
	if err != nil { // not judged, so not wrong
		return none, errors.Join(err, attempt.Return(context.WithoutCancel(ctx)))
	}
	if !right || !s.mayLogIn(u, r.Starter) {
		attempt.Wrong()
		return none, s.refuse(ctx, u.ID, account, r.Starter)
	}
	b := beginning{s: s, r: r, who: who, u: u, secret: secret}
	if stale { // without a new hash the old one serves another day
		b.rehashed, _ = place.Hash(ctx, r.Password)
	}
	place.Leave()
	if err := attempt.Refund(ctx, b.save); err != nil {
		return none, err
	}
	return b.started, b.refused
}

func (s *Service) mayLogIn(u user.User, from challenge.Starter) bool {
	return u.Active() && (s.Dev || !u.Demo) && (s.Admits == nil || s.Admits(u, from))
}

// refuse writes a refused try down and returns the one answer to all of them.
func (s *Service) refuse(ctx context.Context, userID, account string, from challenge.Starter) error {
	now := s.Now()
	err := s.Commit.Commit(ctx,
		audit.Record{At: now, UserID: userID, Action: ActionLogin, Target: account, Outcome: audit.Refused, IP: from.IP, RequestID: from.RequestID,
			Detail: "identifier or password refused"},
		Remember{history(userID, now, from, false)})
	if err != nil {
		return err
	}
	return wrongCredentials()
}

func wrongCredentials() error {
	return fault.New(fault.InvalidCredentials, "the identifier or the password is wrong")
}

func history(userID string, at time.Time, from challenge.Starter, success bool) Login {
	return Login{ID: id.New(at), UserID: userID, At: at, IP: from.IP, Country: from.Country, Brand: from.Brand, Model: from.Model,
		Description: from.Description, Success: success}
}

// beginning is a login whose password was right.
type beginning struct {
	s        *Service
	r        LoginRequest
	who      user.Identifier
	u        user.User
	secret   user.Secret
	rehashed string
	calls    int
	started  challenge.Started
	refused  error // why there is no challenge although the password was right
}

// save starts the challenge in one unit with the refund of the try. It is
// called again when the guard or the account moved on meanwhile.
func (b *beginning) save(ctx context.Context, refund commit.Write) error {
	if b.calls++; b.calls > 1 && b.refused == nil {
		now, err := b.s.Users.Login(ctx, b.who, "")
		u, secret := now.User, now.Secret
		if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
			return err
		}
		if err != nil || secret.Hash != b.secret.Hash || !b.s.mayLogIn(u, b.r.Starter) {
			return wrongCredentials() // it was right a moment ago
		}
		b.u = u
	}
	if b.refused == nil {
		err := b.start(ctx, refund)
		if err == nil || errors.Is(err, commit.ErrFenced) {
			return err
		}
		b.refused = err
	}
	return b.s.Commit.Commit(context.WithoutCancel(ctx), refund)
}

func (b *beginning) start(ctx context.Context, refund commit.Write) (err error) {
	cmd := command{Roles: b.u.AllRoles(), DeviceID: b.r.DeviceID}
	with := []commit.Write{refund}
	if b.rehashed != "" {
		with = append(with, user.Rehash{UserID: b.u.ID, Old: b.secret.Hash, New: b.rehashed})
	}
	b.started, err = b.s.Starts.Start(ctx, challenge.StartRequest{Action: ActionLogin, Account: b.u.Account(), Starter: b.r.Starter, Proven: true,
		Command: cmd.pack(), With: with})
	return err
}

// maxClaim bounds what a client says of its device, in bytes: it is kept in
// several rows.
const maxClaim = 200

// Clip cuts what a client says of its device to what is kept.
func Clip(from challenge.Starter) challenge.Starter {
	for _, s := range []*string{&from.Brand, &from.Model, &from.Description} {
		if len(*s) > maxClaim {
			*s = strings.ToValidUTF8((*s)[:maxClaim], "")
		}
	}
	return from
}

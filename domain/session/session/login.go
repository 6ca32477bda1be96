package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/pack"
	"castellan/domain/kit/token"
	"castellan/domain/proof/dpop"
)

// ActionLogin is the code of the action that creates a session, and the name of a login in the audit.
const ActionLogin = "LOGIN"

// Signer signs tokens.
type Signer interface {
	Sign(c token.Claims) (string, error)
}

// Service logs users in and out. All fields are required.
type Service struct {
	Users       user.Store
	Sessions    Store
	Hasher      *password.Hasher
	Guards      *password.Guards
	Spray       *password.Spray
	Starts      challenge.Starts
	Commit      commit.Committer
	Tokens      Signer
	Notices     challenge.Notices
	Revocations *Revocations
	// Conceal returns the keyed hash, as text, that counts tries for an unknown identifier (D-GEN-14).
	Conceal func(identifier string) string
	// Former returns the hashes of Conceal under replaced keys.
	Former func(identifier string) []string
	// Admits reports whether the account may be used from the starter's location (D-GEO-02). It is called after the
	// password was judged and answers from memory, so a refusal takes as long as any other.
	Admits func(u user.User, from challenge.Starter) bool
	// Place names the unit that shares places in the queue of hashes (password.Caller.Site).
	Place    func(client.Origin) string
	Dev      bool // accounts seeded for development may log in
	TokenTTL time.Duration
	Now      func() time.Time
	// Passkeys and Concludes are for logins by a passkey.
	Passkeys  Passkeys
	Concludes Concludes
	// SessionTTL is how long after its login a session can get new tokens (RenewBound).
	SessionTTL time.Duration
	// Idle is how long after its last use a session with a key can be renewed.
	Idle   time.Duration
	Proofs *dpop.Verifier // verifies proofs of session keys
}

// former returns the earlier keys of an identifier's tries. They are read for known identifiers too, so that the
// statements are the same.
func (s *Service) former(identifier string) (keys []string) {
	for _, hash := range s.Former(identifier) {
		keys = append(keys, "?"+hash)
	}
	return keys
}

// LoginRequest is one attempt to log in. The identifier is canonical (user.Identify).
type LoginRequest struct {
	Who      user.Identifier
	Password string
	DeviceID string
	Origin   client.Origin
	Starter  challenge.Starter
	// Proof binds the session to a key; a zero one binds it to none.
	Proof dpop.Request
}

// command is the state of a login until the second factor is complete.
type command struct {
	Roles    []string
	DeviceID string
	// Network is the mark of the network if the account has never logged in from it. NotifyOwner means that the owner is
	// notified, which does not happen at the first login of an account.
	Network     string
	NotifyOwner bool
	// Day is the day of the account's previous login (user.LoginDay).
	Day int64
	// Thumbprint names the key to which the session will be bound; "" for none.
	Thumbprint string
}

func (c command) pack() []byte {
	b := pack.String(pack.Strings(nil, c.Roles), c.DeviceID)
	b = pack.Int(pack.Bool(pack.String(b, c.Network), c.NotifyOwner), c.Day)
	if c.Thumbprint != "" {
		b = pack.String(b, c.Thumbprint)
	}
	return b
}

func unpack(data []byte) (c command, err error) {
	in := pack.Read(string(data))
	c.Roles, c.DeviceID = in.Strings(), in.String()
	c.Network, c.NotifyOwner, c.Day = in.String(), in.Bool(), in.Int()
	if in.More() {
		c.Thumbprint = in.String()
	}
	return c, in.Err()
}

// Login checks a password and starts the challenge that creates the session. It first checks that the queue of hashes
// has a place. Then it counts the try, takes the place, and hashes. While the try waits for others of its account, it
// has no place.
//
// All refusals take the same steps, wait for the disk alike and get the same answer. The reasons are an unknown
// identifier, a wrong password, an account that may not log in or must first get another password (D-COR-03), and a
// blocked country.
//
// A proof of a key is verified first. It is used up in the unit of the challenge, so a stranger without a password
// leaves no row for it.
//
// Errors: INVALID_CREDENTIALS, DPOP_INVALID, RATE_LIMITED after too many wrong passwords, OVERLOADED, those of
// challenge.Starts, UNAVAILABLE.
func (s *Service) Login(ctx context.Context, r LoginRequest) (challenge.Started, error) {
	var none challenge.Started
	key, used, err := s.keyOf(r.Proof)
	if err != nil {
		return none, err
	}
	r.Starter = Clip(r.Starter)
	from := password.Caller{Site: s.Place(r.Origin), Since: time.Now()}
	if err := s.Hasher.Full(from.Site); err != nil {
		return none, err
	}
	seen, err := s.Users.Login(ctx, r.Who, "?"+s.Conceal(r.Who.String()))
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return none, err
	}
	if err := s.Spray.Judge(seen.Guard, s.Guards.Rules(), r.Origin); err != nil {
		return none, err
	}
	var place *password.Place
	attempt, err := s.Guards.ChargeSeen(ctx, seen.Guard, r.Origin.Prefix, from.Since, func(known bool) (err error) {
		from.Known = known
		place, err = s.Hasher.Admit(from)
		return err
	}, s.former(r.Who.String())...)
	defer place.Leave()
	if err != nil {
		return none, err
	}
	defer attempt.Wrong() // unless it is refunded
	right, stale, err := place.VerifyLogin(ctx, r.Who.String(), r.Password, seen.Hash)
	if err != nil { // not judged, so not wrong
		return none, errors.Join(err, attempt.Return(context.WithoutCancel(ctx)))
	}
	reason := WrongPassword
	if right {
		reason = s.whyNot(seen.User, r.Starter)
	}
	if reason != "" {
		attempt.Wrong() // the refusal below waits for the disk; other tries need not
		place.Leave()
		s.Spray.Wrong(ctx, r.Origin)
		var attack []commit.Write
		if attempt.Closed && seen.User.ID != "" { // once a day
			attack = s.Notices.Notice(seen.User.Account(), message.UnderAttack, nil, r.Starter.IP)
		}
		return none, s.refuse(ctx, seen.User.ID, Refusal{Reason: reason, Standing: attempt.Standing()}, r.Origin.Site,
			r.Starter, "password refused", attack...)
	}
	rehashed := ""
	if stale { // on failure the old hash remains until the next login
		if rehashed, err = place.Hash(ctx, r.Password); err != nil {
			slog.Warn("a password keeps its old hash until the next login", "user", seen.User.ID, "err", err)
		}
	}
	place.Leave()
	for {
		refund, err := attempt.Refund(ctx)
		if err != nil {
			return none, err
		}
		with := append(slices.Clip(used), refund)
		if rehashed != "" {
			with = append(with, user.Rehash{UserID: seen.User.ID, Old: seen.Hash, New: rehashed})
		}
		started, err := s.start(ctx, seen.User, r.DeviceID, key.Thumbprint, r.Origin, challenge.StartRequest{
			Starter: r.Starter, With: with, Key: challenge.ClientKey{Thumbprint: key.Thumbprint, Proven: true}})
		switch {
		case err == nil:
			attempt.Refunded()
			return started, nil
		case !errors.Is(err, commit.ErrFenced): // the challenge failed, but the password was right
			return none, cmp.Or(attempt.RefundAlone(context.WithoutCancel(ctx)), err)
		}
		if seen.User, err = s.again(ctx, r, seen.Hash); err != nil {
			return none, err
		}
		if err := s.spent(ctx, key, used); err != nil {
			return none, cmp.Or(attempt.RefundAlone(context.WithoutCancel(ctx)), err)
		}
	}
}

// start starts the challenge of a login, in one unit with r.With. It notes the network if the account has never logged
// in from it.
func (s *Service) start(ctx context.Context, u user.User, deviceID, thumbprint string, from client.Origin,
	r challenge.StartRequest) (challenge.Started, error) {
	cmd := command{Roles: u.AllRoles(), DeviceID: deviceID, Day: u.LastLoginDay, Thumbprint: thumbprint}
	if from.Region != "" {
		if mark := user.Mark(u.ID, from.Region); !u.Networks.Has(mark) {
			cmd.Network, cmd.NotifyOwner = mark, u.Networks != ""
		}
	}
	r.Action, r.Account, r.Proven, r.Command = ActionLogin, u.Account(), true, cmd.pack()
	return s.Starts.Start(ctx, r)
}

// again rereads the account of a right password, because the account or its guard changed while the challenge was
// started. It refuses when the account may not log in any more or has another password.
func (s *Service) again(ctx context.Context, r LoginRequest, hash string) (user.User, error) {
	now, err := s.Users.Login(ctx, r.Who, "")
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return now.User, wrongCredentials()
	case err != nil:
		return now.User, err
	case now.Hash != hash || s.whyNot(now.User, r.Starter) != "":
		return now.User, wrongCredentials()
	}
	return now.User, nil
}

// whyNot returns the reason why an account may not log in with the right password; "" if it may.
func (s *Service) whyNot(u user.User, from challenge.Starter) Reason {
	switch {
	case !u.Active(), u.Demo && !s.Dev:
		return Inactive
	case u.MustReset:
		return MustReset
	case !s.Admits(u, from):
		return NotAdmitted
	}
	return ""
}

// refuse records a refused try and returns the one answer to all of them. If its account is not known (userID is ""),
// only a count is stored, but it is also on the disk before the answer, so the response time reveals nothing.
func (s *Service) refuse(ctx context.Context, userID string, why Refusal, site string, from challenge.Starter,
	detail string, also ...commit.Write) error {
	now := s.Now()
	writes := []commit.Write{Refused{Site: site, Minute: now.Truncate(time.Minute), Count: 1}}
	if userID != "" {
		line := Login{ID: id.New(now), UserID: userID, At: now, IP: from.IP, Country: from.Country, Brand: from.Brand,
			Model: from.Model, Description: from.Description, Refusal: why}
		writes = append([]commit.Write{
			audit.Record{At: now, UserID: userID, Action: ActionLogin, Target: userID, Outcome: audit.Refused, IP: from.IP,
				RequestID: from.RequestID, Detail: detail},
			RememberRefused{line}}, also...)
	}
	if err := s.Commit.Commit(ctx, writes...); err != nil {
		return err
	}
	return wrongCredentials()
}

func wrongCredentials() error {
	return fault.New(fault.InvalidCredentials, "the identifier or the password is wrong")
}

// maxDescription bounds the client's description of its device, in bytes, because several rows store it.
const maxDescription = 200

// Clip shortens the client's description of its device to the stored length.
func Clip(from challenge.Starter) challenge.Starter {
	for _, s := range []*string{&from.Brand, &from.Model, &from.Description} {
		if len(*s) > maxDescription {
			*s = strings.ToValidUTF8((*s)[:maxDescription], "")
		}
	}
	return from
}

const (
	// foldAfter is how long after its end a minute is folded. A refusal committed later gets its own row.
	foldAfter = 5 * time.Second
	foldBatch = 200
)

// FoldRefusals writes the audit rows of logins with unknown identifiers: one row with the number of tries for each
// site and finished minute (D-GEN-14). Each try was durable before its answer, and the row commits with the removal
// of its counts. So no try is lost or counted twice. Any node may call it at any time.
func (s *Service) FoldRefusals(ctx context.Context) error {
	for {
		taken := 0
		err := s.Commit.InTx(ctx, func(ctx context.Context) error {
			now := s.Now()
			all, err := s.Sessions.TakeRefused(ctx, now.Add(-time.Minute-foldAfter), foldBatch)
			if taken = len(all); err != nil || taken == 0 {
				return err
			}
			writes := make([]commit.Write, taken)
			for i, r := range all {
				writes[i] = audit.Record{At: now, Action: ActionLogin, Target: r.Site, Outcome: audit.Refused,
					IP: strings.TrimSuffix(r.Site, "/32"),
					Detail: fmt.Sprintf("%d refused with unknown identifiers in the minute %s", r.Count,
						r.Minute.UTC().Format("2006-01-02 15:04 UTC"))}
			}
			return s.Commit.Commit(ctx, writes...)
		})
		if err != nil || taken < foldBatch {
			return err
		}
	}
}

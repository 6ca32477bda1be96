package identity

import (
	"context"
	"errors"
	"slices"

	"castellan/domain/access/password"
	"castellan/domain/access/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/parameter"
	"castellan/domain/people/dropdown"
)

// The audit names of what is done here.
const (
	ActionConfirm = "IDENTITY_CONFIRM"
	ActionInfo    = "ADDITIONAL_INFO"
)

// Service carries out what users say of themselves. All fields are needed but Registry.
type Service struct {
	Store   Store
	Users   user.Store
	Options dropdown.Store
	Values  func() *parameter.Set
	Changes admin.Changes // of no topic
	Ring    *keyring.Ring
	// Hashes are the keyed hashes under which an identity number is counted and found;
	// it is stored under the first.
	Hashes func(number string) []string
	// Registry is asked where the request wants it; nil: there is none, which is UNAVAILABLE (D-INF-06).
	Registry Registry
	// Dev is development mode: without a Registry the check digits decide alone.
	Dev bool
	// Tries bounds how often a user may be wrong before the register, so that it cannot be asked who is who.
	Tries    *password.Guards
	Accounts int // that may be confirmed with one number
	// Renew makes a new token for a living session, in the transaction of ctx (session.Service).
	Renew func(ctx context.Context, u user.User, sessionID string) (token string, err error)
}

// Request asks to confirm who the caller is.
type Request struct {
	SessionID string
	Person    Person
	Info      Info
	Register  bool // ask the national register
}

// Confirmed is the account after a confirmation, and its new token; "": the register says that this is somebody else.
type Confirmed struct {
	Token string
	User  user.User
}

// infoField is where a request holds the additional info.
const infoField = "additionalInfo."

// Confirm confirms who the caller is. What is wrong in the request comes first; then, in the order of the interface:
// the AML status, how many accounts have the number, the check digits, the national register. Only then the profile,
// the additional info, the session's next expiry and the audit row are written, together (D-INF-06).
//
// Errors: INVALID_FIELD with every faulty field; FORBIDDEN for an account at risk; RECORD_LIMIT_REACHED where the
// number has enough accounts, also when they come at the same time; INVALID_STATE where an administrator confirmed
// another person; RATE_LIMITED; UNAVAILABLE where the register cannot be asked or there is none; TOKEN_REVOKED
// where the session has ended.
func (s *Service) Confirm(ctx context.Context, by audit.By, r Request) (c Confirmed, err error) {
	p, problems := r.Person.read(s.Changes.Now())
	info, more, err := s.judge(ctx, r.Info, infoField)
	if err == nil {
		err = fault.All(append(problems, more...))
	}
	if err != nil {
		return c, err
	}
	u, err := s.Users.Get(ctx, by.UserID)
	if err != nil {
		return c, err
	}
	hashes := s.Hashes(string(p.Number))
	hash := hashes[0]
	if err := s.allowed(ctx, u, p, hashes); err != nil {
		return c, err
	}
	if !p.Number.checks() {
		return c, fault.Invalid("userIdentityNumber", "is no identity number")
	}
	if known, err := s.known(ctx, by, p, r.Register); err != nil || !known {
		return c, err
	}
	info.UserID = u.ID
	err = s.Changes.Do(ctx, by, ActionConfirm, func(ctx context.Context) (done admin.Done, err error) {
		if err := s.Store.Lock(ctx, hash); err != nil {
			return done, err
		}
		if c.User, err = s.Users.Hold(ctx, u.ID); err == nil {
			err = s.allowed(ctx, c.User, p, hashes) // still
		}
		if err == nil {
			p.Registered = r.Register && s.Registry != nil
			err = s.Store.Keep(ctx, u.ID, p, s.Ring.Seal([]byte(p.Number), sealedFor(u.ID)))
		}
		if err == nil {
			_, err = s.Store.Inform(ctx, info)
		}
		if err != nil {
			return done, err
		}
		c.User.Name, c.User.Surname, c.User.BirthDate, c.User.IdentityHash = p.GivenNames(), p.Surname, p.BirthDate, hash
		if c.Token, err = s.Renew(ctx, c.User, r.SessionID); err != nil {
			return done, err
		}
		return admin.Done{Target: u.ID, UserID: u.ID, Detail: s.how(r), Writes: []commit.Write{user.SetPerson{UserID: u.ID,
			Name: c.User.Name, Surname: p.Surname, IdentityHash: hash, BirthDate: p.BirthDate}}}, nil
	})
	if err != nil {
		return Confirmed{}, err
	}
	return c, nil
}

func (s *Service) how(r Request) string {
	if r.Register && s.Registry != nil {
		return "by the national register"
	}
	return "by the check digits"
}

// sealedFor binds a sealed number to its user.
func sealedFor(userID string) []byte { return []byte("identity/" + userID) }

// allowed judges an account before its person: by its AML status, by how many accounts have the number, and by what an
// administrator decided already.
func (s *Service) allowed(ctx context.Context, u user.User, p Person, hashes []string) error {
	ignored := parameter.AMLControl.In(s.Values()).IgnoredUsers
	if u.AMLStatus != user.NotRisky && !slices.Contains(ignored, u.ID) {
		return fault.New(fault.Forbidden, "the account is being checked")
	}
	n, err := s.Store.Others(ctx, u.ID, hashes...)
	if err != nil {
		return err
	}
	if n >= s.Accounts {
		return fault.New(fault.RecordLimitReached, "the identity number has all the accounts that it may have")
	}
	same := slices.Contains(hashes, u.IdentityHash) && u.BirthDate == p.BirthDate &&
		user.FoldName(u.FullName()) == user.FoldName(p.GivenNames()+" "+p.Surname)
	if u.KYCApproved() && u.IdentityHash != "" && !same {
		return fault.New(fault.InvalidState, "the identity of the account was confirmed as another one")
	}
	return nil
}

// known asks the national register. What it denies is counted per user, and is in the audit.
func (s *Service) known(ctx context.Context, by audit.By, p Person, ask bool) (bool, error) {
	if !ask || s.Registry == nil && s.Dev {
		return true, nil
	}
	if s.Registry == nil {
		return false, fault.New(fault.Unavailable, "there is no national register to ask")
	}
	try, err := s.Tries.Charge(ctx, "identity/"+by.UserID, "")
	if err != nil {
		return false, err
	}
	defer try.Wrong()
	known, err := s.Registry.Verify(ctx, p)
	if known || err != nil { // right, or not judged
		return known, errors.Join(err, try.Return(context.WithoutCancel(ctx)))
	}
	return false, s.Changes.Commit.Commit(ctx, by.Did(audit.Record{At: s.Changes.Now(), UserID: by.UserID,
		Action: ActionConfirm, Target: by.UserID, Outcome: audit.Refused, Detail: "denied by the national register"}))
}

// NumberOf is the identity number of a user, for their own eyes; "" where it is not known.
func (s *Service) NumberOf(ctx context.Context, userID string) (string, error) {
	sealed, err := s.Store.Sealed(ctx, userID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	number, err := s.Ring.Open(sealed, sealedFor(userID))
	return string(number), err
}

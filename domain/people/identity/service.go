package identity

import (
	"context"
	"errors"
	"slices"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/parameter"
	"castellan/domain/people/dropdown"
	"castellan/domain/session/session"
)

// The audit names of this package.
const (
	ActionConfirm = "IDENTITY_CONFIRM"
	ActionInfo    = "ADDITIONAL_INFO"
)

// Service confirms identities and stores statements of users. All fields except Registry are required.
type Service struct {
	Store   Store
	Users   user.Store
	Options dropdown.Store
	Values  func() *parameter.Set
	Changes admin.Changes // without a topic
	Ring    *keyring.Ring
	// Hashes returns the keyed hashes under which an identity number is counted and found; it is stored under the
	// first.
	Hashes func(number string) []string
	// Registry is called if the request calls for it; nil: there is none, and then the error is UNAVAILABLE (D-INF-06).
	Registry Registry
	// Dev is development mode: without a Registry only the check digits decide.
	Dev bool
	// Tries limits the failures of a user at the register, so that it cannot be used to look up persons.
	Tries    *password.Guards
	Accounts int // maximum confirmed accounts per number
	// Refresh makes a new token for a live session, in the transaction of ctx (session.Service).
	Refresh func(ctx context.Context, u user.User, sent session.Presented) (token string, err error)
}

// Request asks for the confirmation of the caller's identity.
type Request struct {
	Session  session.Presented
	Person   Person
	Info     Info
	Register bool // call the national register
}

// Confirmed is the account after a confirmation, and its new token; "": the register reports another person.
type Confirmed struct {
	Token string
	User  user.User
}

// infoField is the request field of the additional info.
const infoField = "additionalInfo."

// Confirm confirms the caller's identity. Invalid fields are reported first. The next checks, in the order of the
// interface, are the AML status, the number of accounts with the identity number, the check digits, and the national
// register. Only then the profile, the additional info and the audit row are written, together (D-INF-06).
//
// Errors: INVALID_FIELD with every invalid field; FORBIDDEN for an account at risk; RECORD_LIMIT_REACHED if the number
// has the maximum of accounts, also under concurrent calls; INVALID_STATE if an administrator confirmed another person;
// RATE_LIMITED; UNAVAILABLE if the register cannot be reached or there is none; TOKEN_REVOKED if the session has ended.
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
		return c, fault.Invalid("userIdentityNumber", "is not a valid identity number")
	}
	if known, err := s.matchesRegister(ctx, by, p, r.Register); err != nil || !known {
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
		if c.Token, err = s.Refresh(ctx, c.User, r.Session); err != nil {
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

// sealedFor returns the associated data that bind a sealed number to its user.
func sealedFor(userID string) []byte { return []byte("identity/" + userID) }

// allowed checks an account before its person: its AML status, the number of accounts with the identity number, and an
// earlier decision of an administrator.
func (s *Service) allowed(ctx context.Context, u user.User, p Person, hashes []string) error {
	ignored := parameter.AMLControl.In(s.Values()).IgnoredUsers
	if u.AMLStatus != user.NotRisky && !slices.Contains(ignored, u.ID) {
		return fault.New(fault.Forbidden, "the account is under review")
	}
	n, err := s.Store.Others(ctx, u.ID, hashes...)
	if err != nil {
		return err
	}
	if n >= s.Accounts {
		return fault.New(fault.RecordLimitReached, "the identity number has the maximum number of accounts")
	}
	same := slices.Contains(hashes, u.IdentityHash) && u.BirthDate == p.BirthDate &&
		user.FoldName(u.FullName()) == user.FoldName(p.GivenNames()+" "+p.Surname)
	if u.KYCApproved() && u.IdentityHash != "" && !same {
		return fault.New(fault.InvalidState, "the account was confirmed with another identity")
	}
	return nil
}

// matchesRegister calls the national register. Denials are counted per user and recorded in the audit trail.
func (s *Service) matchesRegister(ctx context.Context, by audit.By, p Person, ask bool) (bool, error) {
	if !ask || s.Registry == nil && s.Dev {
		return true, nil
	}
	if s.Registry == nil {
		return false, fault.New(fault.Unavailable, "no national register is configured")
	}
	try, err := s.Tries.Charge(ctx, "identity/"+by.UserID, "")
	if err != nil {
		return false, err
	}
	defer try.Wrong()
	known, err := s.Registry.Verify(ctx, p)
	if known || err != nil { // correct, or not checked
		return known, errors.Join(err, try.Return(context.WithoutCancel(ctx)))
	}
	return false, s.Changes.Commit.Commit(ctx, by.Did(audit.Record{At: s.Changes.Now(), UserID: by.UserID,
		Action: ActionConfirm, Target: by.UserID, Outcome: audit.Refused, Detail: "denied by the national register"}))
}

// NumberOf returns the identity number of a user, only for display to the user; "" if unknown.
func (s *Service) NumberOf(ctx context.Context, userID string) (string, error) {
	kept, err := s.Store.Kept(ctx, userID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	number, err := s.Ring.Open(kept.Sealed, sealedFor(userID))
	return string(number), err
}

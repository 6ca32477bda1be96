package bootstrap

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net/netip"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/jose"
	"castellan/domain/proof/device"
	"castellan/domain/proof/totp"
)

// Method is the second factor of the administrator.
type Method string

// The methods.
const (
	Passkey Method = "PASSKEY"
	TOTP    Method = "TOTP"
)

// Details describe the account of the administrator, as sent.
type Details struct {
	CountryCode, Phone, Email string
	Name, Surname             string
	Password                  string
	Method                    Method
}

// draft is the content of a ticket. Define is set for TOTP, Challenge and Handle for a passkey.
type draft struct {
	User      user.User    `json:"user"`
	Hash      string       `json:"hash"` // of the password
	Method    Method       `json:"method"`
	Define    *totp.Define `json:"define,omitempty"`
	Challenge string       `json:"challenge,omitempty"`
	Handle    string       `json:"handle,omitempty"`
}

// Begun is the answer to the first step. PublicKey has the creation options of a passkey; Authenticator is a new one.
type Begun struct {
	Ticket        string
	PublicKey     json.RawMessage
	Authenticator *totp.Drawn
}

// The number of requests of a network, and their period.
const (
	Requests = 30
	Window   = time.Hour
)

// admit counts a request of the caller's network, right or wrong.
func (s *Service) admit(ctx context.Context, by audit.By) error {
	attempt, err := s.Tries.Charge(ctx, "setup/"+client.PrefixOf(by.IP), "")
	if err == nil {
		attempt.Wrong() // meaning: it counts
	}
	return err
}

// Begin checks the details of the account and prepares its factor.
//
// Errors: NOT_FOUND if the token belongs to no valid link; INVALID_FIELD with every invalid field; RATE_LIMITED;
// OVERLOADED; UNAVAILABLE. Details are judged only with a valid token.
func (s *Service) Begin(ctx context.Context, by audit.By, token string, details Details) (b Begun, err error) {
	if err := s.admit(ctx, by); err != nil {
		return b, err
	}
	l, err := s.valid(ctx, token, "")
	if err != nil {
		return b, err
	}
	d := draft{Method: details.Method}
	if d.User, err = s.account(details); err != nil {
		return b, err
	}
	ip, _ := netip.ParseAddr(by.IP)
	caller := password.Caller{Site: client.Site(ip), Since: s.Now()}
	if d.Hash, err = s.Hasher.HashFor(ctx, caller, details.Password); err != nil {
		return b, err
	}
	switch d.Method {
	case TOTP:
		drawn, err := totp.Draw(s.Ring, s.Issuer, d.User, s.Now())
		if err != nil {
			return b, err
		}
		d.Define, b.Authenticator = &drawn.Define, &drawn
	case Passkey:
		d.Challenge, d.Handle = random(), random()
		b.PublicKey = s.Party.Creation(d.Challenge,
			passkey.User{Handle: d.Handle, Name: d.User.Email, Shown: d.User.FullName()}, nil)
	default:
		return b, fault.Invalid("method", "must be one of %s", "PASSKEY, TOTP")
	}
	b.Ticket, err = s.seal(l, d)
	return b, err
}

func random() string {
	b := make([]byte, passkey.HandleBytes)
	rand.Read(b) // crypto/rand.Read never fails
	return jose.Encode(b)
}

// account validates the details and returns the new account.
func (s *Service) account(d Details) (u user.User, err error) {
	is, problems := user.Identify(&d.CountryCode, &d.Phone, &d.Email)
	ps := fault.Problems(append(problems, user.CheckNames(&d.Name, &d.Surname)...))
	dial, _ := user.DialCode(d.CountryCode) // validated by Identify
	ps.Join(s.Policy.Check(d.Password, password.Personal{Phone: is.Phone, DialCode: dial, Mail: is.Mail}))
	if err := fault.All(ps); err != nil {
		return u, err
	}
	now := s.Now()
	u = user.New(id.New(now), now)
	u.CountryCode, u.Phone, u.Email, u.Name, u.Surname = dial, is.Phone, is.Mail, d.Name, d.Surname
	u.Roles = []string{user.RoleAdmin}
	return u, nil
}

// Proof is the second step of the page: a code of the authenticator, or the RegistrationResponseJSON of a passkey with
// the texts that name it.
type Proof struct {
	Token, Ticket string
	Code          string
	Attestation   []byte
	About         device.Registration
}

// Complete makes the administrator by the ticket of Begin and the proof of its factor. The account, its factor, the use
// of the link and the audit row commit together. A repetition with the same ticket gets the same answer until the link
// expires.
//
// Errors: NOT_FOUND if the token belongs to no valid link; INVALID_FIELD for a ticket of another link or a missing
// proof; OTP_INVALID and DEVICE_SIGNATURE_INVALID for a wrong proof; RECORD_ALREADY_EXIST if another account has the
// phone number or the mail address; RATE_LIMITED; UNAVAILABLE.
func (s *Service) Complete(ctx context.Context, by audit.By, p Proof) (userID string, err error) {
	if err := s.admit(ctx, by); err != nil {
		return "", err
	}
	err = s.Changes.Do(ctx, by, ActionAdmin, func(ctx context.Context) (done admin.Done, err error) {
		l, err := s.valid(ctx, p.Token, p.Ticket)
		if userID = l.UserID; err != nil || userID != "" {
			return done, err
		}
		d, ok := s.open(l, p.Ticket)
		if !ok {
			return done, fault.Invalid("ticket", "is not of this link")
		}
		factor, err := s.factor(ctx, &d, p)
		if err != nil {
			return done, err
		}
		l.Spent, l.UserID = s.Ring.Hash(ticketDomain, p.Ticket), d.User.ID
		if err := s.Store.Put(ctx, l); err != nil {
			return done, err
		}
		userID = d.User.ID
		return admin.Done{Target: userID, UserID: userID, Detail: string(d.Method),
			Writes: []commit.Write{user.Add{User: d.User, PasswordHash: d.Hash}, factor}}, nil
	})
	return userID, err
}

// factor verifies the proof, and returns the write that adds the factor. It marks the factor in the account.
func (s *Service) factor(ctx context.Context, d *draft, proof Proof) (commit.Write, error) {
	if d.Method == TOTP {
		secret, err := totp.Reveal(s.Ring, d.Define.Definition)
		if err != nil {
			return nil, err
		}
		step, ok := totp.Match(secret, s.Now(), proof.Code)
		if !ok {
			return nil, fault.New(fault.OTPInvalid, "the code is wrong")
		}
		d.Define.LastStep, d.User.TOTP = step, true // the code is used up
		return *d.Define, nil
	}
	if len(proof.Attestation) == 0 {
		return nil, fault.Invalid("attestation", "is required")
	}
	about := proof.About
	if err := about.Check(); err != nil {
		return nil, err
	}
	p, err := s.Party.Register(proof.Attestation, func(challenge string) bool {
		return subtle.ConstantTimeCompare([]byte(challenge), []byte(d.Challenge)) == 1
	})
	if err != nil {
		s.Log.InfoContext(ctx, "passkey refused", "reason", err)
		return nil, device.Refused()
	}
	now := s.Now()
	p.DeviceID, p.UserID, p.CreatedAt = id.New(now), d.User.ID, now
	p.Brand, p.Model, p.Description, p.Platform = about.Brand, about.Model, about.Description, about.Platform
	p.Trust = passkey.Joining(now, now, nil, "", false)
	d.User.Push, d.User.PasskeyHandle = true, d.Handle
	return passkey.Add{Credential: p}, nil
}

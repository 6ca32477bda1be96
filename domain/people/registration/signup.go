package registration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/office/contract"
	"castellan/domain/session/session"
)

// ActionRegister is the code of the action that makes the account of a sign-up.
const ActionRegister = mfa.Register

// Engine is the part of the challenge engine that a sign-up needs.
type Engine interface {
	challenge.Starts
	// Subject returns the subject of a text without an account, and its former subjects under replaced keys.
	Subject(ctx context.Context, text string) (subject string, former []string, err error)
	// Applied returns the write that notifies the owner of an account that its phone number or mail address was used to
	// sign up. Without an account it costs the same and notifies no one.
	Applied(to challenge.Account, subject, ip string) []commit.Write
}

// SignUps lets users make their own accounts. A phone number or a mail address that has an account takes the same steps
// as a free one. Its code is not sent, no value of its method is correct, and nothing else reveals it. All fields
// except Starts are required.
type SignUps struct {
	Users     user.Store
	Contracts contract.Store
	Engine    Engine
	// First makes the session of a new account (session.Service.First).
	First  func(context.Context, user.User, challenge.Execution) (challenge.Result, []commit.Write, error)
	Hasher *password.Hasher
	Policy password.Policy
	// Starts limits the sign-ups per network, phone number and mail address; nil: unlimited.
	Starts *Bounds
	Commit commit.Committer
	// Place returns the key by which callers share places in the queue of hashes.
	Place func(client.Origin) string
	Now   func() time.Time
}

// Bounds limit the starts of sign-ups.
type Bounds struct{ Networks, Phones, Mails *password.Guards }

// SignUp is the request of a user for an account. ExternalID of the newcomer stays "".
type SignUp struct {
	Newcomer
	Password, Verify string
	Contracts        []int64 // accepted
}

// command is the stored data of a sign-up until its challenge is complete.
type command struct {
	Newcomer  Newcomer        `json:"newcomer"`
	Hash      string          `json:"hash"`
	Contracts []acceptedTerms `json:"contracts"`
}

type acceptedTerms struct {
	ID      int64  `json:"id"`
	Version string `json:"version"`
}

// read validates a sign-up, except whether its phone number and mail address are taken.
func (s *SignUps) read(ctx context.Context, r SignUp) (command, error) {
	r.ExternalID = "-" // a sign-up has none
	n, err := r.Canonical()
	n.ExternalID = ""
	var ps fault.Problems
	ps.Join(err)
	ps.Require(n.Email != "", "email", "is required")
	ps.Require(r.Password == r.Verify, "passwordVerify", "must be the same as password")
	personal := password.Personal{Phone: n.Phone, DialCode: n.CountryCode, Mail: n.Email}
	ps.Join(s.Policy.Check(r.Password, personal))
	must, err := s.Required(ctx)
	if err != nil {
		return command{}, err
	}
	var terms []acceptedTerms
	ids := map[int64]bool{}
	for _, c := range must {
		ids[c.ID] = true
		terms = append(terms, acceptedTerms{c.ID, c.Version})
	}
	missing := slices.ContainsFunc(must, func(c contract.Contract) bool { return !slices.Contains(r.Contracts, c.ID) })
	ps.Require(!missing, "contracts", "must contain every active contract")
	ps.Require(missing || !slices.ContainsFunc(r.Contracts, func(id int64) bool { return !ids[id] }), "contracts",
		"contains a contract that is not active")
	return command{Newcomer: n, Contracts: terms}, fault.All(ps)
}

// Required lists the contracts that a sign-up must accept: the active ones.
func (s *SignUps) Required(ctx context.Context) ([]contract.Contract, error) {
	all, err := s.Contracts.Contracts(ctx, contract.Query{})
	return slices.DeleteFunc(all, func(c contract.Contract) bool { return !c.Active }), err
}

// Start starts the challenge that proves phone and mail and then makes the account.
//
// Errors: INVALID_FIELD with every invalid field; RATE_LIMITED if the network, the phone number or the mail address
// started too many; OVERLOADED; MFA_NOT_AVAILABLE if the installation cannot send; UNAVAILABLE.
func (s *SignUps) Start(ctx context.Context, r SignUp, from challenge.Starter) (started challenge.Started, err error) {
	from = session.Clip(from)
	c, err := s.read(ctx, r)
	if err != nil {
		return started, err
	}
	if c.Newcomer.Language == "" {
		c.Newcomer.Language = from.Language
	}
	caller := s.caller(from.IP)
	if err := s.Hasher.Full(caller.Site); err != nil {
		return started, err
	}
	subjects, err := s.subjects(ctx, c.Newcomer)
	if err != nil {
		return started, err
	}
	settle, err := s.admit(ctx, subjects, from.IP)
	if err != nil {
		return started, err
	}
	c.Hash, err = s.Hasher.HashFor(ctx, caller, r.Password)
	if err = settle(err); err != nil {
		return started, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return started, fmt.Errorf("sign-up: %w", err)
	}
	for range maxFenced {
		started, err = s.start(ctx, c.Newcomer, text, subjects, from)
		if !errors.Is(err, commit.ErrFenced) {
			return started, err
		}
	}
	return started, fault.New(fault.Unavailable, "the phone number is busy; try again").After(time.Second)
}

// maxFenced limits how often a start is decided again.
const maxFenced = 5

// caller returns the caller in the queue of hashes for a client without an account.
func (s *SignUps) caller(ip string) password.Caller {
	a, _ := netip.ParseAddr(ip)
	return password.Caller{Site: s.Place(client.From(a)), Since: time.Now()}
}

// concealed is the concealed form of a phone number or a mail address in rows, current and former.
type concealed struct {
	subject string
	former  []string
}

// subjects returns the concealed phone number and mail address, in this order.
func (s *SignUps) subjects(ctx context.Context, n Newcomer) (all [2]concealed, err error) {
	for i, text := range []string{n.Phone, n.Email} {
		c := &all[i]
		if c.subject, c.former, err = s.Engine.Subject(ctx, "register/"+text); err != nil {
			return all, err
		}
	}
	return all, nil
}

// admit counts a start for the network, the phone number and the mail address, durably. The caller calls settle: the
// charges stay, but are returned if err says that nothing was started.
func (s *SignUps) admit(ctx context.Context, subjects [2]concealed, ip string) (settle func(err error) error,
	err error) {
	if s.Starts == nil {
		return func(err error) error { return err }, nil
	}
	var charged []*password.Attempt
	settle = func(err error) error {
		for _, c := range charged {
			if err == nil {
				c.Wrong() // meaning: it counts
			} else {
				err = errors.Join(err, c.Return(context.WithoutCancel(ctx)))
			}
		}
		return err
	}
	for _, c := range []struct {
		guards *password.Guards
		limit  string // its setting
		key    string
		former []string
	}{{s.Starts.Networks, "limits.reset_per_ip", client.PrefixOf(ip), nil},
		{s.Starts.Phones, "limits.reset_per_phone", subjects[0].subject, subjects[0].former},
		{s.Starts.Mails, "limits.reset_per_phone", subjects[1].subject, subjects[1].former}} {
		former := make([]string, len(c.former))
		for i, f := range c.former {
			former[i] = "register/" + f
		}
		attempt, err := c.guards.Charge(ctx, "register/"+c.key, "", former...)
		var f *fault.Error
		if errors.As(err, &f) && f.Code == fault.RateLimited {
			err = fault.New(fault.RateLimited, "the sign-up was started too often; try later").After(f.RetryAfter).
				By(c.limit)
		}
		if err != nil {
			return nil, settle(err)
		}
		charged = append(charged, attempt)
	}
	return settle, nil
}

// owners finds the accounts of the phone number and the mail address; an empty account if it is free.
func (s *SignUps) owners(ctx context.Context, n Newcomer) (phone, mail user.User, err error) {
	absent := func(err error) error {
		if fault.CodeOf(err) == fault.RecordNotFound {
			return nil
		}
		return err
	}
	phone, err = s.Users.ByPhone(ctx, n.Phone, user.FormerOf(n.Phone))
	if err = absent(err); err != nil {
		return phone, mail, err
	}
	mail, err = s.Users.ByEmail(ctx, n.Email)
	return phone, mail, absent(err)
}

// withheld returns the methods whose destination has an account.
func withheld(n Newcomer, phone, mail user.User) []challenge.Name {
	var taken challenge.Account
	if phone.ID != "" {
		taken.Phone = n.Phone
	}
	if mail.ID != "" {
		taken.Mail = n.Email
	}
	return challenge.Sending(taken)
}

// reached returns the destinations of a newcomer's codes.
func (n Newcomer) reached() challenge.Account {
	return challenge.Account{Phone: n.Phone, Dial: n.CountryCode, Mail: n.Email, Language: n.Language}
}

func (s *SignUps) start(ctx context.Context, n Newcomer, command []byte, subjects [2]concealed,
	from challenge.Starter) (challenge.Started, error) {
	phone, mail, err := s.owners(ctx, n)
	if err != nil {
		return challenge.Started{}, err
	}
	names := withheld(n, phone, mail)
	subject := subjects[0].subject
	with := []commit.Write{audit.Record{At: s.Now(), UserID: subject, Action: ActionRegister, Target: subject,
		Outcome: audit.Success, IP: from.IP, RequestID: from.RequestID, Detail: "started"}}
	if mail.ID == phone.ID {
		mail = user.User{} // the owner is notified once
	}
	for i, owner := range []user.User{phone, mail} {
		told := challenge.Account{}
		if owner.Active() {
			told = owner.Account()
		}
		with = append(with, s.Engine.Applied(told, subjects[i].subject, from.IP)...)
	}
	return s.Engine.Start(ctx, challenge.StartRequest{Action: ActionRegister, Account: n.reached(), Starter: from,
		Applicant: subject, Withheld: names, Command: command, With: with})
}

// Action returns the action REGISTER, which runs after phone and mail were proven. The account commits with the
// accepted contracts and with its first session, whose token is the header x-auth of the outcome. RECORD_ALREADY_EXIST
// if another account took the phone number or the mail address meanwhile.
func (s *SignUps) Action() challenge.Action {
	return challenge.Action{Code: ActionRegister, Flow: challenge.FlowRegister, Exec: s.register, Reach: s.reach,
		Describe: described}
}

// described returns the details of a sign-up for its applicant.
func described(text []byte) []challenge.Detail {
	var c command
	if json.Unmarshal(text, &c) != nil {
		return nil
	}
	n := c.Newcomer
	out := []challenge.Detail{{Key: mfa.HeaderName, Value: strings.TrimSpace(n.Name + " " + n.Surname)},
		{Key: mfa.HeaderPhone, Value: n.Phone}, {Key: mfa.HeaderMail, Value: n.Email}}
	for _, terms := range c.Contracts {
		out = append(out, challenge.Detail{Key: mfa.HeaderContract, Value: fmt.Sprintf("%d %s", terms.ID, terms.Version)})
	}
	return out
}

func (s *SignUps) reach(ctx context.Context, text []byte) (to challenge.Account, names []challenge.Name, err error) {
	var c command
	if err := json.Unmarshal(text, &c); err != nil {
		return to, nil, fmt.Errorf("sign-up: command: %w", err)
	}
	phone, mail, err := s.owners(ctx, c.Newcomer)
	return c.Newcomer.reached(), withheld(c.Newcomer, phone, mail), err
}

func (s *SignUps) register(ctx context.Context, x challenge.Execution) (none challenge.Result, err error) {
	var c command
	if err := json.Unmarshal(x.Command, &c); err != nil {
		return none, fmt.Errorf("sign-up: command: %w", err)
	}
	u := c.Newcomer.account(user.New(id.New(x.Now), x.Now))
	u.EmailVerified = true
	from := x.Challenge.Starter
	writes := []commit.Write{user.Add{User: u, PasswordHash: c.Hash},
		audit.Record{At: x.Now, ActorID: u.ID, UserID: u.ID, Action: ActionAdd, Target: u.ID, Outcome: audit.Success,
			IP: from.IP, RequestID: from.RequestID, Detail: "signed up"}}
	for _, t := range c.Contracts {
		writes = append(writes, contract.Accept{UserID: u.ID, ContractID: t.ID, Version: t.Version, At: x.Now})
	}
	if err := s.Commit.Commit(ctx, writes...); fault.CodeOf(err) == fault.RecordAlreadyExist {
		return none, taken()
	} else if err != nil {
		return none, err
	}
	result, more, err := s.First(ctx, u, x)
	if err != nil {
		return none, err
	}
	result.Data, err = json.Marshal(struct {
		UserID string `json:"userId"`
		// #nosec G117: the key identifies a session in lists; its token is a header.
		SessionKey string `json:"sessionKey"`
	}{u.ID, result.SessionID})
	if err != nil {
		return none, fmt.Errorf("sign-up: %w", err)
	}
	return result, s.Commit.Commit(ctx, more...)
}

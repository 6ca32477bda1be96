package stepup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/domain/proof/device"
)

// Answerer handles the answers of clients and devices to a challenge. All fields are required except Judges, Leaving
// and Devices. Without Devices no push is ever right.
type Answerer struct {
	*Messenger
	Actions    challenge.Actions
	Accounts   Accounts
	Sessions   Sessions
	Challenges Challenges
	Judges     map[challenge.Name]Judge
	Devices    Devices
	// Leaving ends when this node shuts down. A client that waits for an outcome then gets the answer that there is
	// none yet, and calls another node. nil: never.
	Leaving context.Context
}

// Answer is a client's value for a method.
type Answer struct {
	ChallengeID string
	// UserID is the user of the challenge, "" for a decoy, if the caller knows it. nil: the engine requests it from
	// the challenge's owner.
	UserID   *string
	MethodID string
	Method   challenge.Name
	Value    string
	// Signed and DeviceID belong to an answer of a registered device.
	Signed   device.Request
	DeviceID string
	// Remember asks to have the client of the challenge remembered, if this answer completes it.
	Remember bool
	// Assertion is the answer of a passkey, an AuthenticationResponseJSON, in place of both; nil without one.
	Assertion []byte
	By        audit.By
}

// Completion is the client's result of an accepted answer. Result is nil while methods remain (Final is false) or the
// action has not reported yet.
type Completion struct {
	Action      string
	ChallengeID string
	Final       bool
	Result      *challenge.Result
}

// Complete evaluates an answer (section 4.1 of the interface). Errors are those of
// challenge.Complete and of the method's judge.
func (s *Answerer) Complete(ctx context.Context, a Answer) (Completion, error) {
	in := challenge.Answer{MethodID: a.MethodID, Method: a.Method, Remember: a.Remember}
	if a.Method == challenge.PUSH {
		if err := s.checkDecision(ctx, a); err != nil {
			return Completion{}, err
		}
	} else {
		if a.Signed.Proof != "" && a.DeviceID != "" { // not required, but it must be valid (D-2FA-06)
			if _, err := s.signer(ctx, a, &in); err != nil {
				return Completion{}, err
			}
		}
		if a.Value = Typed(a.Value); !challenge.Code(a.Value) {
			return Completion{}, fault.Invalid("value", "must be a code of 6 digits")
		}
	}
	for _, sum := range s.Ring.Hashes("otp", a.ChallengeID, a.MethodID, a.Value) {
		in.Digests = append(in.Digests, challenge.Digest(sum))
	}
	got, err := s.judged(ctx, a, in)
	if err != nil {
		return Completion{}, err
	}
	return s.completion(a.ChallengeID, got)
}

// judgements bounds how often an answer is judged again because its data changed meanwhile.
const judgements = 5

// judged passes an answer to the challenge's owner, with the verdict of the method's judge if it has one.
func (s *Answerer) judged(ctx context.Context, a Answer, in challenge.Answer) (Answered, error) {
	judge := s.Judges[a.Method]
	if judge == nil && a.Method != challenge.PUSH {
		return s.Challenges.Complete(ctx, a.ChallengeID, in, s.Config.ExecWait, a.By)
	}
	userID, err := "", error(nil)
	if a.Method != challenge.PUSH { // a push establishes its signer before the challenge's user
		if userID, err = s.userOf(ctx, a); err != nil {
			return Answered{}, err
		}
	}
	for range judgements {
		if a.Method == challenge.PUSH {
			err = s.judgePush(ctx, a, &in)
		} else {
			in.Verdict, in.Use, err = judge(ctx, userID, a)
		}
		if err != nil {
			return Answered{}, err
		}
		got, err := s.Challenges.Complete(ctx, a.ChallengeID, in, s.Config.ExecWait, a.By)
		if !errors.Is(err, errOutdatedInput) {
			return got, err
		}
	}
	return Answered{}, fault.New(fault.Unavailable, "the challenge is busy; try again").After(time.Second)
}

// userOf returns the user of the challenge that an answer is for.
func (s *Answerer) userOf(ctx context.Context, a Answer) (string, error) {
	if a.UserID != nil {
		return *a.UserID, nil
	}
	return s.Challenges.User(ctx, a.ChallengeID)
}

// Typed returns a code as a person typed or pasted it, without blanks, dashes and invisible marks (D-2FA-33). Digits of
// every script become ASCII.
func Typed(value string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Dash, r) {
			return -1
		}
		return r
	}, legible.Typed(value))
}

// Result returns the outcome, waiting at most wait for it. Errors: CHALLENGE_NOT_COMPLETED while the outcome is
// pending, CHALLENGE_EXPIRED and CHALLENGE_CLOSED when it will never come, CHALLENGE_NOT_FOUND.
func (s *Answerer) Result(ctx context.Context, challengeID string, wait time.Duration) (Completion, error) {
	if wait > 0 && s.Leaving != nil {
		held, release := context.WithCancel(ctx)
		defer release()
		defer context.AfterFunc(s.Leaving, release)()
		ctx = held
	}
	got, err := s.Challenges.Result(ctx, challengeID, wait)
	if err != nil && errors.Is(err, context.Canceled) && s.Leaving != nil && s.Leaving.Err() != nil {
		err = fault.New(fault.ChallengeNotCompleted, "the challenge is not completed yet").After(time.Second)
	}
	if err != nil {
		return Completion{}, err
	}
	return s.completion(challengeID, got)
}

func (s *Answerer) completion(challengeID string, a Answered) (Completion, error) {
	c := Completion{Action: a.Action, ChallengeID: challengeID, Final: a.Final}
	if a.Outcome == nil {
		return c, nil
	}
	r, err := s.Open(challengeID, a.Outcome)
	if err != nil {
		return Completion{}, err
	}
	c.Result = &r
	return c, nil
}

// Open unseals an outcome. It does not return the tokens of a session that has ended: CHALLENGE_CLOSED (D-AUTH-11).
func (s *Answerer) Open(challengeID string, sealed []byte) (challenge.Result, error) {
	plain, err := s.Ring.Open(sealed, challenge.OutcomeData(challengeID))
	if err != nil {
		return challenge.Result{}, fmt.Errorf("open outcome: %w", err)
	}
	var r challenge.Result
	if err := r.UnmarshalBinary(plain); err != nil {
		return challenge.Result{}, fmt.Errorf("open outcome: %w", err)
	}
	if r.SessionID != "" && !s.Sessions.Live(r.UserID, r.SessionID, r.SV) {
		return challenge.Result{}, fault.New(fault.ChallengeClosed, "the session of this outcome has ended")
	}
	return r, nil
}

// Renew sends a new code for a method whose code is sent (section 3.1 of the interface). Errors are those of
// challenge.Renew, and RATE_LIMITED when a cap holds the code back and the challenge was started with a proof. After
// an error the old code stays valid.
func (s *Answerer) Renew(ctx context.Context, challengeID, methodID string, name challenge.Name,
	by audit.By) (challenge.Challenge, error) {
	for range 3 {
		c, err := s.renew(ctx, challengeID, methodID, name, by)
		if !errors.Is(err, errOutdatedInput) {
			return c, err
		}
	}
	return challenge.Challenge{}, fault.New(fault.Unavailable, "the challenge is busy; try again").After(time.Second)
}

// errOutdatedInput reports that the state changed between a decision here and its commit by the owner.
var errOutdatedInput = errors.New("stepup: outdated input")

// OutdatedInput returns the error for outdated input. Challenges.Renew returns it for a message whose generation is not
// the next one, and Challenges.Complete for a verdict that may no longer hold.
func OutdatedInput() error { return errOutdatedInput }

func (s *Answerer) renew(ctx context.Context, challengeID, methodID string, name challenge.Name,
	by audit.By) (challenge.Challenge, error) {
	re, err := s.Challenges.CheckRenew(ctx, challengeID, methodID, name)
	if err != nil {
		return challenge.Challenge{}, err
	}
	owner := re.UserID
	if re.Decoy {
		owner = re.Subject
	}
	account, err := s.Accounts.Account(ctx, owner) // for a decoy too: both take the same steps
	switch {
	case re.Decoy && fault.CodeOf(err) == fault.RecordNotFound:
		account = stranger(re.Hint)
	case fault.CodeOf(err) == fault.RecordNotFound:
		return challenge.Challenge{}, fault.New(fault.ChallengeClosed, "the challenge is closed; start again")
	case err != nil:
		return challenge.Challenge{}, err
	}
	kind, withheld := challenge.Real, []challenge.Name(nil)
	if re.Decoy {
		kind = challenge.Decoy
		if reach := s.Actions[re.Action].Reach; reach != nil {
			kind = challenge.Applicant
			if account, withheld, err = s.applicant(ctx, challengeID, reach); err != nil {
				return challenge.Challenge{}, err
			}
		}
	}
	now := s.Now()
	c := challenge.Challenge{ID: challengeID, Action: re.Action, Body: challenge.Body{Proven: re.Proven, Brief: re.Brief}}
	m := challenge.Method{ID: methodID, Name: name, Template: re.Template, Generation: re.Generation,
		LifetimeMs: re.LifetimeMs, MadeAt: now.UnixMilli(), ExpiresAt: now.UnixMilli() + re.LifetimeMs}
	l := letter{to: name.Address(account), lang: s.language(re.Language, account.Language)}
	l.row = s.row(c, m, owner, l.to, by.IP)
	l.row.Proven = re.Proven
	may, err := s.afford(ctx, now, &l.row, 0)
	if err == nil && !may && re.Proven {
		err = s.capped(time.Minute, countryCap)
	}
	if err != nil {
		return challenge.Challenge{}, err
	}
	out, err := s.userGate(kind).Send(ctx, owner, s.sendingOf(l), s.Config.Caps)
	if err != nil {
		return challenge.Challenge{}, err
	}
	if !out && re.Proven {
		sent, err := s.Outbox.Sendings(ctx, owner, now.Add(-day))
		if err != nil {
			return challenge.Challenge{}, err
		}
		return challenge.Challenge{}, s.capped(s.Config.Caps.wait(now, sent, []letter{l}, s.destinations))
	}
	out = out && may && !slices.Contains(withheld, name)
	s.seal(&l, &m, c, out)
	next, err := s.Challenges.Renew(ctx, challengeID, methodID, name, m.Digest, l.row, by)
	if err != nil {
		return challenge.Challenge{}, err
	}
	s.deliver(l)
	return next, nil
}

// applicant reads the destinations of the codes of a person without an account.
func (s *Answerer) applicant(ctx context.Context, challengeID string,
	reach func(context.Context, []byte) (challenge.Account, []challenge.Name, error)) (challenge.Account, []challenge.Name,
	error) {
	sealed, _, err := s.Store.Sealed(ctx, challengeID)
	if err != nil {
		return challenge.Account{}, nil, err
	}
	command, err := s.Ring.Open(sealed, challenge.CommandData(challengeID))
	if err != nil {
		return challenge.Account{}, nil, fmt.Errorf("open the command of an applicant: %w", err)
	}
	return reach(ctx, command)
}

// Guards are the conditions under which a step of c may commit. The credentials it was started with are still those
// of the user, and no other step has changed the budget.
func Guards(c challenge.Challenge, b challenge.Budget) []commit.Write {
	return []commit.Write{commit.Guard{On: commit.AttemptBudget, Key: b.Key(), Version: b.Version}, Credentials(c)}
}

// Credentials is the condition that the credentials at the start of c are still those of the user. For a decoy it is
// that no user has its subject.
func Credentials(c challenge.Challenge) commit.Guard {
	return commit.Guard{On: commit.UserCredentials, Key: c.Owner(), Version: c.CV}
}

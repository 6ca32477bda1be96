// Package challenge is the machine of a second-factor challenge (sections 2.1
// and 3.1 of the interface, decisions D-2FA-…): which values complete it, when a method may be
// renewed, what expires and what locks. It has no clock, no I/O and no
// goroutine: time comes in as an argument and leaves as the value of Deadline.
// A move returns the next Challenge and never changes its receiver, so a step
// that is not saved costs nothing.
//
// Start reading at Challenge, then Complete (complete.go) and Renew (renew.go).
package challenge

import (
	"slices"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
)

// Name is the wire name of a method's kind.
type Name string

// The four kinds (section 2.1 of the interface).
const (
	TOTP Name = "TOTP"
	PUSH Name = "PUSH"
	MAIL Name = "MAIL"
	SMS  Name = "SMS"
)

// ParseName reads a method name; PUSH_OTP is an alias of PUSH (D-2FA-08).
func ParseName(s string) (Name, bool) {
	switch Name(s) {
	case TOTP, PUSH, MAIL, SMS:
		return Name(s), true
	case "PUSH_OTP":
		return PUSH, true
	}
	return "", false
}

// Sent reports whether the method's value is a code sent to the user, so that
// it can be renewed.
func (n Name) Sent() bool { return n == SMS || n == MAIL }

// Flow groups actions for the counting of wrong values, so that a stranger
// who starts public flows cannot lock the owner out of others (D-2FA-13).
type Flow string

// The flows.
const (
	FlowLogin   Flow = "LOGIN"
	FlowReset   Flow = "RESET_PASSWORD"
	FlowSession Flow = "SESSION" // started with x-auth
	// FlowRegister counts for a phone number that has no account. No factor of it is
	// switched off: there is no other factor that would switch it on.
	FlowRegister Flow = "REGISTER"
)

// State of a challenge. Expiry is no state: it follows from ExpiresAt, and
// only a Pending challenge can expire.
type State int16

// The states. Executing means that the last required method is verified and
// the action has not reported yet.
const (
	Pending State = iota
	Executing
	Done
	Denied
	Closed
)

// Reason tells why a challenge is Closed.
type Reason int8

// The reasons.
const (
	NotClosed Reason = iota
	TooManyWrong
	Superseded
	CredentialsChanged
)

// Digest is a keyed hash of a value: which key, and the sum. It is all that
// is ever stored or sent of a code.
type Digest struct {
	Key string `json:"k,omitempty"`
	Sum []byte `json:"s,omitempty"`
}

// Method is one factor of a challenge. Times are milliseconds since the Unix
// epoch, durations milliseconds.
type Method struct {
	ID         string `json:"i"`
	Name       Name   `json:"n"`
	Code       string `json:"c,omitempty"` // methodCode of the configuration where it differs from Name
	Template   string `json:"t,omitempty"`
	Hint       string `json:"h,omitempty"`
	LifetimeMs int64  `json:"l"` // full lifetime; never 0 here
	RenewMs    int64  `json:"r,omitempty"`
	ExpiresAt  int64  `json:"x"`
	MadeAt     int64  `json:"m,omitempty"` // when the present OTP was made
	Digest     Digest `json:"d,omitzero"`  // of the OTP; once answered, of the answer
	Wrong      int    `json:"w,omitempty"` // wrong values since the present OTP was made
	Generation int    `json:"g,omitempty"` // renewals so far
	Order      int    `json:"o,omitempty"` // 1 for the first completed method; 0: not completed
	Mandatory  bool   `json:"q,omitempty"` // must be among the completed ones (D-PWD-02)
	// Number is shown to the starter of the challenge, where the policy asks for
	// number matching; the device must sign it. Digest is then that of the approval
	// with this number.
	Number      string `json:"u,omitempty"`
	CompletedAt int64  `json:"a,omitempty"`
}

// Starter is what is known of the client that started the challenge.
type Starter struct {
	SessionID   string `json:"s,omitempty"`
	IP          string `json:"i,omitempty"`
	Country     string `json:"c,omitempty"`
	Language    string `json:"l,omitempty"`
	Brand       string `json:"b,omitempty"`
	Model       string `json:"m,omitempty"`
	Description string `json:"d,omitempty"`
	RequestID   string `json:"r,omitempty"`
}

// Challenge is the whole state of one challenge, its command excepted.
type Challenge struct {
	ID        string
	UserID    string // "" where there is no account
	Action    string
	Flow      Flow
	State     State
	CreatedAt int64 // ms
	ExpiresAt int64 // ms
	Version   int64 // of the row this value was read from or last saved as
	Body
}

// Body is the part of a challenge that only the machine reads.
type Body struct {
	// Subject names the attempt budget that is spent: the user id, or a keyed hash where there is no account.
	Subject  string `json:"s,omitempty"`
	Kind     Kind   `json:"d"`
	Reason   Reason `json:"y,omitempty"`
	Required int    `json:"q"`
	Wrong    int    `json:"w,omitempty"` // evaluated wrong values of all methods
	Last     string `json:"l,omitempty"` // method whose answer ended the challenge
	CV       int64  `json:"c"`           // credential version of the user at the start
	SV       int64  `json:"v"`           // session version of the user at the start
	Proven   bool   `json:"p,omitempty"` // started with a session or a right password
	Failures int    `json:"f,omitempty"` // failed executions so far
	// Commanded says that a sealed command is stored beside the challenge.
	Commanded bool    `json:"e,omitempty"`
	Starter   Starter `json:"b,omitzero"`
	// Off are the factors that were off at a proven start: completing the challenge
	// proves the user by others, and switches them on.
	Off Factors `json:"z,omitempty"`
	// Filter is the user's geographic filter at the start, where the action
	// keeps it (Action.KeepsFilter).
	Filter  geo.Filter `json:"o,omitempty"`
	Methods []Method   `json:"m"`
}

// Kind tells a challenge from a decoy. What differs in the rows of the two has
// the same length, so that writing the one costs what writing the other does.
type Kind int8

// DecoyMark begins the subject of a decoy, and no id.
const DecoyMark = "?"

// The kinds. A Decoy is a challenge that stands for an account which does not
// exist or may not be used (D-PWD-01): it behaves like any other, and no value
// is right. An Applicant is a challenge of a person who asks for an account: it has
// a decoy's subject in place of a user, and its codes go out and are right.
const (
	Real Kind = iota
	Decoy
	Applicant
)

// Owned reports whether an account is behind the challenge.
func (k Kind) Owned() bool { return k == Real }

// Owner returns the user's id, or the subject where there is no account. No user has a
// subject for an id, and its credential version is 0, so the guard of a user's credentials
// holds for it.
func (c Challenge) Owner() string {
	if !c.Kind.Owned() {
		return c.Subject
	}
	return c.UserID
}

// Rules are the numbers of the machine; each is configurable under mfa.
type Rules struct {
	RenewCutoffMs      int64 // less than this left of the challenge: no renewal (section 3.1 of the interface, rule 4)
	CodeMaxAgeMs       int64 // an OTP never lives longer, extensions included (SEC-07)
	MaxRenewals        int   // per method (D-2FA-20)
	MethodAttempts     int   // wrong values per OTP (D-2FA-13)
	ChallengeAttempts  int   // wrong values per challenge
	OTPBudget          int   // wrong SMS and MAIL values per user and flow …
	OTPBudgetWindowMs  int64 // … in this rolling window
	TOTPBudget         int
	TOTPBudgetWindowMs int64
	FactorAttempts     int // wrong values one after the other that switch a factor off
}

// DefaultRules are the numbers of the decisions.
func DefaultRules() Rules {
	return Rules{
		RenewCutoffMs: 120_000, CodeMaxAgeMs: 600_000, MaxRenewals: 5,
		MethodAttempts: 5, ChallengeAttempts: 10,
		OTPBudget: 20, OTPBudgetWindowMs: 60 * 60_000,
		TOTPBudget: 10, TOTPBudgetWindowMs: 15 * 60_000, FactorAttempts: 100,
	}
}

// Completed reports the wire status: COMPLETED from the moment the last
// required method is verified, PENDING otherwise (D-2FA-05). It never goes back,
// even when the action may not run any more.
func (c Challenge) Completed() bool {
	return c.State == Executing || c.State == Done || c.State == Closed && c.Last != ""
}

// Ended reports whether nothing can change the challenge any more.
func (c Challenge) Ended(now time.Time) bool {
	return c.State == Done || c.State == Denied || c.State == Closed || c.Expired(now)
}

// Expired reports whether time has ended the challenge.
func (c Challenge) Expired(now time.Time) bool {
	return c.State == Pending && now.UnixMilli() >= c.ExpiresAt
}

// Deadline is the next instant at which time alone changes what the challenge
// answers; the zero time means never.
func (c Challenge) Deadline() time.Time {
	if c.State != Pending {
		return time.Time{}
	}
	return time.UnixMilli(c.ExpiresAt)
}

// Method finds a method by its id.
func (c Challenge) Method(id string) (Method, bool) {
	if i := c.index(id); i >= 0 {
		return c.Methods[i], true
	}
	return Method{}, false
}

// CompletedMethods lists the completed methods in the order of completion.
// The n-th one is event n of the challenge; the outcome is the event after
// the last (D-SOCK-05).
func (c Challenge) CompletedMethods() []Method {
	var done []Method
	for _, m := range c.Methods {
		if m.Order > 0 {
			done = append(done, m)
		}
	}
	slices.SortFunc(done, func(a, b Method) int { return a.Order - b.Order })
	return done
}

// Open returns nil while the challenge can be answered and otherwise the
// refusal of a closed or expired one.
func (c Challenge) Open(now time.Time) error {
	switch {
	case c.Expired(now):
		return fault.New(fault.ChallengeExpired, "the challenge has expired; start again")
	case c.State != Pending:
		return closed()
	}
	return nil
}

// Close ends an open challenge without an outcome. The first ending wins: a
// challenge that ended already is returned as it is.
func (c Challenge) Close(now time.Time, why Reason) Challenge {
	if c.State != Pending || c.Expired(now) {
		return c
	}
	c.State, c.Reason = Closed, why
	return c
}

// Abort is Close for a challenge whose action may not run any more because
// the credentials it was started with are gone; it also ends Executing.
func (c Challenge) Abort(now time.Time) Challenge {
	if c.State == Pending && !c.Expired(now) || c.State == Executing {
		c.State, c.Reason = Closed, CredentialsChanged
	}
	return c
}

// Finish moves Executing to Done.
func (c Challenge) Finish() Challenge {
	if c.State == Executing {
		c.State = Done
	}
	return c
}

func (c Challenge) index(id string) int {
	return slices.IndexFunc(c.Methods, func(m Method) bool { return m.ID == id })
}

// find looks a method up the way complete and renew do: existence first, then
// the agreement of id and name (D-2FA-30).
func (c Challenge) find(id string, name Name) (int, error) {
	i := c.index(id)
	if i < 0 {
		return 0, fault.New(fault.MethodNotFound, "the challenge has no such method")
	}
	if c.Methods[i].Name != name {
		return 0, fault.Invalid("method", "does not belong to this methodId")
	}
	return i, nil
}

func (c Challenge) clone() Challenge {
	c.Methods = slices.Clone(c.Methods)
	return c
}

func (c Challenge) ready() bool {
	done := 0
	for _, m := range c.Methods {
		if m.Order > 0 {
			done++
		} else if m.Mandatory {
			return false
		}
	}
	return done >= c.Required
}

func closed() error {
	return fault.New(fault.ChallengeClosed, "the challenge is closed; start again")
}

// Package challenge is the state machine of a second-factor challenge (sections 2.1 and 3.1 of the interface,
// decisions D-2FA-…). It decides which values complete a challenge, when a method may be renewed, and what expires or
// locks. It has no clock, no I/O and no goroutine: the time is an argument, and Deadline returns the next instant
// that matters. A move returns the next Challenge and never changes its receiver, so a step that is not saved has no
// effect.
//
// Start reading at Challenge, then Complete (complete.go) and Renew (renew.go).
package challenge

import (
	"slices"
	"strings"
	"time"

	"castellan/domain/factor/intent"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/sorting"
)

// Name is the wire name of a kind of method; kinds (kinds.go) says what the service knows of it.
type Name string

// The kinds (section 2.1 of the interface).
const (
	TOTP Name = "TOTP"
	PUSH Name = "PUSH"
	MAIL Name = "MAIL"
	SMS  Name = "SMS"
)

// Flow groups actions for the counting of wrong values. A stranger who starts public flows thus cannot lock the owner
// out of others (D-2FA-13).
type Flow string

// The flows.
const (
	FlowLogin   Flow = "LOGIN"
	FlowReset   Flow = "RESET_PASSWORD"
	FlowSession Flow = "SESSION" // started with x-auth
	// FlowRegister counts for a phone number without an account. None of its factors is switched off, because no
	// other factor could switch it on again.
	FlowRegister Flow = "REGISTER"
)

// State is the state of a challenge. Expiry is not a state: it follows from ExpiresAt, and only a Pending challenge
// can expire.
type State int16

// The states. Executing means that the last required method is verified and the action has not reported yet.
const (
	Pending State = iota
	Executing
	Done
	Denied
	Closed
)

// Reason is why a challenge is Closed.
type Reason int8

// The reasons.
const (
	NotClosed Reason = iota
	TooManyWrong
	Superseded
	CredentialsChanged
)

// Digest is a keyed hash of a value: the key and the sum. A code is only ever stored or sent as a digest.
type Digest struct {
	Key string `json:"k,omitempty"`
	Sum []byte `json:"s,omitempty"`
}

// Method is one factor of a challenge. Times are milliseconds since the Unix
// epoch, durations milliseconds.
type Method struct {
	ID         string `json:"i"`
	Name       Name   `json:"n"`
	Code       string `json:"c,omitempty"` // methodCode of the configuration if it differs from Name
	Template   string `json:"t,omitempty"`
	Hint       string `json:"h,omitempty"`
	LifetimeMs int64  `json:"l"` // full lifetime; never 0 here
	RenewMs    int64  `json:"r,omitempty"`
	ExpiresAt  int64  `json:"x"`
	MadeAt     int64  `json:"m,omitempty"` // when the current OTP was created
	Digest     Digest `json:"d,omitzero"`  // of the OTP; once answered, of the answer
	Wrong      int    `json:"w,omitempty"` // wrong values since the current OTP was created
	Generation int    `json:"g,omitempty"` // renewals so far
	Order      int    `json:"o,omitempty"` // 1 for the first completed method; 0: not completed
	Mandatory  bool   `json:"q,omitempty"` // must be among the completed ones (D-PWD-02)
	// Number is shown to the starter of the challenge when the policy requires number matching; the device must sign
	// it. Digest is then that of the approval with this number.
	Number      string `json:"u,omitempty"`
	CompletedAt int64  `json:"a,omitempty"`
	// Remembered names the remembered client by which the method was completed at the start; "" for any other.
	Remembered string `json:"b,omitempty"`
	// Proof is the signature of the answer that completed or denied the method; nil for a method without one.
	Proof *Proof `json:"p,omitempty"`
}

// Proof is the evidence that a device signed an answer (D-EXT-09). It verifies with nothing but the key.
type Proof struct {
	DeviceID string `json:"d"`
	JWS      string `json:"j"` // compact, as received; of a passkey the kept assertion (package passkey)
	JWK      string `json:"k"` // public key of the device at that time
}

func (p *Proof) Assertion() bool { return p != nil && strings.HasPrefix(p.JWS, passkey.Text) }

// Entry is the part that passkeys have in a challenge.
type Entry int8

// The parts. With Password a passkey may approve a push, if the account has one. After Key, a login whose first factor
// was a passkey, a passkey approves no push: it would be one factor twice. With Alone the passkey of the login is the
// only factor (policy option passkeyAlone), and its assertion approves the push.
const (
	Password Entry = iota
	Key
	Alone
)

// Starter describes the client that started the challenge.
type Starter struct {
	SessionID   string `json:"s,omitempty"`
	IP          string `json:"i,omitempty"`
	Country     string `json:"c,omitempty"`
	Language    string `json:"l,omitempty"`
	Brand       string `json:"b,omitempty"`
	Model       string `json:"m,omitempty"`
	Description string `json:"d,omitempty"`
	RequestID   string `json:"r,omitempty"`
	// Login is issuer.Identity.Login if the user logged in at another service; "" for a session of this one.
	Login string `json:"g,omitempty"`
}

// Challenge is the whole state of one challenge, except its command.
type Challenge struct {
	ID        string
	UserID    string // "" without an account
	Action    string
	Flow      Flow
	State     State
	CreatedAt int64 // ms
	ExpiresAt int64 // ms
	Version   int64 // of the row this value was read from or last saved as
	Body
}

// Body is the part of a challenge that only the state machine reads.
type Body struct {
	// Subject names the attempt budget that is spent: the user id, or a keyed hash without an account.
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
	// Commanded reports whether a sealed command is stored with the challenge.
	Commanded bool `json:"e,omitempty"`
	// IntentDigest is the digest of the intent document (package intent).
	IntentDigest string `json:"t,omitempty"`
	// SignIntent requires the proof of a push to sign IntentDigest.
	SignIntent bool `json:"i,omitempty"`
	// Resistant requires the proof of a push to resist phishing: an assertion (policy option phishingResistant).
	Resistant bool `json:"g,omitempty"`
	// Passkeys reports whether the account had a passkey at the start, which may approve a push.
	Passkeys bool  `json:"a,omitempty"`
	Entry    Entry `json:"n,omitempty"`
	// Recovered reports whether a recovery code replaced the passkey that a change of factors requires.
	Recovered bool `json:"u,omitempty"`
	// Settling reports whether no passkey of the account had settled at the start, so that it needs none.
	Settling bool `json:"settling,omitempty"`
	// Brief describes the operation in the codes that are sent, such as "1.5 BTC …wf5mdq"; usually "".
	Brief    string `json:"h,omitempty"`
	PolicyID int64  `json:"k,omitempty"` // of the policy at the start; 0: the built-in default
	// Service is the name of the service client that started the challenge (package errand); "" for any other.
	Service string `json:"x,omitempty"`
	// Key is the thumbprint of the key of the client that started the challenge, and RememberDays for how many days the
	// client may be remembered by it. Both are zero without either.
	Key          string  `json:"j,omitempty"`
	RememberDays int     `json:"r,omitempty"`
	Starter      Starter `json:"b,omitzero"`
	// Off holds the factors that were off at a proven start. Completing the challenge proves the user by other
	// factors, and switches them on.
	Off Factors `json:"z,omitempty"`
	// Filter is the user's geographic filter at the start, if the action keeps it (Action.KeepsFilter).
	Filter  geo.Filter `json:"o,omitempty"`
	Methods []Method   `json:"m"`
}

// Kind distinguishes a challenge from a decoy. Their rows have the same length, so writing one costs as much as
// writing the other.
type Kind int8

// DecoyMark is the first character of a decoy's subject, and never of an id.
const DecoyMark = "?"

// The kinds. A Decoy replaces the challenge of an account that does not exist or may not be used (D-PWD-01): it
// behaves like any other, and no value is right. An Applicant is the challenge of a person who applies for an
// account. It has a decoy's subject instead of a user, and its codes are sent and valid.
const (
	Real Kind = iota
	Decoy
	Applicant
)

// Owned reports whether the challenge has an account.
func (k Kind) Owned() bool { return k == Real }

// Owner returns the user's id, or the subject without an account. No user has a subject as its id, and the credential
// version is then 0, so the guard of a user's credentials holds for it.
func (c Challenge) Owner() string {
	if !c.Kind.Owned() {
		return c.Subject
	}
	return c.UserID
}

// Rules are the limits of the state machine; each is configurable under mfa.
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
	FactorAttempts     int // consecutive wrong values that switch a factor off
}

// DefaultRules returns the limits of the decisions.
func DefaultRules() Rules {
	return Rules{
		RenewCutoffMs: 120_000, CodeMaxAgeMs: 600_000, MaxRenewals: 5,
		MethodAttempts: 5, ChallengeAttempts: 10,
		OTPBudget: 20, OTPBudgetWindowMs: 60 * 60_000,
		TOTPBudget: 10, TOTPBudgetWindowMs: 15 * 60_000, FactorAttempts: 100,
	}
}

// Completed reports the wire status: COMPLETED once the last required method is verified, PENDING before (D-2FA-05).
// It never reverts, even when the action may not run any more.
func (c Challenge) Completed() bool {
	return c.State == Executing || c.State == Done || c.State == Closed && c.Last != ""
}

// Ended reports whether the challenge can no longer change.
func (c Challenge) Ended(now time.Time) bool {
	return c.State == Done || c.State == Denied || c.State == Closed || c.Expired(now)
}

func (c Challenge) Expired(now time.Time) bool {
	return c.State == Pending && now.UnixMilli() >= c.ExpiresAt
}

// Deadline returns the next instant at which time alone changes the answers of the challenge; the zero time means
// never.
func (c Challenge) Deadline() time.Time {
	if c.State != Pending {
		return time.Time{}
	}
	return time.UnixMilli(c.ExpiresAt)
}

func (c Challenge) Method(id string) (Method, bool) {
	if i := c.index(id); i >= 0 {
		return c.Methods[i], true
	}
	return Method{}, false
}

// CompletedMethods lists the completed methods in the order of completion. The n-th one is event n of the challenge;
// the outcome is the event after the last (D-SOCK-05).
func (c Challenge) CompletedMethods() []Method {
	var done []Method
	for _, m := range c.Methods {
		if m.Order > 0 {
			done = append(done, m)
		}
	}
	sorting.Func(done, func(a, b Method) int { return a.Order - b.Order })
	return done
}

// Remembered reports whether a remembered client completed a method of the challenge.
func (c Challenge) Remembered() bool {
	return slices.ContainsFunc(c.Methods, func(m Method) bool { return m.Remembered != "" })
}

// Open returns nil while the challenge accepts answers, and otherwise the error of a closed or expired one.
func (c Challenge) Open(now time.Time) error {
	switch {
	case c.Expired(now):
		return fault.New(fault.ChallengeExpired, "the challenge has expired; start again")
	case c.State != Pending:
		return closed()
	}
	return nil
}

// Close ends an open challenge without an outcome. The first ending wins: an ended challenge is returned unchanged.
func (c Challenge) Close(now time.Time, why Reason) Challenge {
	if c.State != Pending || c.Expired(now) {
		return c
	}
	c.State, c.Reason = Closed, why
	return c
}

// Abort is Close for a challenge whose action may not run any more because its starting credentials are gone. It also
// ends Executing.
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

// find looks a method up for complete and renew: existence first, then the agreement of id and name (D-2FA-30).
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

// Shown reports whether a document is the intent of the challenge and covers its sealed command, nil without one. So
// the command is exactly the operation that the document describes.
func (c Challenge) Shown(document, sealedCommand []byte) bool {
	return intent.Digest(document) == c.IntentDigest &&
		intent.Covers(document, c.Action, c.ID, intent.Digest(sealedCommand))
}

// Package stepup drives second-factor challenges: it starts them, renews their codes, accepts answers and returns the
// outcome. It creates the codes, their digests and the sealed messages, so neither an actor nor a row ever holds a
// code (D-2FA-29). It leaves every step that needs an order to the owners of users and challenges, behind the ports
// UserGate and Challenges.
//
// Start reading at Starter.Start and Answerer.Complete. Both share a Messenger.
package stepup

import (
	"context"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/audit"
	"castellan/domain/proof/device"
)

// UserGate is the owner of a user's challenges and of the messages to the user. One owner decides at a time for a
// user, whichever node it runs on.
type UserGate interface {
	// Reserve counts a new challenge. It returns the older ones that make room and the messages that the caps allow.
	// For a start with a proof it counts all messages or, if the caps hold one back, none.
	Reserve(ctx context.Context, userID string, r Reservation) (Grant, error)
	// Send counts one more message and reports whether the caps allow it.
	Send(ctx context.Context, userID string, s Sending, c Caps) (bool, error)
	// DummyCall makes a round trip to an empty owner. A decision without an owner thus takes as long as the others.
	DummyCall(ctx context.Context) error
}

// Reservation describes a challenge that is about to be created.
type Reservation struct {
	ChallengeID string
	Action      string
	ExpiresAt   int64 // ms
	MaxOpen     int
	Sendings    []Sending
	Caps        Caps
	Push        *challenge.PushRules // nil: no push is about to be offered
}

// Sending is a message that is about to be sent to a user.
type Sending struct {
	Channel     message.Channel
	Destination []byte // concatenated keyed hashes (outbox.Sending.To)
	Proven      bool
}

// Caps bound the messages of one user; 0 means no cap (D-EXT-05).
type Caps struct{ DestinationHour, DestinationDay, UserDay int }

// uncapped reports whether no cap needs the number of sent messages.
func (c Config) uncapped() bool {
	return c.Caps == (Caps{}) && c.PrefixHour <= 0 && len(c.DialDay) == 0
}

// Grant is the answer to a Reservation; Send is parallel to its Sendings. PushNumber is the number of the push; 0: it
// is not counted. NoPush means that the challenge must start without a push, and PushWait is how long pushes stay
// blocked.
type Grant struct {
	Supersede  []string
	Send       []bool
	NoPush     bool
	PushNumber int64
	PushWait   time.Duration
}

// Challenges are the owners of challenges. Errors are the faults of the state machine. On UNAVAILABLE and OVERLOADED
// the caller should retry.
type Challenges interface {
	// Prime passes the owner the row that is about to be committed. The call may be lost. If the commit fails, Refresh
	// reverts it.
	Prime(made challenge.Insert)
	// Resume activates the owner of a challenge whose action has not reported. The call may be lost.
	Resume(id string)
	// Refresh notifies the owner that the row was changed elsewhere.
	Refresh(id string)
	// Complete evaluates an answer and, when it was the last required one, waits for the action. OutdatedInput reports
	// that a row changed between the verdict of an answer with a use and its commit: judge it again.
	Complete(ctx context.Context, id string, a challenge.Answer, wait time.Duration, by audit.By) (Answered, error)
	// User returns the user of a challenge; "" for a decoy. CHALLENGE_NOT_FOUND when the challenge does not exist.
	User(ctx context.Context, id string) (string, error)
	// CheckRenew returns what a renewal would renew, and changes nothing.
	CheckRenew(ctx context.Context, id, methodID string, name challenge.Name) (Renewal, error)
	// Renew stores a new OTP and adds its message to the outbox.
	Renew(ctx context.Context, id, methodID string, name challenge.Name, d challenge.Digest, m outbox.Message,
		by audit.By) (challenge.Challenge, error)
	// Result waits at most wait for the outcome.
	Result(ctx context.Context, id string, wait time.Duration) (Answered, error)
}

// Answered is the result of an answer. Outcome is sealed; it is nil while methods remain (Final is false) or the
// action has not reported.
type Answered struct {
	Action  string
	Final   bool
	Outcome []byte
}

// Renewal holds the data that the node of the request needs for the message of a renewal.
type Renewal struct {
	UserID     string
	Subject    string
	Decoy      bool
	Hint       string // of the phone
	Action     string
	Language   string
	Template   string
	Generation int // of the OTP that a renewal would create
	LifetimeMs int64
	Proven     bool
	Brief      string // challenge.Body.Brief
}

// Accounts reads the current account of a user.
type Accounts interface {
	// Account returns RECORD_NOT_FOUND for an unknown or inactive user.
	Account(ctx context.Context, userID string) (challenge.Account, error)
}

// Dispatcher delivers messages that were committed under this node's lease.
type Dispatcher interface {
	// Deliver accepts a message without blocking. A message it cannot accept is claimed by any node when its lease
	// expires. A discarded one is not sent, only settled, at the pace of the others.
	Deliver(m outbox.Message, r message.Rendered)
	// Offers reports whether a channel has a sender at all (D-2FA-29).
	Offers(c message.Channel) bool
}

// Devices verifies the signatures of registered devices, and lists those that want to be woken.
type Devices interface {
	// Answered is device.Service.Answered.
	Answered(ctx context.Context, r device.Request, a device.Answer) (device.Device, device.Claims, error)
	// Wakes is device.Service.Wakes.
	Wakes(ctx context.Context, userID string) ([]device.Wake, error)
	// Assert is device.Service.Assert.
	Assert(ctx context.Context, answer []byte) (device.Asserted, error)
	Counted(ctx context.Context, a device.Asserted, by audit.By) error
	// Meets is device.Service.Meets.
	Meets(ctx context.Context, a device.Asserted, need passkey.Need) (bool, error)
	// Allowed is device.Service.Allowed.
	Allowed(ctx context.Context, userID string, need passkey.Need) (device.Allowed, error)
}

// Tokens signs the token of a challenge.
type Tokens interface {
	PAuth(challengeID string, expiresAt time.Time) (string, error)
}

// Sessions reports whether a session is still active.
type Sessions interface {
	Live(userID, sessionID string, sv int64) bool
}

// Judge decides an answer that no digest can decide, such as a TOTP; Devices judges the answers of devices. It gets
// the user of the challenge ("" for a decoy) and the value as the engine reads it. A right answer that uses up a
// resource names it; the method's entry in actors.Deps.Uses turns that into writes. An error is a failure to judge
// and counts nothing.
type Judge func(ctx context.Context, userID string, a Answer) (challenge.Verdict, *challenge.Use, error)

// Config holds the settings of the engine.
type Config struct {
	TTL      time.Duration // mfa.challenge_ttl
	Grace    time.Duration // mfa.p_auth_grace
	ExecWait time.Duration // mfa.exec_wait
	MaxOpen  int
	Lease    time.Duration // of a message's first delivery
	Caps     Caps
	// MaxCodeAge bounds the lifetime of a code, whatever the configuration (SEC-07).
	MaxCodeAge time.Duration
	// PrefixHour bounds the messages per hour that one IP prefix may cause.
	PrefixHour int
	// DialDay bounds the SMS per day to a dialling prefix.
	DialDay map[string]int
	Push    challenge.PushRules
	// Language is the default of the installation.
	Language string
	// Silent holds the kinds of notices that are not sent (notices.off).
	Silent map[message.Kind]bool
}

// News holds events of a challenge for the sockets that watch it. The n-th completed method is event n; the outcome
// is the event after the last (D-SOCK-05).
type News struct {
	ChallengeID string
	Action      string
	Events      []Event
	Gone        bool // ended without an outcome
}

// Event is a completed method, or the sealed outcome.
type Event struct {
	Number   int
	MethodID string
	Method   challenge.Name
	Outcome  []byte
}

// Feed subscribes this node to the events of challenges.
type Feed interface {
	// Subscribe reports how many of this node's sockets watch a challenge, and subscribes to the events after a
	// number. It returns how many of the sockets exceed the limit.
	Subscribe(ctx context.Context, challengeID string, sockets, after int) (refused int, n News, err error)
}

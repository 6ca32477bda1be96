package challenge

import (
	"context"
	"strconv"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/geo"
)

// Insert adds a challenge with its sealed command (nil for none).
type Insert struct {
	Challenge
	Command []byte
}

func (Insert) Table() string { return "challenge" }

// Update saves a step of a challenge. It is fenced: the row must still have
// Challenge.Version, and has the next version afterwards.
type Update struct{ Challenge }

func (Update) Table() string { return "challenge" }

func (u Update) Fence() (string, int64) { return u.ID, u.Version }

// Supersede closes a challenge that is still pending, whatever its version;
// one that ended already stays as it is.
type Supersede struct{ ID string }

func (Supersede) Table() string { return "challenge" }

// Row tells the writer which row it changes.
func (w Supersede) Row() string { return w.ID }

// Spend saves a Budget. It is fenced by Budget.Version; 0 inserts.
type Spend struct{ Budget }

func (Spend) Table() string { return "attempt_budget" }

func (s Spend) Fence() (string, int64) { return s.Key(), s.Version }

// Key is the key of the budget's row.
func (b Budget) Key() string { return BudgetKey(b.Subject, b.Flow) }

// BudgetKey is the key of the row that counts a subject's wrong values in a
// flow.
func BudgetKey(subject string, f Flow) string { return subject + "/" + string(f) }

// Outcome is the stored result of a challenge's action. Its content, a
// Result, is sealed with OutcomeData(ChallengeID) as associated data.
type Outcome struct {
	ChallengeID string
	CreatedAt   int64 // ms
	ExpiresAt   int64 // ms; when p-auth ends it is gone
	Sealed      []byte
}

// OutcomeData is the associated data under which an outcome is sealed.
func OutcomeData(id string) []byte { return []byte("outcome/" + id) }

// CommandData is the associated data under which a command is sealed.
func CommandData(id string) []byte { return []byte("command/" + id) }

// PayloadData is the associated data under which the message of an OTP is
// sealed (D-2FA-29).
func PayloadData(id, methodID string, generation int) []byte {
	return []byte("payload/" + id + "/" + methodID + "/" + strconv.Itoa(generation))
}

// Record inserts an outcome. The challenge id is its key, so an action has
// one outcome.
type Record struct{ Outcome }

func (Record) Table() string { return "outcome" }

// Ref names a challenge of a user and action that may still be open.
type Ref struct {
	ID        string
	Action    string
	CreatedAt int64 // ms
	ExpiresAt int64 // ms
}

// Store reads challenges. Writes go through commit.Committer as the values
// above. It is safe for concurrent use.
type Store interface {
	// Load reads a challenge; CHALLENGE_NOT_FOUND when there is none.
	Load(ctx context.Context, id string) (Challenge, error)
	// Command reads the sealed command of a challenge; nil when it has none.
	Command(ctx context.Context, id string) ([]byte, error)
	// Budget reads what a subject has spent in a flow; Version 0 when nothing.
	Budget(ctx context.Context, subject string, flow Flow) (Budget, error)
	// Outcome reads the outcome; CHALLENGE_NOT_COMPLETED when there is none.
	Outcome(ctx context.Context, id string) (Outcome, error)
	// Open lists the pending, unexpired challenges of a user or of a decoy's
	// subject, oldest first.
	Open(ctx context.Context, userID string, now time.Time) ([]Ref, error)
	// Pending reads what Open lists whole, with the sealed commands, newest first.
	// Of a decoy's subject there is nothing to read.
	Pending(ctx context.Context, userID string, now time.Time) ([]Insert, error)
	// Pushes lists the newest pushes of a user that were not approved, newest first: max
	// at least, if there are so many. With them it lists, also where they were approved,
	// the newest of all, those sent since an instant (twenty at least) and the newest
	// before it.
	Pushes(ctx context.Context, userID string, max int, since time.Time) ([]Push, error)
	// States reads the states of challenges; unknown ids are left out.
	States(ctx context.Context, ids []string) (map[string]State, error)
	// Stuck lists executing challenges without an outcome that were last
	// touched before the given instant.
	Stuck(ctx context.Context, before time.Time, max int) ([]string, error)
	// Purge removes challenges made before an instant, and budgets untouched
	// since a day before it, of these and of what is very much a part at a time.
	Purge(ctx context.Context, made time.Time) error
	// PurgePushes removes the pushes of challenges made before an instant.
	PurgePushes(ctx context.Context, before time.Time) error
	// PurgeOutcomes removes the outcomes that ended before now, of challenges
	// made before an instant: that much they live at least.
	PurgeOutcomes(ctx context.Context, now, made time.Time) error
}

// Account is what a challenge needs to know of the user it is for.
type Account struct {
	UserID   string
	Phone    string // canonical, +905…; "" for none
	Dial     string // its country code, digits only
	Mail     string
	TOTP     bool
	Push     bool
	CV, SV   int64
	Language string
	// Countries is the account's geographic filter.
	Countries geo.Filter
	Off       Factors
}

// Owns reports whether the account can complete a method of this kind.
func (a Account) Owns(n Name) bool {
	switch n {
	case SMS:
		return a.Phone != ""
	case MAIL:
		return a.Mail != ""
	case TOTP:
		return a.TOTP
	case PUSH:
		return a.Push
	}
	return false
}

// Notices makes the writes that tell the owner of an account what happened to it; they
// commit with that. stepup.Messenger is one, and says more.
type Notices interface {
	Notice(to Account, k message.Kind, v message.Values, ip string) []commit.Write
}

// StartRequest asks for a new challenge.
type StartRequest struct {
	Action  string
	Account Account
	Starter Starter
	// Decoy, where it is not "", makes the challenge a decoy and is its subject:
	// a keyed hash of the length of an id. Account then holds the phone that was
	// asked for and no user, and nothing is sent.
	Decoy string
	// Applicant, where it is not "", makes the challenge that of a person who has no account
	// yet, and is its subject, as that of a decoy. Account then holds the phone number and
	// the mail address that were typed. Of the methods in Withheld nothing is sent and no
	// value is right; nothing else shows which they are.
	Applicant string
	Withheld  []Name
	// Proven says that the starter held a session or a right password, so
	// that the full send caps apply (D-EXT-05).
	Proven bool
	// Command is what the action will run with; the engine seals it.
	Command []byte
	// With are further writes that commit together with the new challenge.
	With []commit.Write
	// Bind, where it is set, makes further such writes that name the new challenge.
	Bind func(challengeID string) []commit.Write
}

// Holder is whose a challenge is: "" for a decoy. Where KeepsFilter is true the
// requests that name the challenge are judged by Filter, and not by the present
// geographic filter of the user (D-GEO-02). A challenge that was started without a
// proof keeps an empty one: only a real account has a filter, and whether there is
// one must not show before the token of the outcome is redeemed (D-PWD-01).
type Holder struct {
	UserID      string
	KeepsFilter bool
	Filter      geo.Filter
}

// Started is a new challenge and the token that opens it.
type Started struct {
	Challenge Challenge
	PAuth     string
	ExpiresAt time.Time // of PAuth
}

// Starts starts challenges. Errors: MFA_NOT_AVAILABLE when the account owns
// fewer methods than the policy requires, RATE_LIMITED, UNAVAILABLE,
// OVERLOADED.
type Starts interface {
	Start(ctx context.Context, r StartRequest) (Started, error)
}

package challenge

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/geo"
)

// Insert adds a challenge with its sealed command (nil for none) and its sealed intent document.
type Insert struct {
	Challenge
	Command []byte
	Intent  []byte
}

func (Insert) Table() string { return "challenge" }

// Update saves a step of a challenge. It is fenced: the row must still have Challenge.Version, and gets the next
// version.
type Update struct{ Challenge }

func (Update) Table() string            { return "challenge" }
func (u Update) Fence() (string, int64) { return u.ID, u.Version }

// Supersede closes a challenge that is still pending, whatever its version. An ended one is unchanged.
type Supersede struct{ ID string }

func (Supersede) Table() string { return "challenge" }
func (w Supersede) Row() string { return w.ID }

// Spend saves a Budget. It is fenced by Budget.Version; 0 inserts.
type Spend struct{ Budget }

func (Spend) Table() string            { return "attempt_budget" }
func (s Spend) Fence() (string, int64) { return s.Key(), s.Version }

// Key returns the key of the budget's row.
func (b Budget) Key() string { return BudgetKey(b.Subject, b.Flow) }

// BudgetKey returns the key of the row that counts a subject's wrong values in a flow.
func BudgetKey(subject string, f Flow) string { return subject + "/" + string(f) }

// Outcome is the stored result of a challenge's action. Its content, a Result, is sealed with
// OutcomeData(ChallengeID) as associated data.
type Outcome struct {
	ChallengeID string
	CreatedAt   int64 // ms
	ExpiresAt   int64 // ms; the outcome is deleted when p-auth ends
	Sealed      []byte
}

// OutcomeData returns the associated data of a sealed outcome.
func OutcomeData(id string) []byte { return []byte("outcome/" + id) }

// CommandData returns the associated data of a sealed command.
func CommandData(id string) []byte { return []byte("command/" + id) }

// IntentData returns the associated data of a sealed intent document.
func IntentData(id string) []byte { return []byte("intent/" + id) }

// PayloadData returns the associated data of the sealed message of an OTP (D-2FA-29).
func PayloadData(id, methodID string, generation int) []byte {
	return []byte("payload/" + id + "/" + methodID + "/" + strconv.Itoa(generation))
}

// Record inserts an outcome. The challenge id is its key, so an action has one outcome.
type Record struct{ Outcome }

func (Record) Table() string { return "outcome" }

// Ref names a challenge of a user and action that may still be open.
type Ref struct {
	ID        string
	Action    string
	CreatedAt int64 // ms
	ExpiresAt int64 // ms
}

// Compare orders challenges by their creation.
func (r Ref) Compare(o Ref) int { return cmp.Compare(r.CreatedAt, o.CreatedAt) }

// MakeRoom returns which open challenges of an action a new one closes, so that at most a number of them is open, with
// the new one. open is oldest first. closer has the challenge that closes another one when its row is written: until
// then both share a place, because the row may never be written. A shared place is as old as the closer, and both are
// closed at once.
func MakeRoom(open []string, closer map[string]string, most int) []string {
	shared := func(id string) bool { return slices.Contains(open, closer[id]) }
	ids := slices.DeleteFunc(slices.Clone(open), shared)
	if len(ids) < most {
		return nil
	}
	ids = ids[:len(ids)+1-most]
	for _, id := range open {
		if slices.Contains(ids, closer[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Store reads challenges. Writes go through commit.Committer as the values
// above. It is safe for concurrent use.
type Store interface {
	// Load reads a challenge; CHALLENGE_NOT_FOUND if it does not exist.
	Load(ctx context.Context, id string) (Challenge, error)
	// Sealed reads the sealed command and the sealed intent of a challenge; nil if it has none.
	Sealed(ctx context.Context, id string) (command, intent []byte, err error)
	// Budget reads the wrong values of a subject in a flow; Version is 0 without a row.
	Budget(ctx context.Context, subject string, flow Flow) (Budget, error)
	// Outcome reads the outcome; CHALLENGE_NOT_COMPLETED if it does not exist.
	Outcome(ctx context.Context, id string) (Outcome, error)
	// Open lists the pending, unexpired challenges of a user or of a decoy's subject, oldest first.
	Open(ctx context.Context, userID string, now time.Time) ([]Ref, error)
	// Pending reads the challenges of Open in full, with the sealed commands, newest first. For a decoy's subject it
	// returns none.
	Pending(ctx context.Context, userID string, now time.Time) ([]Insert, error)
	// Pushes lists the newest unapproved pushes of a user, newest first: at least max, if so many exist. It also
	// lists some others, approved or not: the newest of all, those sent since an instant (at least twenty), and the
	// newest one before it.
	Pushes(ctx context.Context, userID string, max int, since time.Time) ([]Push, error)
	// States reads the states of challenges and omits unknown ids.
	States(ctx context.Context, ids []string) (map[string]State, error)
	// Stuck lists executing challenges without an outcome whose last change was before the given instant.
	Stuck(ctx context.Context, before time.Time, max int) ([]string, error)
	// Evidence reads a challenge with its sealed intent, also after Purge if it had ended. RECORD_NOT_FOUND if it does
	// not exist or has no intent.
	Evidence(ctx context.Context, id string) (Insert, error)
	// Purge removes challenges created before an instant, and budgets unchanged since a day before it. It works in
	// batches if the rows are very many. Evidence of the ended challenges remains, without their commands.
	Purge(ctx context.Context, made time.Time) error
	// PurgeEvidence removes the evidence of challenges created before an instant.
	PurgeEvidence(ctx context.Context, made time.Time) error
	// PurgePushes removes the pushes of challenges created before an instant.
	PurgePushes(ctx context.Context, before time.Time) error
	// PurgeOutcomes removes the outcomes that ended before now, of challenges created before an instant: they live at
	// least that long.
	PurgeOutcomes(ctx context.Context, now, made time.Time) error
}

// Account holds the data of a user that a challenge needs.
type Account struct {
	UserID   string
	Phone    string // canonical, +905…; "" for none
	Dial     string // its country code, digits only
	Mail     string
	TOTP     bool
	Push     bool
	Passkeys bool // at least one device is a passkey
	CV, SV   int64
	Language string
	// Countries is the account's geographic filter.
	Countries geo.Filter
	Off       Factors
}

// Owners are active accounts that own the same methods. The phone and the address of Account say only that there are.
type Owners struct {
	Account
	Count int
}

// Notices creates the writes that notify the owner of an account of a change; they commit with the change.
// stepup.Messenger implements it and documents more.
type Notices interface {
	Notice(to Account, k message.Kind, v message.Values, ip string) []commit.Write
}

// ClientKey is the key by which a client can be remembered (D-AUTH-17). The zero value is none.
type ClientKey struct {
	Thumbprint string // RFC 7638
	// Proven reports whether this request has shown that the client holds the key. Otherwise Prove does so, once however
	// often it is called; nil if the request has no proof. Its errors are DPOP_INVALID and UNAVAILABLE.
	Proven bool
	Prove  func(ctx context.Context) error
}

// StartRequest describes a new challenge.
type StartRequest struct {
	Action  string
	Account Account
	Starter Starter
	// Decoy, if not "", makes the challenge a decoy and is its subject: a keyed hash of the length of an id. Account
	// then holds the requested phone and no user, and nothing is sent.
	Decoy string
	// Applicant, if not "", makes the challenge that of a person without an account, and is its subject, like that of
	// a decoy. Account then holds the typed phone number and mail address. The methods in Withheld send nothing and
	// no value is right for them; nothing else reveals them.
	Applicant string
	Withheld  []Name
	// Proven means that the starter had a session or a right password, so that the full send caps apply (D-EXT-05).
	Proven bool
	// Key is the key of the starter's client.
	Key ClientKey
	// Entry is the part of a passkey in the login: Key if one was its first factor. The engine makes it Alone if the
	// policy says so.
	Entry Entry
	// Counts reports whether that passkey counts for policies with phishingResistant.
	Counts bool
	// Recovered means that a recovery code, whose use is in With, replaces the passkey that a change of factors requires.
	Recovered bool
	// Command is the input of the action; the engine seals it.
	Command []byte
	// Service names the service client that starts the challenge. ServiceAction runs then, and Action is only the code
	// for policies, titles and headers. The labels of its details are those of the service.
	Service string
	// Title and Details replace the title of the action and its details in the intent. Title "" keeps the title.
	Title   string
	Details []Detail
	// Brief is that of a challenge whose action has none of its own. That of a service is filtered.
	Brief string
	// With are further writes that commit together with the new challenge.
	With []commit.Write
	// Bind, if set, returns further such writes that name the new challenge.
	Bind func(made Challenge) []commit.Write
}

// Holder is the user of a challenge: "" for a decoy. If KeepsFilter is true, the requests that name the challenge are
// judged by Filter instead of the user's current geographic filter (D-GEO-02). A challenge that was started without a
// proof has an empty Filter. Only a real account has a filter, and its existence must not show before the outcome's
// token is redeemed (D-PWD-01).
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
	// Result is the outcome of a challenge that its start has completed; nil for any other, and as long as the action has
	// not reported.
	Result *Result
	// WebAuthn are the request options for the push, as JSON; nil: no passkey may approve it.
	WebAuthn []byte
}

// Starts starts challenges. Errors: MFA_NOT_AVAILABLE when the account owns fewer methods than the policy requires,
// RATE_LIMITED, UNAVAILABLE, OVERLOADED.
type Starts interface {
	Start(ctx context.Context, r StartRequest) (Started, error)
}

// Restarts also returns a challenge that was started before, with another token. Errors: CHALLENGE_NOT_FOUND.
type Restarts interface {
	Starts
	Again(ctx context.Context, challengeID string) (Started, error)
}

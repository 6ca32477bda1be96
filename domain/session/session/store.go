package session

import (
	"context"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
)

// Add inserts a session. It is fenced by the credential version of its user, and blocks its increment until the
// commit. So a transaction that raises the version and then reads the active sessions sees this one (D-AUTH-11).
//
// The session is also a line of the login history, with the same id: a completed login writes one row.
type Add struct {
	Session
	CV int64 // under which the user was authenticated
}

func (Add) Table() string            { return "session" }
func (w Add) Fence() (string, int64) { return w.UserID, w.CV }

// Guarded returns the guard of the credentials that the fence includes.
func (w Add) Guarded() commit.Guard {
	return commit.Guard{On: commit.UserCredentials, Key: w.UserID, Version: w.CV}
}

// NoOtherSessions is the condition that the user has only the listed active sessions. A unit uses it to raise the
// user's credential version and end the sessions one by one without missing any. A concurrent login is either seen
// here, and the unit fails with commit.ErrFenced, or is refused itself.
type NoOtherSessions struct {
	UserID string
	IDs    []string
	At     time.Time // sessions that expired by then are not active
}

func (NoOtherSessions) Table() string            { return "session" }
func (w NoOtherSessions) Fence() (string, int64) { return w.UserID, 0 }

// End ends a session of a user. It does not change a session that has ended, belongs to another user or does not
// exist. The note of its end (Ended) accompanies it.
type End struct {
	SessionID, UserID string
	At                time.Time
}

func (End) Table() string { return "session" }
func (w End) Row() string { return w.SessionID }

// Bind binds a new session to the key with a thumbprint (RFC 7638).
type Bind struct{ SessionID, Thumbprint string }

func (Bind) Table() string { return "session_key" }

// Unbind ends the renewals of a session that is bound to a key. Its token stays valid until its own end. A session
// without a key does not change.
type Unbind struct{ SessionID string }

func (Unbind) Table() string { return "session_key" }

// Renewed extends a session that is bound to a key, and records its use. It is fenced: the session must be active,
// bound to that key and used after an instant.
type Renewed struct {
	SessionID, UserID string
	Thumbprint        string
	At                time.Time
	UsedAfter         time.Time // zero for any
	Until             time.Time // the new Session.ExpiresAt
}

func (Renewed) Table() string { return "session" }

// Fence makes two renewals of one session go into different batches.
func (w Renewed) Fence() (string, int64) { return w.SessionID, w.At.UnixMilli() }

// Seen records that a session was in use at an instant. An earlier instant than the recorded one changes nothing.
type Seen struct {
	SessionID string
	At        time.Time
}

func (Seen) Table() string { return "session" }
func (w Seen) Row() string { return w.SessionID }

// Remember inserts a line of the login history without a Refusal. A login does not need it: its session is the line.
type Remember struct{ Login }

func (Remember) Table() string { return "login_history" }

// RememberRefused inserts a line of the login history about a refused login, with its Refusal. It is a separate write,
// so that completed logins do not pay for the columns.
type RememberRefused struct{ Login }

func (RememberRefused) Table() string { return "login_history" }

// Refused adds a refused login with an unknown identifier to those of its site and minute. They are folded
// (Service.FoldRefusals), because strangers can make any number of them.
type Refused struct {
	Site   string // client.Site
	Minute time.Time
	Count  int64
}

// RefusedMinute is the layout of the minute at the start of a Refused's key.
const RefusedMinute = "200601021504"

func (Refused) Table() string   { return "refused_login" }
func (w Refused) Delta() string { return w.Minute.UTC().Format(RefusedMinute) + " " + w.Site }

func (w Refused) Plus(other Refused) (Refused, bool) {
	w.Count += other.Count
	return w, true
}

// Ended returns the note that informs other nodes of the end of a session.
func Ended(sessionID, userID string) change.Note {
	return change.Note{Topic: change.Sessions, Key: sidKey(sessionID, userID)}
}

// EndAll returns the writes that end every session of a user, with the notes for the other nodes. They are fenced by
// the user's row as the caller read it. After the commit, pass u.SV+1 to this node's Revocations.
func EndAll(u user.User, at time.Time) []commit.Write {
	return []commit.Write{
		user.EndSessions{UserID: u.ID, SV: u.SV, At: at},
		change.Note{Topic: change.Sessions, Key: svKey(u.ID, u.SV+1)},
		change.Note{Topic: change.Users, Key: u.ID},
	}
}

// Store reads sessions. A session is active until it ends or expires, while its version is the user's. Writes go
// through commit.Committer as the values above. It is safe for concurrent use.
type Store interface {
	// Get reads an active session of a user; RECORD_NOT_FOUND for one that is not active, does not exist or belongs
	// to another user.
	Get(ctx context.Context, userID, sessionID string, now time.Time) (Session, error)
	// Bound is Get with the thumbprint of the session's key; "" for a session without one.
	Bound(ctx context.Context, userID, sessionID string, now time.Time) (Session, error)
	// Proved reports whether one of the uses of proofs among the writes, those of dpop.Verifier.Use, was recorded before.
	Proved(ctx context.Context, uses []commit.Write, now time.Time) (bool, error)
	// List returns the active sessions of a user, newest first, at most limit.
	List(ctx context.Context, userID string, now time.Time, limit int) ([]Session, error)
	// Count counts the active sessions of a user.
	Count(ctx context.Context, userID string, now time.Time) (int, error)
	// Revoked lists the ends at or after since: single sessions, and raised versions.
	Revoked(ctx context.Context, since time.Time) ([]Revocation, error)
	// Logins returns a page of the history of a user, newest first. Sessions are lines of it, before and after Purge.
	Logins(ctx context.Context, userID string, q page.Query[LoginPlace]) (page.Of[Login], error)
	// LoginsFrom returns the history of an address over all users.
	LoginsFrom(ctx context.Context, ip string, limit int) ([]Login, error)
	// RefusedLogins returns a page of the refused logins over all users, newest first. Its cost does not depend on the
	// number of completed logins.
	RefusedLogins(ctx context.Context, _ struct{}, q page.Query[LoginPlace]) (page.Of[Login], error)
	// TakeRefused removes and returns the counts of Refused for minutes that began before an instant, oldest first
	// and at most limit. Of concurrent callers only one gets each count. Call it inside commit.Committer.InTx.
	TakeRefused(ctx context.Context, before time.Time, limit int) ([]Refused, error)
	// Purge removes sessions that expired before an instant, and lines of the history older than another. The line of a
	// removed session stays in the history. It finds them by their ids, which are those of package id.
	Purge(ctx context.Context, expired, history time.Time) error
}

package session

import (
	"context"
	"time"

	"castellan/domain/access/user"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
)

// Add inserts a session. It is fenced by the credential version of its user, and
// keeps that from rising until it has committed: whoever raises it and then reads the
// living sessions, in one transaction, sees this one (D-AUTH-11).
type Add struct {
	Session
	CV int64 // under which the user was authenticated
}

func (Add) Table() string { return "session" }

func (w Add) Fence() (string, int64) { return w.UserID, w.CV }

// Only is the condition that no other session of a user lives than those listed. A
// unit that raises the user's credential version with it, and ends sessions one by
// one, misses none: one that is being born is either seen here, and the unit is
// refused with commit.ErrFenced, or is refused itself.
type Only struct {
	UserID string
	IDs    []string
	At     time.Time // those that have expired by then do not live
}

func (Only) Table() string { return "session" }

func (w Only) Fence() (string, int64) { return w.UserID, 0 }

// End ends a session of a user; one that has ended, is another user's or does
// not exist stays as it is. The note of its end (Ended) goes beside it.
type End struct {
	SessionID, UserID string
	At                time.Time
}

func (End) Table() string { return "session" }

// Row tells the writer which row it changes.
func (w End) Row() string { return w.SessionID }

// Seen says that a session was in use at an instant. An earlier one than is
// known changes nothing.
type Seen struct {
	SessionID string
	At        time.Time
}

func (Seen) Table() string { return "session" }

// Row tells the writer which row it changes.
func (w Seen) Row() string { return w.SessionID }

// Remember inserts a line of the login history.
type Remember struct{ Login }

func (Remember) Table() string { return "login_history" }

// Refused adds a refused login with an identifier that nobody has to those of its site
// and minute. They are folded (Service.FoldRefusals), because strangers can make any
// number of them.
type Refused struct {
	Site   string // client.Site
	Minute time.Time
	Count  int64
}

// RefusedMinute is how the key of a Refused begins: with its minute, as a layout.
const RefusedMinute = "200601021504"

func (Refused) Table() string { return "refused_login" }

func (w Refused) Delta() string { return w.Minute.UTC().Format(RefusedMinute) + " " + w.Site }

func (w Refused) Plus(other Refused) (Refused, bool) {
	w.Count += other.Count
	return w, true
}

// Ended is the note by which other nodes learn that a session was ended.
func Ended(sessionID, userID string) change.Note {
	return change.Note{Topic: change.Sessions, Key: sidKey(sessionID, userID)}
}

// EndAll are the writes that end every session of a user, with the notes for the
// other nodes. They are fenced by the user's row as the caller read it. After the
// commit, tell this node's Revocations of u.SV+1.
func EndAll(u user.User, at time.Time) []commit.Write {
	return []commit.Write{
		user.EndSessions{UserID: u.ID, SV: u.SV, At: at},
		change.Note{Topic: change.Sessions, Key: svKey(u.ID, u.SV+1)},
		change.Note{Topic: change.Users, Key: u.ID},
	}
}

// Store reads sessions. A session lives while it has not ended or expired and
// its version is the user's. Writes go through commit.Committer as the values
// above. It is safe for concurrent use.
type Store interface {
	// Get reads a living session of a user; RECORD_NOT_FOUND for one that does
	// not live, does not exist or is another user's.
	Get(ctx context.Context, userID, sessionID string, now time.Time) (Session, error)
	// List returns the living sessions of a user, newest first, at most limit.
	List(ctx context.Context, userID string, now time.Time, limit int) ([]Session, error)
	// Count counts the living sessions of a user.
	Count(ctx context.Context, userID string, now time.Time) (int, error)
	// Extend lets a living session of a user expire at until; RECORD_NOT_FOUND for one
	// that has ended, does not exist or is another user's, also when it ends at the
	// same time.
	Extend(ctx context.Context, userID, sessionID string, until time.Time) error
	// Revoked lists what was ended at or after since: sessions one by one, and
	// versions that rose.
	Revoked(ctx context.Context, since time.Time) ([]Revocation, error)
	// Logins returns a page of the history of a user, newest first.
	Logins(ctx context.Context, userID string, q page.Query[LoginPlace]) (page.Of[Login], error)
	// LoginsFrom returns the history of an address over all users.
	LoginsFrom(ctx context.Context, ip string, limit int) ([]Login, error)
	// TakeRefused removes what was added by Refused for minutes that began before an
	// instant, oldest first and at most limit, and returns it. Of those that take at the
	// same time one gets it. Call it inside commit.Committer.InTx.
	TakeRefused(ctx context.Context, before time.Time, limit int) ([]Refused, error)
	// Purge removes sessions that expired before an instant, and lines of the
	// history older than another. It finds them by their ids, which are those of
	// package id.
	Purge(ctx context.Context, expired, history time.Time) error
}

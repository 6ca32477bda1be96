// Package session is what a login leaves behind: the session, the token that
// proves it, and the ways in which it ends (decisions D-AUTH-01, 11, 12).
//
// The one idea: a session is judged without reading the database. Its token is
// signed, and each node holds a small table of the revocations of the
// last token lifetime; ending one session revokes its id, ending all sessions
// of a user is one increment of the version that every token names. What a
// node revokes it knows before it answers; the others learn it from the change
// feed.
//
// Start reading at Service (login.go, then action.go and end.go), then
// Revocations.
package session

import "time"

// Session is a device on which a user is logged in. Its ID is the sessionKey
// of the interface: an opaque name and no secret (D-AUTH-12).
type Session struct {
	ID          string
	UserID      string
	CreatedAt   time.Time
	LastSeenAt  time.Time
	ExpiresAt   time.Time // of its token
	EndedAt     time.Time // zero while it lives
	IP          string
	Country     string // ISO 3166-1 alpha-2; "" when unknown
	Brand       string
	Model       string
	Description string
	DeviceID    string // as the client said; "" for none
	SV          int64  // session version of the user when it was made
	AMR         []string
}

// Login is one line of the login history: a login that was completed, or a
// try that was refused. UserID is "" where nobody has the identifier.
type Login struct {
	ID          string
	UserID      string
	At          time.Time
	IP          string
	Country     string
	Brand       string
	Model       string
	Description string
	Success     bool
}

// LoginPlace is where a login stands in the history, newest first.
type LoginPlace struct{ ID string }

func (l Login) Mark() LoginPlace { return LoginPlace{l.ID} }

// Revocation is what the nodes must know of an end: the id of a session, or,
// where SessionID is "", the least version of the user's that still counts.
type Revocation struct {
	UserID    string
	SessionID string
	SV        int64
	At        time.Time
}

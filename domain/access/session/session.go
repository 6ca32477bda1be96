// Package session owns the sessions of logged-in users: the session, the token that proves it, and the ways in which
// it ends (decisions D-AUTH-01, 11, 12).
//
// The one idea: a session is checked without reading the database. Its token is signed, and each node holds a small
// table of the revocations of the last token lifetime. Ending one session revokes its id. Ending all sessions of a
// user increments the version that every token names. A node has its own revocations in the table before it answers;
// the others get them from the change feed.
//
// Start reading at Service (login.go, then action.go and end.go), then Revocations.
package session

import "time"

// Session is a device on which a user is logged in. Its ID is the sessionKey of the interface: an opaque name and no
// secret (D-AUTH-12).
type Session struct {
	ID          string
	UserID      string
	CreatedAt   time.Time
	LastSeenAt  time.Time
	ExpiresAt   time.Time // of its token
	EndedAt     time.Time // zero while it is active
	IP          string
	Country     string // ISO 3166-1 alpha-2; "" when unknown
	Brand       string
	Model       string
	Description string
	DeviceID    string // as the client sent it; "" for none
	SV          int64  // session version of the user at its creation
	AMR         []string
}

// Login is one line of the login history: a completed login, or a refused try. UserID is "" for an unknown
// identifier.
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

// LoginPlace is the position of a login in the history, newest first.
type LoginPlace struct{ ID string }

func (l Login) Mark() LoginPlace { return LoginPlace{l.ID} }

// Revocation describes an end to the nodes: the id of a session or, if SessionID is "", the user's lowest valid
// version.
type Revocation struct {
	UserID    string
	SessionID string
	SV        int64
	At        time.Time
}

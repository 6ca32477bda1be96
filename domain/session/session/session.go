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

import (
	"time"

	"castellan/domain/account/password"
)

// Session is a device on which a user is logged in. Its ID is the sessionKey of the interface: an opaque name and no
// secret (D-AUTH-12).
type Session struct {
	ID         string
	UserID     string
	CreatedAt  time.Time
	LastSeenAt time.Time
	// ExpiresAt is the expiry of its token. For a session with a key it is the last instant at which it can be renewed
	// if it is used until the token expires.
	ExpiresAt   time.Time
	EndedAt     time.Time // zero while it is active
	IP          string
	Country     string // ISO 3166-1 alpha-2; "" when unknown
	Brand       string
	Model       string
	Description string
	DeviceID    string // as the client sent it; "" for none
	SV          int64  // session version of the user at its creation
	AMR         []string
	// Thumbprint names the key to which the session is bound (RFC 7638); "" for none. Only Store.Bound reads it.
	Thumbprint string
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
	Refusal     Refusal // zero for a completed login, and for a refused one that was stored before its cause was
}

// Reason is the cause of a refused login. It is for operators only: the answer to the client is the same for all.
type Reason string

// The reasons, in the order in which they are judged: with a wrong password the others are not looked at. A login that
// a firewall rule or the guard of wrong passwords refuses is not judged and leaves no line.
const (
	WrongPassword Reason = "password"
	Inactive      Reason = "status"  // the status of the account does not allow logins
	MustReset     Reason = "reset"   // the password must be reset first (D-COR-03)
	NotAdmitted   Reason = "country" // the location is not allowed for the account (D-GEO-02)
)

// Refusal is the cause of a refused login, and what remained after it.
type Refusal struct {
	Reason Reason
	// Standing counts the refused tries from the same network prefix, this one included.
	Standing password.Standing
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

package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
)

// The JOSE types of a grant, which a client sends with its request, and of an assertion, which the upstream reads.
const (
	GrantType     = "guard-gateway+jwt"
	AssertionType = "guard-assertion+jwt"
)

// Life is how long a grant and an assertion are valid.
const Life = time.Minute

// Header is the header of a grant, in the request of the client and in the answer that completes the challenge.
const Header = "castellan-grant"

// User is the bearer of a request.
type User struct {
	ID      string
	Session string // of this service, or issuer.Identity.Session
}

// bound is what a grant binds. It is the command of the challenge.
type bound struct {
	Route   int64  `json:"rte"`
	Subject string `json:"sub"`
	Session string `json:"sid"`
	Host    string `json:"hst"`
	Method  string `json:"htm"`
	Path    string `json:"pth"`
	Query   string `json:"qry"`           // its pairs are sorted by key
	Digest  string `json:"dig,omitempty"` // Content-Digest as first sent
	Rows    string `json:"row"`           // base64url of the SHA-256 of the shown rows
}

// bind returns what a grant for a request must bind.
func bind(of User, r Route, q Request, rows []challenge.Detail) (bound, error) {
	text, err := json.Marshal(rows)
	if err != nil {
		return bound{}, fmt.Errorf("guard: rows: %w", err)
	}
	sum := sha256.Sum256(text)
	return bound{r.ID, of.ID, of.Session, q.Host, q.Method, q.Path, sorted(q.Query), q.Digest,
		base64.RawURLEncoding.EncodeToString(sum[:])}, nil
}

// same reports whether a repeated request is the one that was bound. A digest that only the repetition has was not
// bound.
func (b bound) same(again bound) bool {
	if b.Digest == "" {
		again.Digest = ""
	}
	return b == again
}

// claims are the claims of a grant and of an assertion, in order. The action is act, the digest of the signed intent
// int, and amr has the methods that were completed.
type claims struct {
	Issuer    string `json:"iss"`
	IssuedAt  int64  `json:"iat"`
	ExpiresAt int64  `json:"exp"`
	ID        string `json:"jti"` // of the challenge
	bound
	Action  string   `json:"act"`
	Intent  string   `json:"int"`
	Methods []string `json:"amr"`
}

// Grant is the row of a completed challenge.
type Grant struct {
	ID     string // of the challenge
	UserID string
	MadeAt time.Time
	UsedAt time.Time // zero until it is used
	Use    string    // the one use; "" until then
}

// Add inserts a grant, in the commit that completes its challenge.
type Add struct{ Grant }

func (Add) Table() string { return "guard_grant" }

// Use marks a grant as used. It is fenced: the grant must not be used.
type Use struct {
	ID, Use string
	At      time.Time
}

func (Use) Table() string            { return "guard_grant" }
func (u Use) Fence() (string, int64) { return u.ID, 0 }

// Decision is the answer to a gateway. Challenge is set if the user must complete one first.
type Decision struct {
	User      User   // zero for a request without a route
	Assertion string // for the upstream of a guarded request
	Challenge *challenge.Started
	Action    string             // of the challenge
	Rows      []challenge.Detail // that the challenge shows
}

// Guard decides about requests. All fields are required, except those in Stats.
type Guard struct {
	Routes func() *Table
	// Fresh calls judge while the node's copy of the routes is current, perhaps twice. UNAVAILABLE if it is not.
	Fresh      func(ctx context.Context, judge func() error) error
	Store      Store
	Commit     commit.Committer
	Engine     challenge.Restarts
	Challenges interface {
		Pending(ctx context.Context, userID string, now time.Time) ([]challenge.Insert, error)
	}
	Open       func(sealed, ad []byte) ([]byte, error)                             // unseals a command
	Account    func(ctx context.Context, userID string) (challenge.Account, error) // RECORD_NOT_FOUND if not active
	Statements interface {
		SignStatement(typ string, claims any) (string, error)
		ReadStatement(typ, raw string, claims any) error
	}
	Issuer string
	Now    func() time.Time
	// BuiltIn reports whether a code is that of an action of this service. Routes of earlier versions may have one.
	BuiltIn func(code string) bool
	// RefuseUnknownHost refuses requests without a route whose host no route names, while routes name hosts.
	RefuseUnknownHost bool
	// Stats counts what the guard decided.
	Stats struct{ Unguarded, Sessions, Challenged, Granted, Refused, Tried atomic.Int64 }
	tried sync.Map // of *atomic.Int64, by the id of a route on trial
	// spelled is what Flush stores next.
	spelledMu sync.Mutex
	spelled   map[spelledKey]*Spelled
}

// Tried returns for how many requests of this node a route on trial would have decided, since the node started.
func (g *Guard) Tried(routeID int64) int64 {
	if n, known := g.tried.Load(routeID); known {
		return n.(*atomic.Int64).Load()
	}
	return 0
}

func (g *Guard) try(routeID int64) {
	g.Stats.Tried.Add(1)
	n, known := g.tried.Load(routeID)
	if !known {
		n, _ = g.tried.LoadOrStore(routeID, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}

// Caller authenticates the bearer of a request. It is called only for a request with a route.
type Caller func(ctx context.Context) (User, challenge.Starter, audit.By, error)

// timeout bounds a decision about a request with a route.
const timeout = 10 * time.Second

// Check decides about a request, which may carry a grant. A request without a route reads no database, and starts no
// timer. Other decisions end after ten seconds.
//
// Errors: those of caller; FORBIDDEN for an ambiguous request, a route of mode refuse or with an action of this
// service, an unknown host, and values that cannot be shown; GRANT_MISMATCH for a grant of another request, user or
// session; GRANT_USED; TOKEN_EXPIRED for a grant that is too old; MFA_NOT_AVAILABLE and RATE_LIMITED of the challenge;
// UNAVAILABLE if the database cannot be reached.
func (g *Guard) Check(ctx context.Context, q Request, grant string, caller Caller) (d Decision, err error) {
	var m Match
	if err := g.Fresh(ctx, func() error { m = g.Routes().Match(q); return nil }); err != nil {
		return d, err
	}
	if m.Tried != nil {
		g.try(m.Tried.ID)
	}
	if m.Respelled != nil {
		g.note(m)
	}
	if err := g.refusal(m); err != nil {
		g.Stats.Refused.Add(1)
		return d, err
	}
	if m.Route == nil {
		g.Stats.Unguarded.Add(1)
		return d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	user, from, by, err := caller(ctx)
	if err == nil && m.Route.Mode == Guarded {
		d, err = g.guarded(ctx, *m.Route, m, q, grant, user, from, by)
	}
	d.User = user
	switch {
	case err != nil:
		g.Stats.Refused.Add(1)
		return Decision{}, err
	case d.Challenge != nil:
		g.Stats.Challenged.Add(1)
	case d.Assertion != "":
		g.Stats.Granted.Add(1)
	default:
		g.Stats.Sessions.Add(1)
	}
	return d, nil
}

// refusal returns FORBIDDEN for a request that no user may send.
func (g *Guard) refusal(m Match) error {
	switch {
	case m.Ambiguous:
		return fault.New(fault.Forbidden, "the request is ambiguous: see docs/guard.md")
	case m.UnknownHost && g.RefuseUnknownHost:
		return fault.New(fault.Forbidden, "no route names the host: see docs/guard.md")
	case m.Route != nil && m.Route.Mode == Refuse:
		return fault.New(fault.Forbidden, "a route refuses the request")
	case m.Route != nil && m.Route.Mode == Guarded && g.BuiltIn(m.Route.ActionCode):
		return fault.New(fault.Forbidden, "the action of the route is one of this service")
	}
	return nil
}

func (g *Guard) guarded(ctx context.Context, r Route, m Match, q Request, grant string, user User,
	from challenge.Starter, by audit.By) (Decision, error) {
	rows, err := m.Values(q, r.Rows)
	if err != nil {
		return Decision{}, err
	}
	b, err := bind(user, r, q, rows)
	if err != nil {
		return Decision{}, err
	}
	if grant != "" {
		return g.use(ctx, b, grant, by)
	}
	command, err := json.Marshal(b)
	if err != nil {
		return Decision{}, fmt.Errorf("guard: command: %w", err)
	}
	started, err := g.challenge(ctx, r.ActionCode, user, from, command, rows)
	return Decision{Challenge: &started, Action: r.ActionCode, Rows: rows}, err
}

// Action is the action behind the challenges of gateways, whatever their code: it makes the grant.
func (g *Guard) Action() challenge.Action {
	return challenge.Action{Code: challenge.Gateway, Flow: challenge.FlowSession,
		Build: func(_ context.Context, x challenge.Execution) (r challenge.Result, writes []commit.Write, err error) {
			c := claims{Issuer: g.Issuer, IssuedAt: x.Now.Unix(), ExpiresAt: x.Now.Add(Life).Unix(), ID: x.Challenge.ID,
				Action: x.Challenge.Action, Intent: x.Challenge.IntentDigest, Methods: []string{}}
			if err := json.Unmarshal(x.Command, &c.bound); err != nil {
				return r, nil, fmt.Errorf("guard: command: %w", err)
			}
			if c.Subject != x.Challenge.UserID {
				return r, nil, fault.New(fault.InvalidState, "the challenge belongs to another user")
			}
			for _, m := range x.Challenge.Methods {
				if m.Order > 0 {
					c.Methods = append(c.Methods, string(m.Name))
				}
			}
			grant, err := g.Statements.SignStatement(GrantType, c)
			if err != nil {
				return r, nil, err
			}
			r.Success, r.Headers = true, map[string]string{Header: grant}
			r.Data, err = json.Marshal(map[string]string{"grant": grant})
			return r, []commit.Write{Add{Grant{ID: c.ID, UserID: c.Subject, MadeAt: x.Now}}}, err
		}}
}

// use consumes a grant and returns the assertion. At most one call succeeds for a grant, whatever the number of
// callers, nodes and crashes.
func (g *Guard) use(ctx context.Context, b bound, raw string, by audit.By) (d Decision, err error) {
	var c claims
	now := g.Now()
	if err := g.Statements.ReadStatement(GrantType, raw, &c); err != nil || c.Issuer != g.Issuer || !c.bound.same(b) {
		return d, fault.New(fault.GrantMismatch, "the grant is not for this request")
	}
	if now.Unix() >= c.ExpiresAt {
		return d, fault.New(fault.TokenExpired, "the grant has expired; repeat the request without it")
	}
	c.IssuedAt, c.ExpiresAt = now.Unix(), now.Add(Life).Unix()
	if d.Assertion, err = g.Statements.SignStatement(AssertionType, c); err != nil {
		return d, err
	}
	use := Use{ID: c.ID, Use: id.New(now), At: now}
	err = g.Commit.Commit(ctx, use, by.Did(audit.Record{At: now, Action: "GUARD_PASS", UserID: c.Subject, Target: c.ID,
		Detail: c.Method + " " + c.Host + c.Path}))
	if errors.Is(err, commit.ErrFenced) || errors.Is(err, commit.ErrUnknown) {
		err = g.settled(ctx, use, err)
	}
	if err != nil {
		return Decision{}, err
	}
	return d, nil
}

// settled decides a use whose commit was refused or is unknown: nil if it is the one that took effect.
func (g *Guard) settled(ctx context.Context, mine Use, cause error) error {
	row, err := g.Store.Grant(ctx, mine.ID)
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return fault.New(fault.GrantUsed, "the grant is no longer known")
	case err != nil:
		return err
	case row.Use == mine.Use:
		return nil
	case row.Use != "":
		return fault.New(fault.GrantUsed, "the grant was already used")
	}
	return cause
}

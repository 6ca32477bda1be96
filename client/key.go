package client

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"castellan/client/internal/dpop"
)

// Key binds the sessions of a Client to a key (RFC 9449). The caller keeps the key: a copied token without it is not
// renewed, and is worthless where the service has sessions.bind: requests.
//
//	c.Key = client.NewKey(signer) // before Login
//
// The client then signs each request, and renews its session when less than a fifth of the token's life is left. After
// twelve hours, by default, a new login is needed.
type Key struct {
	signer crypto.Signer
	mu     sync.Mutex    // of the token, its renewal, and what follows
	ahead  time.Duration // estimated lead of the clock here before the service's
	pause  time.Time     // no renewal of its own accord before it, because the last one failed
}

// renewPause is how long Call uses the token after a failed renewal, before it tries another one.
const renewPause = 5 * time.Second

// NewKey returns the Key of a signer: of P-256 or Ed25519.
func NewKey(signer crypto.Signer) *Key { return &Key{signer: signer} }

// Renewed is the answer to a renewal.
type Renewed struct {
	ExpiresAt     time.Time `json:"expiresAt"`     // of the new token
	SessionEndsAt time.Time `json:"sessionEndsAt"` // after it, only a login helps
}

// RenewSession renews the session now. Call does it by itself. The errors are *Error: TOKEN_EXPIRED and TOKEN_REVOKED
// need a login.
func (c *Client) RenewSession(ctx context.Context) (Renewed, error) {
	if c.Key == nil {
		return Renewed{}, &Error{Code: "DPOP_INVALID", Detail: "the client has no key"}
	}
	c.Key.mu.Lock()
	defer c.Key.mu.Unlock()
	return c.renew(ctx)
}

func (c *Client) renew(ctx context.Context) (r Renewed, err error) {
	var out record[Renewed]
	began := time.Now()
	headers, err := c.send(ctx, http.MethodPost, "/auth/sessions/renew", nil, &out, Header("x-auth", c.Token), repeatable,
		c.signing)
	if err == nil {
		c.hold(headers.Get("x-auth"), began)
	} else {
		c.Key.pause = time.Now().Add(renewPause)
	}
	return out.Data, err
}

// session returns the token of a request of the session, after a renewal if one is due. If a renewal fails while the
// token is good, the request uses the token.
func (c *Client) session(ctx context.Context) (string, error) {
	if c.Key == nil {
		return c.Token, nil
	}
	c.Key.mu.Lock()
	defer c.Key.mu.Unlock()
	now := time.Now()
	begin, end, bound := lifeOf(c.Token)
	left := end.Sub(now.Add(-c.Key.ahead))
	if bound && left < end.Sub(begin)/5 && (left <= 0 || !now.Before(c.Key.pause)) {
		if _, err := c.renew(ctx); err != nil && time.Since(now) >= left {
			return "", err
		}
	}
	return c.Token, nil
}

// with makes a request carry a token and a proof of the key, if there is one.
func (c *Client) with(token string) Option {
	return func(r *call) {
		r.headers["x-auth"] = token
		c.signing(r)
	}
}

// renewed renews the session unless another request has done so since the token was used. It returns false if that is
// impossible or has just failed.
func (c *Client) renewed(ctx context.Context, used string) bool {
	c.Key.mu.Lock()
	defer c.Key.mu.Unlock()
	if c.Token != used {
		return true
	}
	if _, _, bound := lifeOf(used); !bound || time.Now().Before(c.Key.pause) {
		return false
	}
	_, err := c.renew(ctx)
	return err == nil
}

// take stores the token of a login that began at a time.
func (c *Client) take(token string, began time.Time) {
	if c.Key != nil {
		c.Key.mu.Lock()
		defer c.Key.mu.Unlock()
	}
	c.hold(token, began)
}

// hold stores the token of a request that began at a time. The answer may have taken long, so the lead of the clock is
// measured from the begin. The token of a challenge that was completed earlier makes it too large; then Call renews
// after the refusal. The caller holds the lock of the key.
func (c *Client) hold(token string, began time.Time) {
	c.Token = token
	if issued, _, bound := lifeOf(token); bound && c.Key != nil {
		c.Key.ahead, c.Key.pause = began.Sub(issued), time.Time{}
	}
}

// signing makes a request carry a proof of the key, if there is one.
func (c *Client) signing(r *call) {
	if c.Key != nil {
		r.proof = func(method, path, nonce string) (string, error) {
			path, _, _ = strings.Cut(path, "?")
			return dpop.Sign(c.Key.signer, dpop.Claims{Method: method, Target: c.URL + path,
				TokenHash: dpop.TokenHash(r.headers["x-auth"]), Nonce: nonce})
		}
	}
}

// lifeOf reads when a token was issued and when it expires; false unless its session is bound to a key. The service
// checks the token; the client only reads it.
func lifeOf(token string) (begin, end time.Time, bound bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return begin, end, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		IssuedAt  int64 `json:"iat"`
		ExpiresAt int64 `json:"exp"`
		Key       *struct {
			Thumbprint string `json:"jkt"`
		} `json:"cnf"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Key == nil {
		return begin, end, false
	}
	return time.Unix(claims.IssuedAt, 0), time.Unix(claims.ExpiresAt, 0), true
}

// Package token makes and verifies the signed tokens of the service: the claims of each class, their spelling, and when
// they are accepted (decisions D-AUTH-01, 04, 05, 10). It does not check whether a session or a one-time token was
// revoked.
//
// The one idea: a token has exactly one spelling. It is a JWT of RFC 7519, signed with Ed25519, that any library can
// read. But since all tokens are made here, Verify compares instead of interpreting. The header is never parsed: it
// must equal the text that this package writes. Claims are parsed only after the signature is verified, and must equal
// the text that this package writes for them. So attacks by algorithm confusion, crit or jku headers, duplicate claims,
// other number formats or other base64 encodings are impossible.
//
// The price: a program rejects an unknown claim. A new claim needs two releases, like a column: one that reads it if
// present (omitempty), and one that writes it.
//
// Start reading at Issuer.
package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// Class is a kind of token. It is also the name of its header, its audience and the beginning of its JOSE type.
type Class string

// The classes.
const (
	XAuth  Class = "x-auth"  // a session
	PAuth  Class = "p-auth"  // one challenge
	OTAuth Class = "ot-auth" // one change, once
)

type Claims struct {
	Class    Class
	ID       string // jti
	Tenant   string
	IssuedAt time.Time // times are whole seconds
	// ExpiresAt is the first instant at which the token is no longer valid.
	ExpiresAt time.Time

	// XAuth only.
	Subject   string // user id
	SessionID string
	SV        int64 // session version of the user
	Roles     []string
	AMR       []string
	AuthTime  time.Time
	// Thumbprint is the thumbprint of the key to which the session is bound (RFC 9449); "" for none.
	Thumbprint string

	// PAuth only.
	ChallengeID string
}

// The claims on the wire, in order. Every holder can read a token, and p-auth is issued to unauthenticated callers: it
// must contain nothing else.
type (
	wire struct {
		Issuer    string `json:"iss"`
		Audience  Class  `json:"aud"`
		IssuedAt  int64  `json:"iat"`
		ExpiresAt int64  `json:"exp"`
		ID        string `json:"jti"`
		Tenant    string `json:"tid"`
	}
	xWire struct {
		wire
		Subject   string   `json:"sub"`
		SessionID string   `json:"sid"`
		SV        int64    `json:"sv"`
		Roles     []string `json:"roles"`
		AMR       []string `json:"amr"`
		AuthTime  int64    `json:"auth_time"`
		Key       *keyWire `json:"cnf,omitempty"`
	}
	keyWire struct {
		Thumbprint string `json:"jkt"`
	}
	pWire struct {
		wire
		ChallengeID string `json:"cid"`
	}
)

var errSpelling = errors.New("token: not the canonical form of these claims")

// normal returns c as a token of its class carries it: in whole seconds, and without fields that the class does not
// have.
func (c Claims) normal(tenant string) Claims {
	n := Claims{Class: c.Class, ID: c.ID, Tenant: tenant, IssuedAt: second(c.IssuedAt.Unix()),
		ExpiresAt: second(c.ExpiresAt.Unix())}
	switch c.Class {
	case XAuth:
		n.Subject, n.SessionID, n.SV = c.Subject, c.SessionID, c.SV
		n.Roles, n.AMR, n.AuthTime = list(c.Roles), list(c.AMR), second(c.AuthTime.Unix())
		n.Thumbprint = c.Thumbprint
	case PAuth:
		n.ChallengeID = c.ChallengeID
	}
	return n
}

// encode writes normal claims.
func encode(issuer string, c Claims) ([]byte, error) {
	w := wire{issuer, c.Class, c.IssuedAt.Unix(), c.ExpiresAt.Unix(), c.ID, c.Tenant}
	switch c.Class {
	case XAuth:
		x := xWire{wire: w, Subject: c.Subject, SessionID: c.SessionID, SV: c.SV, Roles: c.Roles, AMR: c.AMR,
			AuthTime: c.AuthTime.Unix()}
		if c.Thumbprint != "" {
			x.Key = &keyWire{c.Thumbprint}
		}
		return json.Marshal(x)
	case PAuth:
		return json.Marshal(pWire{w, c.ChallengeID})
	default:
		return json.Marshal(w)
	}
}

// decode reads the output of encode for a class, and nothing else.
func decode(class Class, payload []byte) (issuer string, c Claims, err error) {
	var w wire
	switch class {
	case XAuth:
		var x xWire
		err = exact(payload, &x)
		w = x.wire
		c = Claims{Subject: x.Subject, SessionID: x.SessionID, SV: x.SV, Roles: x.Roles, AMR: x.AMR,
			AuthTime: second(x.AuthTime)}
		if x.Key != nil {
			if c.Thumbprint = x.Key.Thumbprint; c.Thumbprint == "" && err == nil {
				err = errSpelling
			}
		}
	case PAuth:
		var p pWire
		err = exact(payload, &p)
		w = p.wire
		c = Claims{ChallengeID: p.ChallengeID}
	default:
		err = exact(payload, &w)
	}
	c.Class, c.ID, c.Tenant, c.IssuedAt, c.ExpiresAt = w.Audience, w.ID, w.Tenant, second(w.IssuedAt), second(w.ExpiresAt)
	return w.Issuer, c, err
}

// exact parses payload into w and rejects it unless w encodes to the same text.
func exact(payload []byte, w any) error {
	if err := json.Unmarshal(payload, w); err != nil {
		return err
	}
	again, err := json.Marshal(w)
	if err == nil && !bytes.Equal(again, payload) {
		err = errSpelling
	}
	return err
}

// list is never null on the wire.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func second(unix int64) time.Time { return time.Unix(unix, 0).UTC() }

func (c Claims) ended(now time.Time) bool { return !now.Before(c.ExpiresAt) }

// complete checks that a token would carry all claims of its class.
func (c Claims) complete() error {
	switch {
	case c.Class != XAuth && c.Class != PAuth && c.Class != OTAuth:
		return errors.New("token: unknown class")
	case c.ID == "":
		return errors.New("token: no id")
	case c.IssuedAt.IsZero():
		return errors.New("token: no time of issue")
	case !c.ExpiresAt.After(c.IssuedAt):
		return errors.New("token: it ends before it begins")
	case c.Class == XAuth && (c.Subject == "" || c.SessionID == "" || c.AuthTime.IsZero()):
		return errors.New("token: x-auth without user, session or time of authentication")
	case c.Class == PAuth && c.ChallengeID == "":
		return errors.New("token: p-auth without challenge")
	}
	return nil
}

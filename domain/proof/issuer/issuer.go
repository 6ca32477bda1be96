// Package issuer accepts the tokens of other login services, such as Keycloak or ZITADEL, for accounts of this one. The
// login is theirs, and the second factor of a transaction is ours (D-EXT-12).
//
// The one idea: a token says who its bearer is elsewhere, and only a link (Link), which an administrator made, says
// which account that is here. No claim of a token creates, finds or changes an account.
//
// Start reading at Service.User, then Verifier for the checks of a token.
package issuer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

// Issuer is a login service whose tokens are accepted.
type Issuer struct {
	Issuer  string // claim iss, compared byte by byte
	JWKSURL string // address of its public keys
	// Audience must be in the claim aud.
	Audience string
	// SubjectClaim is the name of the claim that identifies the bearer; "" means sub.
	SubjectClaim string
}

// Identity is the bearer of an accepted token.
type Identity struct {
	Issuer, Subject string
	// Session is the same for all tokens of one session of the bearer: of the claim sid if the issuer sends one, else of
	// the subject. It is no session of this service, and no id of one equals it.
	Session   string
	Login     string // of the subject, in all its sessions
	ExpiresAt time.Time
}

// session names the session of a bearer.
func session(issuer, subject, sid string) string { return named("foreign.", issuer, subject, sid) }

// login names a subject of an issuer, without its text.
func login(issuer, subject string) string { return named("login.", issuer, subject) }

func named(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + base64.RawURLEncoding.EncodeToString(sum[:18])
}

// Link says that a subject of an issuer is an account.
type Link struct {
	UserID, Issuer, Subject string
	CreatedAt               time.Time
}

// Store keeps the links. Every method joins the transaction that its context carries. It is safe for concurrent use.
type Store interface {
	// Add inserts a link; RECORD_ALREADY_EXIST if the subject of the issuer is linked, also to the same account, and also
	// under concurrent calls.
	Add(ctx context.Context, l Link) error
	// Remove deletes the link with the account, the issuer and the subject of l. RECORD_NOT_FOUND.
	Remove(ctx context.Context, l Link) error
	// Links lists the links of an account, by issuer and subject.
	Links(ctx context.Context, userID string) ([]Link, error)
	// User returns the account of a subject. RECORD_NOT_FOUND.
	User(ctx context.Context, issuer, subject string) (userID string, err error)
}

// Service links subjects to accounts, and finds the account of a token. All fields are required.
type Service struct {
	*Verifier
	Store   Store
	Changes admin.Changes // without a topic: links are read for every token
	// Account reads an account, which need not be active. RECORD_NOT_FOUND.
	Account func(ctx context.Context, userID string) (challenge.Account, error)
	Notices challenge.Notices
	// Hash is the keyed hash by which the audit names a subject (keyring.Ring.StableHash).
	Hash func(domain string, parts ...string) string
	// Pending is challenge.Store.Pending, and Refresh notifies the owner of a challenge that was closed.
	Pending func(ctx context.Context, userID string, now time.Time) ([]challenge.Insert, error)
	Refresh func(challengeID string)
}

// User verifies a token and returns the linked account, which need not be active.
//
// Errors: those of Verifier.Verify; SUBJECT_UNKNOWN for a valid token whose subject is linked to no account.
func (s *Service) User(ctx context.Context, raw string) (userID string, who Identity, err error) {
	if who, err = s.Verify(ctx, raw); err != nil {
		return "", who, err
	}
	userID, err = s.Store.User(ctx, who.Issuer, who.Subject)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.SubjectUnknown, "the subject of the token is not linked to an account")
	}
	return userID, who, err
}

// Link links a subject of an issuer to an account.
//
// Errors: INVALID_FIELD for an issuer that is not configured and for an invalid subject; RECORD_NOT_FOUND for an
// unknown account; RECORD_ALREADY_EXIST if the subject is linked.
func (s *Service) Link(ctx context.Context, by audit.By, l Link) error {
	if err := s.check(l); err != nil {
		return err
	}
	return s.Changes.Do(ctx, by, "USER_LINK_ADD", func(ctx context.Context) (admin.Done, error) {
		l.CreatedAt = s.Changes.Now()
		done, err := s.done(ctx, by, l, message.LoginLinked)
		if err != nil {
			return done, err
		}
		return done, s.Store.Add(ctx, l)
	})
}

// Unlink removes a link. The next token of the subject is refused, on every node, and the open challenges that the
// subject started are closed. RECORD_NOT_FOUND.
func (s *Service) Unlink(ctx context.Context, by audit.By, l Link) error {
	var closed []string
	err := s.Changes.Do(ctx, by, "USER_LINK_REMOVE", func(ctx context.Context) (done admin.Done, err error) {
		if err := s.Store.Remove(ctx, l); err != nil {
			return done, err
		}
		if done, err = s.done(ctx, by, l, message.LoginUnlinked); err != nil {
			return done, err
		}
		open, err := s.Pending(ctx, l.UserID, s.Changes.Now())
		closed = nil
		for _, c := range open {
			if l.began(c.Starter) {
				closed = append(closed, c.ID)
				done.Writes = append(done.Writes, challenge.Supersede{ID: c.ID})
			}
		}
		return done, err
	})
	if err != nil {
		return err
	}
	for _, id := range closed {
		s.Refresh(id)
	}
	return nil
}

// began reports whether the subject of a link started a challenge. An older release names its session only, which is
// known without a sid.
func (l Link) began(by challenge.Starter) bool {
	return by.Login == login(l.Issuer, l.Subject) || by.SessionID == session(l.Issuer, l.Subject, "")
}

// done describes a change for the audit, and notifies the owner of the account. The audit names the subject by its
// keyed hash: some issuers use mail addresses.
func (s *Service) done(ctx context.Context, by audit.By, l Link, k message.Kind) (admin.Done, error) {
	a, err := s.Account(ctx, l.UserID)
	if err != nil {
		return admin.Done{}, err
	}
	return admin.Done{Target: l.UserID, UserID: l.UserID,
		Detail: l.Issuer + " subject " + s.Hash("foreign subject", l.Issuer, l.Subject),
		Writes: s.Notices.Notice(a, k, nil, by.IP)}, nil
}

// maxSubjectBytes is the length of the longest subject: 255 in OpenID Connect.
const maxSubjectBytes = 255

func (s *Service) check(l Link) error {
	var ps fault.Problems
	ps.Require(slices.Contains(s.Issuers(), l.Issuer), "issuer", "is not in guard.issuers")
	ps.Require(subject(l.Subject), "subject", "must be text of at most %d bytes", maxSubjectBytes)
	return fault.All(ps)
}

// subject reports whether a text can identify a bearer.
func subject(s string) bool {
	return s != "" && len(s) <= maxSubjectBytes && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

package mfa

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"castellan/domain/audit"
	"castellan/domain/change"
	"castellan/domain/commit"
)

// Author is who makes a change, for the audit.
type Author struct{ UserID, IP, RequestID string }

// Admin carries out the writes of section 4.4. Each commits together with its
// audit row (D-EXT-03) and a note to all nodes, and this node works with it
// before the call returns. Besides the errors named at each method all
// return UNAVAILABLE when the database, or the reading back, fails.
type Admin struct {
	Store  Store
	Commit commit.Committer
	Live   *Live
	Now    func() time.Time
	// Guarded are the codes of actions that the configuration registers
	// (D-2FA-28): policies may name them as if they were built in.
	Guarded []string
}

// known is the configuration as it is stored, for what is written is not judged
// by this node's snapshot: that may not know what was added elsewhere a moment
// ago.
func (a *Admin) known(ctx context.Context) (*Catalog, error) {
	c, err := Load(ctx, a.Store)
	if err != nil {
		return nil, err
	}
	for _, code := range a.Guarded {
		if _, ok := c.actions[code]; !ok {
			c.actions[code] = Action{Code: code}
		}
	}
	return c, nil
}

// AddMethod adds a method. INVALID_FIELD, RECORD_ALREADY_EXIST.
func (a *Admin) AddMethod(ctx context.Context, by Author, m Method) error {
	if err := m.Check(); err != nil {
		return err
	}
	return a.write(ctx, by, "MFA_METHOD_ADD", func(ctx context.Context) (string, string, error) {
		return m.Code, m.describe(), a.Store.AddMethod(ctx, m)
	})
}

// ChangeMethod changes a method. INVALID_FIELD, RECORD_NOT_FOUND.
func (a *Admin) ChangeMethod(ctx context.Context, by Author, c MethodChange) error {
	if err := c.Check(); err != nil {
		return err
	}
	return a.write(ctx, by, "MFA_METHOD_UPDATE", func(ctx context.Context) (target, detail string, err error) {
		err = a.Store.ChangeMethod(ctx, c.Code, func(m Method) (Method, error) {
			next, err := c.Apply(m)
			detail = m.describe() + " -> " + next.describe()
			return next, err
		})
		return c.Code, detail, err
	})
}

// AddAction adds an action. INVALID_FIELD, RECORD_ALREADY_EXIST.
func (a *Admin) AddAction(ctx context.Context, by Author, n Action) error {
	if err := n.Check(); err != nil {
		return err
	}
	return a.write(ctx, by, "MFA_ACTION_ADD", func(ctx context.Context) (string, string, error) {
		return n.Code, n.describe(), a.Store.AddAction(ctx, n)
	})
}

// ChangeAction changes an action. INVALID_FIELD, RECORD_NOT_FOUND.
func (a *Admin) ChangeAction(ctx context.Context, by Author, c ActionChange) error {
	if err := c.Check(); err != nil {
		return err
	}
	return a.write(ctx, by, "MFA_ACTION_UPDATE", func(ctx context.Context) (target, detail string, err error) {
		err = a.Store.ChangeAction(ctx, c.Code, func(old Action) (Action, error) {
			next, err := c.Apply(old)
			detail = old.describe() + " -> " + next.describe()
			return next, err
		})
		return c.Code, detail, err
	})
}

// AddCommon adds a COMMON policy for everybody (D-MFA-02) and returns its id.
// INVALID_FIELD, RECORD_ALREADY_EXIST.
func (a *Admin) AddCommon(ctx context.Context, by Author, p Policy) (id int64, err error) {
	p.Type, p.EntityType, p.EntityID = Common, General, ""
	err = a.write(ctx, by, "MFA_POLICY_ADD", func(ctx context.Context) (string, string, error) {
		known, err := a.known(ctx)
		if err == nil {
			err = p.Check(known)
		}
		if err == nil {
			id, err = a.Store.AddPolicy(ctx, p)
		}
		return strconv.FormatInt(id, 10), p.describe(), err
	})
	return id, err
}

// ChangeCommon changes a COMMON policy. INVALID_FIELD, RECORD_NOT_FOUND.
func (a *Admin) ChangeCommon(ctx context.Context, by Author, c PolicyChange) error {
	if err := c.Check(); err != nil {
		return err
	}
	return a.write(ctx, by, "MFA_POLICY_UPDATE", func(ctx context.Context) (target, detail string, err error) {
		known, err := a.known(ctx)
		if err != nil {
			return "", "", err
		}
		err = a.Store.ChangeCommon(ctx, c.ID, func(p Policy) (Policy, error) {
			next, err := c.Apply(p, known)
			detail = p.describe() + " -> " + next.describe()
			return next, err
		})
		return strconv.FormatInt(c.ID, 10), detail, err
	})
}

// reloadTimeout bounds the reading back after a write.
const reloadTimeout = 5 * time.Second

// write runs do, which returns the record's name and what to say of the
// change, and commits the change with its audit row and note.
func (a *Admin) write(ctx context.Context, by Author, action string, do func(context.Context) (target, detail string, err error)) error {
	err := a.Commit.InTx(ctx, func(ctx context.Context) error {
		target, detail, err := do(ctx)
		if err != nil {
			return err
		}
		return a.Commit.Commit(ctx, audit.Record{
			At: a.Now(), ActorID: by.UserID, Action: action, Target: target, Outcome: audit.Success,
			IP: by.IP, RequestID: by.RequestID, Detail: detail,
		}, change.Note{Topic: change.MFA, Key: target})
	})
	if err != nil {
		return err
	}
	// A context of its own: that the caller has gone away must not keep this
	// node from working with the change, and inside a wider transaction of the
	// caller (D-2FA-28), which may yet be rolled back, only what is committed
	// may be read. There the note brings the change.
	fresh, cancel := context.WithTimeout(context.Background(), reloadTimeout)
	defer cancel()
	return a.Live.Reload(fresh)
}

func (m Method) describe() string {
	return fmt.Sprintf("expireMs %d, renewStartMs %d", m.ExpireMs, m.RenewStartMs)
}

func (a Action) describe() string {
	return "title " + text(a.Title) + ", infoTableHeaders " + text(a.Headers)
}

func (p Policy) describe() string {
	s := fmt.Sprintf("%s %q: %d of %s, expireAt %d", p.ActionCode, p.Name, p.Required, text(p.Methods), p.ExpireAt)
	if p.NumberMatching {
		s += ", numberMatching"
	}
	return s
}

// maxDetailBytes keeps an audit row short where texts are long.
const maxDetailBytes = 500

func text(v any) string {
	b, _ := json.Marshal(v) // texts and tuples always encode
	if len(b) > maxDetailBytes {
		return strings.ToValidUTF8(string(b[:maxDetailBytes]), "") + "…"
	}
	return string(b)
}

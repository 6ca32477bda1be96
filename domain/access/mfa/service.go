package mfa

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
)

// Admin makes the writes of section 4.4 of the interface. Besides its documented errors, every method returns
// UNAVAILABLE if the database or the reload fails.
type Admin struct {
	Store   Store
	Changes admin.Changes // of topic change.MFA
	// Guarded are the codes of actions registered by the configuration (D-2FA-28): policies may name them like
	// built-in ones.
	Guarded []string
	// Grave are the codes among them that guard a request which moves money or changes credentials.
	Grave []string
	Times Times
}

// storedCatalog returns the stored configuration, which is used to check a write. The node's snapshot may lack a recent
// addition of another node.
func (a *Admin) storedCatalog(ctx context.Context) (*Catalog, error) {
	c, err := Load(ctx, a.Store)
	if err != nil {
		return nil, err
	}
	for _, code := range a.Guarded {
		if _, ok := c.actions[code]; !ok {
			c.actions[code] = Action{Code: code}
		}
	}
	c.grave = a.Grave
	return c, nil
}

// AddMethod adds a method. INVALID_FIELD, RECORD_ALREADY_EXIST.
func (a *Admin) AddMethod(ctx context.Context, by audit.By, m Method) error {
	if err := m.Check(a.Times); err != nil {
		return err
	}
	return a.Changes.Do(ctx, by, "MFA_METHOD_ADD", func(ctx context.Context) (admin.Done, error) {
		return admin.Done{Target: m.Code, Detail: m.describe()}, a.Store.AddMethod(ctx, m)
	})
}

// ChangeMethod changes a method. INVALID_FIELD, RECORD_NOT_FOUND.
func (a *Admin) ChangeMethod(ctx context.Context, by audit.By, c MethodChange) error {
	if err := c.Check(a.Times); err != nil {
		return err
	}
	return a.Changes.Do(ctx, by, "MFA_METHOD_UPDATE", func(ctx context.Context) (done admin.Done, err error) {
		done.Target = c.Code
		err = a.Store.ChangeMethod(ctx, c.Code, func(m Method) (Method, error) {
			next, err := c.Apply(m, a.Times)
			done.Detail = m.describe() + " -> " + next.describe()
			return next, err
		})
		return done, err
	})
}

// AddAction adds an action. INVALID_FIELD, RECORD_ALREADY_EXIST.
func (a *Admin) AddAction(ctx context.Context, by audit.By, n Action) error {
	if err := n.Check(); err != nil {
		return err
	}
	return a.Changes.Do(ctx, by, "MFA_ACTION_ADD", func(ctx context.Context) (admin.Done, error) {
		return admin.Done{Target: n.Code, Detail: n.describe()}, a.Store.AddAction(ctx, n)
	})
}

// ChangeAction changes an action. INVALID_FIELD, RECORD_NOT_FOUND.
func (a *Admin) ChangeAction(ctx context.Context, by audit.By, c ActionChange) error {
	if err := c.Check(); err != nil {
		return err
	}
	return a.Changes.Do(ctx, by, "MFA_ACTION_UPDATE", func(ctx context.Context) (done admin.Done, err error) {
		done.Target = c.Code
		err = a.Store.ChangeAction(ctx, c.Code, func(old Action) (Action, error) {
			next, err := c.Apply(old)
			done.Detail = old.describe() + " -> " + next.describe()
			return next, err
		})
		return done, err
	})
}

// AddCommon adds a COMMON policy for all users (D-MFA-02) and returns its id. INVALID_FIELD, RECORD_ALREADY_EXIST.
func (a *Admin) AddCommon(ctx context.Context, by audit.By, p Policy) (id int64, err error) {
	p.Type, p.EntityType, p.EntityID = Common, General, ""
	err = a.Changes.Do(ctx, by, "MFA_POLICY_ADD", func(ctx context.Context) (admin.Done, error) {
		known, err := a.storedCatalog(ctx)
		if err == nil {
			err = p.Check(known)
		}
		if err == nil {
			id, err = a.Store.AddPolicy(ctx, p)
		}
		return admin.Done{Target: strconv.FormatInt(id, 10), Detail: p.describe()}, err
	})
	return id, err
}

// Judge returns the errors of AddCommon, except for an existing policy.
func (a *Admin) Judge(ctx context.Context, p Policy) error {
	known, err := a.storedCatalog(ctx)
	if err != nil {
		return err
	}
	return p.Check(known)
}

// ChangeCommon changes a COMMON policy. INVALID_FIELD, RECORD_NOT_FOUND.
func (a *Admin) ChangeCommon(ctx context.Context, by audit.By, c PolicyChange) error {
	if err := c.Check(); err != nil {
		return err
	}
	return a.Changes.Do(ctx, by, "MFA_POLICY_UPDATE", func(ctx context.Context) (admin.Done, error) {
		done := admin.Done{Target: strconv.FormatInt(c.ID, 10)}
		known, err := a.storedCatalog(ctx)
		if err != nil {
			return done, err
		}
		err = a.Store.ChangeCommon(ctx, c.ID, func(p Policy) (Policy, error) {
			next, err := c.Apply(p, known)
			done.Detail = p.describe() + " -> " + next.describe()
			return next, err
		})
		return done, err
	})
}

func (m Method) describe() string {
	return fmt.Sprintf("expireMs %d, renewStartMs %d", m.ExpireMs, m.RenewStartMs)
}

func (a Action) describe() string {
	return "title " + text(a.Title) + ", infoTableHeaders " + text(a.Headers)
}

func (p Policy) describe() string {
	s := fmt.Sprintf("%s %q: %d of %s, expireAt %d", p.ActionCode, p.Name, p.Required, text(p.Methods), p.ExpireAt)
	for _, o := range []struct {
		name string
		on   bool
	}{{"numberMatching", p.NumberMatching}, {"phishingResistant", p.PhishingResistant}, {"passkeyAlone", p.PasskeyAlone}} {
		if o.on {
			s += ", " + o.name
		}
	}
	if p.RememberDays > 0 {
		s += fmt.Sprintf(", remember %d", p.RememberDays)
	}
	if p.RememberAnyway {
		s += ", rememberAnyway"
	}
	return s
}

// maxDetailBytes keeps an audit row short if texts are long.
const maxDetailBytes = 500

func text(v any) string {
	b, _ := json.Marshal(v) // encoding texts and tuples never fails
	if len(b) > maxDetailBytes {
		return strings.ToValidUTF8(string(b[:maxDetailBytes]), "") + "…"
	}
	return string(b)
}

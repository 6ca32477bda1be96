package mfa

import (
	"context"
	"slices"
	"strconv"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
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
	// Keeps are the actions that an administrator completes to log in and to change a policy. A write after which its
	// author cannot complete one of them any more is refused (D-MFA-15).
	Keeps []string
	// Can reports whether a user could complete an action under a configuration; nil: no write is refused for that.
	Can func(ctx context.Context, c *Catalog, action, userID, ip string) (bool, error)
}

// Forced returns the administration whose writes may shut their author out.
func (a Admin) Forced() *Admin {
	a.Can = nil
	return &a
}

// admits returns INVALID_FIELD of field force for a policy that shuts its author out of an action which the author can
// complete now.
func (a *Admin) admits(ctx context.Context, by audit.By, before *Catalog, p Policy) error {
	if a.Can == nil || !slices.Contains(a.Keeps, p.ActionCode) {
		return nil
	}
	for _, c := range []*Catalog{before, before.With(p)} {
		can, err := a.Can(ctx, c, p.ActionCode, by.UserID, by.IP)
		switch {
		case err != nil:
			return err
		case !can && c == before:
			return nil
		case !can:
			return fault.Invalid("force", "you could not log in or change policies any more after this; send force: true "+
				"if that is what you want")
		}
	}
	return nil
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
		return admin.Done{Target: m.Code, Detail: admin.Values(m)}, a.Store.AddMethod(ctx, m)
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
			done.Detail = admin.Difference(m, next)
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
		return admin.Done{Target: n.Code, Detail: admin.Values(n)}, a.Store.AddAction(ctx, n)
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
			done.Detail = admin.Difference(old, next)
			return next, err
		})
		return done, err
	})
}

// AddCommon adds a COMMON policy for all users (D-MFA-02) and returns its id. INVALID_FIELD, also for field force;
// RECORD_ALREADY_EXIST.
func (a *Admin) AddCommon(ctx context.Context, by audit.By, p Policy) (id int64, err error) {
	p.Type, p.EntityType, p.EntityID = Common, General, ""
	err = a.Changes.Do(ctx, by, "MFA_POLICY_ADD", func(ctx context.Context) (admin.Done, error) {
		known, err := a.storedCatalog(ctx)
		if err == nil {
			err = p.Check(known)
		}
		if err == nil {
			err = a.admits(ctx, by, known, p)
		}
		if err == nil {
			id, err = a.Store.AddPolicy(ctx, p)
		}
		return admin.Done{Target: strconv.FormatInt(id, 10), Detail: admin.Values(p)}, err
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

// ChangeCommon changes a COMMON policy. INVALID_FIELD, also for field force; RECORD_NOT_FOUND.
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
			done.Detail = admin.Difference(p, next)
			if err == nil {
				err = a.admits(ctx, by, known, next)
			}
			return next, err
		})
		return done, err
	})
}

// RemoveCommon deletes a COMMON policy: the default applies to its action again. INVALID_FIELD of field force;
// RECORD_NOT_FOUND.
func (a *Admin) RemoveCommon(ctx context.Context, by audit.By, id int64) error {
	return a.Changes.Do(ctx, by, "MFA_POLICY_DELETE", func(ctx context.Context) (admin.Done, error) {
		done := admin.Done{Target: strconv.FormatInt(id, 10)}
		known, err := a.storedCatalog(ctx)
		if err == nil {
			err = a.Store.RemoveCommon(ctx, id, func(p Policy) error {
				done.Detail = admin.Values(p)
				p.ExpireAt = 1 // applies no more
				return a.admits(ctx, by, known, p)
			})
		}
		return done, err
	})
}

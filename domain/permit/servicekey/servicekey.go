// Package servicekey owns the keys of service clients: other services of the platform, such as a wallet, that call
// this one with the header service-auth (D-INT-01).
//
// The one idea: a key belongs to a role, and the resource registry decides what the role may call. A service client
// has no account, no session and no permission of its own. Its secrets are those of package clientkey. A key may also
// have actions: it may then start challenges of these codes (package errand), and needs no role.
//
// Start reading at Service, then Cache for the check of a header.
package servicekey

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/clientkey"
	"castellan/domain/kit/code"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/permit/resource"
)

// Overlap is how long the previous key stays valid after a rotation.
const Overlap = time.Hour

// domain separates the hashes of these secrets from others.
const domain = "service-key"

// maxNetworks bounds the networks of a key.
const maxNetworks = 32

// Key is the stored form of a key.
type Key struct {
	Name string `audit:"-"` // the target; unique; it never changes
	Role string // the role with the client's permissions; "" for a key that has only actions
	// Networks are the networks from which the key is accepted; none: every address.
	Networks []netip.Prefix
	// Actions are the codes of the challenges that the client may start (D-EXT-10), and Callback is the URL that is
	// called with their outcomes, or "".
	Actions  []string
	Callback string
	Hash     keyring.Sum `audit:"-"`
	// OldHash is the hash of the key before the last rotation, valid until OldUntil. It is zero before the first
	// rotation.
	OldHash              keyring.Sum `audit:"-"`
	OldUntil             time.Time   `audit:"-"`
	CreatedAt, RotatedAt time.Time   `audit:"-"` // RotatedAt is zero before the first rotation
}

// May reports whether the key permits challenges of an action.
func (k Key) May(action string) bool { return slices.Contains(k.Actions, action) }

// Store keeps the keys. Every method joins the transaction of its context. It is safe for concurrent use.
type Store interface {
	// List lists all keys by name.
	List(ctx context.Context) ([]Key, error)
	// Add inserts a key; RECORD_ALREADY_EXIST when the name is taken, even under concurrent calls.
	Add(ctx context.Context, k Key) error
	// Change passes the key to f and saves the result, as one step. RECORD_NOT_FOUND.
	Change(ctx context.Context, name string, f func(Key) (Key, error)) error
	// Remove deletes a key. RECORD_NOT_FOUND.
	Remove(ctx context.Context, name string) error
}

// Service creates, rotates and removes keys. All fields are required except AllowPlain.
type Service struct {
	Store   Store
	Roles   func(context.Context) ([]resource.Role, error) // all existing roles
	Changes admin.Changes                                  // of topic change.ServiceKeys
	Ring    clientkey.Hasher
	// Action reports whether a code is that of an action for services (mfa.ServiceActions).
	Action func(ctx context.Context, code string) (bool, error)
	// AllowPlain permits callbacks by http to loopback addresses, for development.
	AllowPlain bool
}

// New describes a key to be created. It needs a role, an action or both.
type New struct {
	Name, Role string
	Networks   []netip.Prefix
	Actions    []string
	Callback   string
}

// Add creates a key and returns the value of the header service-auth, which cannot be read again. It takes effect on
// every node within a second.
//
// Errors: INVALID_FIELD for a name that clientkey.CheckName refuses, for the role user, for a role that does not
// exist and for more than 32 networks; also for more than 64 actions, and for one that is no action for services or is
// repeated; also for a callback without actions or that is not an https URL. RECORD_ALREADY_EXIST for a name that is
// taken.
func (s *Service) Add(ctx context.Context, by audit.By, n New) (k Key, header string, err error) {
	if err := clientkey.CheckName(n.Name); err != nil {
		return k, "", err
	}
	if len(n.Networks) > maxNetworks {
		return k, "", fault.Invalid("ip", "must be at most %d networks", maxNetworks)
	}
	if err := s.checkScope(ctx, n, nil); err != nil {
		return k, "", err
	}
	err = s.Changes.Do(ctx, by, "SERVICE_KEY_ADD", func(ctx context.Context) (done admin.Done, err error) {
		roles, err := s.Roles(ctx)
		if err != nil {
			return done, err
		}
		exists := slices.ContainsFunc(roles, func(r resource.Role) bool { return r.Code == n.Role })
		if (n.Role != "" || len(n.Actions) == 0) && (!exists || n.Role == user.RoleUser) {
			return done, fault.Invalid("role", "must be the code of a role other than user")
		}
		k = Key{Name: n.Name, Role: n.Role, Networks: n.Networks, Actions: n.Actions, Callback: n.Callback,
			CreatedAt: s.Changes.Now()}
		header, k.Hash = clientkey.New(s.Ring, domain, n.Name)
		return admin.Done{Target: n.Name, Detail: admin.Values(k)}, s.Store.Add(ctx, k)
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, header, nil
}

// Rotate creates a new key of a client and returns the value of its header. The previous key stays valid for another
// hour; an older one ends now. RECORD_NOT_FOUND.
func (s *Service) Rotate(ctx context.Context, by audit.By, name string) (next Key, header string, err error) {
	err = s.Changes.Do(ctx, by, "SERVICE_KEY_ROTATE", func(ctx context.Context) (admin.Done, error) {
		return admin.Done{Target: name}, s.Store.Change(ctx, name, func(k Key) (Key, error) {
			now := s.Changes.Now()
			k.OldHash, k.OldUntil, k.RotatedAt = k.Hash, now.Add(Overlap), now
			header, k.Hash = clientkey.New(s.Ring, domain, name)
			next = k
			return k, nil
		})
	})
	if err != nil {
		return Key{}, "", err
	}
	return next, header, nil
}

// Edit is a change of the actions and the callback of a key; nil leaves a field as it is.
type Edit struct {
	Actions  *[]string
	Callback *string
}

// Change changes what a key may start, on every node within a second. Challenges that were started before go on.
//
// Errors: RECORD_NOT_FOUND; INVALID_FIELD as in Add, and for no actions of a key without a role.
func (s *Service) Change(ctx context.Context, by audit.By, name string, e Edit) (next Key, err error) {
	err = s.Changes.Do(ctx, by, "SERVICE_KEY_UPDATE", func(ctx context.Context) (done admin.Done, err error) {
		err = s.Store.Change(ctx, name, func(k Key) (Key, error) {
			before, had := k, k.Actions
			if e.Actions != nil {
				k.Actions = *e.Actions
			}
			if e.Callback != nil {
				k.Callback = *e.Callback
			}
			if len(k.Actions) == 0 && k.Role == "" {
				return k, fault.Invalid("actions", "must not be empty for a key without a role")
			}
			next, done = k, admin.Done{Target: name, Detail: admin.Difference(before, k)}
			return k, s.checkScope(ctx, New{Actions: k.Actions, Callback: k.Callback}, had)
		})
		return done, err
	})
	if err != nil {
		return Key{}, err
	}
	return next, nil
}

// Remove revokes a key, on every node within a second. RECORD_NOT_FOUND.
func (s *Service) Remove(ctx context.Context, by audit.By, name string) error {
	return s.Changes.Do(ctx, by, "SERVICE_KEY_REMOVE", func(ctx context.Context) (admin.Done, error) {
		all, err := s.Store.List(ctx)
		if err != nil {
			return admin.Done{}, err
		}
		var removed Key
		if i := slices.IndexFunc(all, func(k Key) bool { return k.Name == name }); i >= 0 {
			removed = all[i]
		}
		return admin.Done{Target: name, Detail: admin.Values(removed)}, s.Store.Remove(ctx, name)
	})
}

// ParseNetworks reads addresses and networks, such as "192.0.2.7" and "2001:db8::/32". INVALID_FIELD (field ip) for
// any other text, and for a network with bits beyond its mask.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if a, single := netip.ParseAddr(text); single == nil {
			a = a.Unmap()
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if p.Addr().Is4In6() { // no address matches it; with less than 96 bits it becomes invalid
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if err != nil || p != p.Masked() || p.Addr().Zone() != "" {
			return nil, fault.Invalid("ip", "must be IP addresses or networks such as 192.0.2.0/24")
		}
		out = append(out, p)
	}
	return out, nil
}

// Join returns the networks, separated by commas.
func Join(networks []netip.Prefix) string {
	texts := make([]string, len(networks))
	for i, p := range networks {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}

// The limits of a key's scope.
const (
	maxActions  = 64
	maxCallback = 512 // bytes
)

// checkScope returns INVALID_FIELD for actions or a callback that a key cannot have. The key keeps the actions that it
// had: one of an earlier version may have no record.
func (s *Service) checkScope(ctx context.Context, n New, had []string) error {
	if len(n.Actions) > maxActions {
		return fault.Invalid("actions", "must be at most %d codes", maxActions)
	}
	for i, action := range n.Actions {
		if !code.Valid(action) || slices.Contains(n.Actions[:i], action) {
			return fault.Invalid("actions", "must be different codes of actions")
		}
		if slices.Contains(had, action) {
			continue
		}
		known, err := s.Action(ctx, action)
		if err != nil {
			return err
		}
		if !known {
			return fault.Invalid("actions", "must be actions for services; create them first")
		}
	}
	switch {
	case n.Callback == "":
		return nil
	case len(n.Actions) == 0:
		return fault.Invalid("callback", "must not be sent without actions")
	case !s.callable(n.Callback):
		return fault.Invalid("callback", "must be an https URL without user and fragment")
	}
	return nil
}

// callable reports whether a callback may be called: https, or http to loopback where that is permitted.
func (s *Service) callable(text string) bool {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxCallback || u.Hostname() == "" || u.User != nil || u.Fragment != "" ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && s.AllowPlain && loopback(u.Hostname())
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.Unmap().IsLoopback()
}

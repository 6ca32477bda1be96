package servicekey

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/clientkey"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
)

// Client is a service client with an accepted key.
type Client struct{ Name, Role string }

// Refusals of Cache.Client.
var (
	errUnknown = fault.New(fault.Unauthenticated, "service-auth is not the key of a service client")
	errNetwork = fault.New(fault.IPNotAllowed, "the key of the service client is not accepted from this address")
)

// Cache is the node's snapshot of keys: Reload reads them, and Follow handles notes of topic change.ServiceKeys. It is
// safe for concurrent use.
type Cache struct {
	*change.Snapshot[map[string]Key] // by name

	hasher clientkey.Hasher
	now    func() time.Time
}

// NewCache returns a Cache over a store. It has no keys until the first Reload.
func NewCache(store Store, hasher clientkey.Hasher, now func() time.Time) *Cache {
	load := func(ctx context.Context) (*map[string]Key, error) {
		keys, err := store.List(ctx)
		if err != nil {
			return nil, fmt.Errorf("reload service keys: %w", err)
		}
		next := make(map[string]Key, len(keys))
		for _, k := range keys {
			next[k.Name] = k
		}
		return &next, nil
	}
	return &Cache{change.NewSnapshot(&map[string]Key{}, load, nil), hasher, now}
}

// Key returns the key of a service client by its name; false without one.
func (l *Cache) Key(name string) (Key, bool) {
	k, known := (*l.Current())[name]
	return k, known
}

// Starts reports whether some key may start an action.
func (l *Cache) Starts(action string) bool {
	for _, k := range *l.Current() {
		if k.May(action) {
			return true
		}
	}
	return false
}

// Client returns the service client with this header. UNAUTHENTICATED for a header that is not the key of a client;
// IP_NOT_ALLOWED, with the client whose key it is, for an address outside the networks of the key.
func (l *Cache) Client(header string, from netip.Addr) (Client, error) {
	name, secret, ok := clientkey.Split(header)
	k, known := (*l.Current())[name]
	var stored []keyring.Sum
	if known {
		stored = append(stored, k.Hash)
		if l.now().Before(k.OldUntil) {
			stored = append(stored, k.OldHash)
		}
	}
	if !clientkey.Matches(l.hasher, domain, name, secret, stored...) || !ok || !known {
		return Client{}, errUnknown
	}
	if len(k.Networks) > 0 &&
		!slices.ContainsFunc(k.Networks, func(p netip.Prefix) bool { return p.Contains(from.Unmap()) }) {
		return Client{k.Name, k.Role}, errNetwork
	}
	return Client{k.Name, k.Role}, nil
}

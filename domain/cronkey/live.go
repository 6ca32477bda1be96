package cronkey

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"castellan/domain/change"
	"castellan/domain/keyring"
)

// Hasher compares a secret with a stored hash; keyring.Ring is one.
type Hasher interface {
	Matches(stored keyring.Sum, domain string, parts ...string) bool
	Hash(domain string, parts ...string) keyring.Sum
}

// Live is the snapshot that a node judges by: Reload reads the keys, and Follow
// is for notes of topic change.CronKeys. It is safe for concurrent use.
type Live struct {
	*change.Snapshot[map[string]keyring.Sum] // by name

	hasher Hasher
}

// NewLive returns a Live over store. Until the first Reload it knows no key.
func NewLive(store Store, hasher Hasher) *Live {
	load := func(ctx context.Context) (*map[string]keyring.Sum, error) {
		keys, err := store.Keys(ctx)
		if err != nil {
			return nil, fmt.Errorf("reload cron keys: %w", err)
		}
		next := make(map[string]keyring.Sum, len(keys))
		for _, k := range keys {
			next[k.Name] = k.Hash
		}
		return &next, nil
	}
	return &Live{change.NewSnapshot(&map[string]keyring.Sum{}, load, nil), hasher}
}

// Client names the client whose header this is; false for any other text. The
// secret is compared in constant time, and a name that nobody has costs the same
// work as a wrong secret.
func (l *Live) Client(header string) (name string, ok bool) {
	if len(header) > maxHeader {
		return "", false
	}
	name, secret, cut := strings.Cut(header, ".")
	stored, known := (*l.Current())[name]
	if !known {
		stored = l.hasher.Hash(domain)
		stored.Sum = make([]byte, sha256.Size)
	}
	if right := l.hasher.Matches(stored, domain, name, secret); !right || !known || !cut {
		return "", false
	}
	return name, true
}

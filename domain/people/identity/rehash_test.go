package identity_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/identity"
	"castellan/persistence/persistencetest"
)

// keys is an Opener whose steady hash is a word.
type keys struct{ fails bool }

func (k keys) Open(sealed, ad []byte) ([]byte, error) {
	if k.fails {
		return nil, errors.New("no key")
	}
	return []byte(string(sealed) + " of " + string(ad)), nil
}

func (keys) StableHash(domain string, parts ...string) string {
	return domain + ": " + strings.Join(parts, "/")
}

// All hashes are migrated to the steady key, page by page; a second run changes nothing.
func TestRehash(t *testing.T) {
	d := newDesk(t)
	const many = 501
	var ws []commit.Write
	for n := range many {
		u := user.New(fmt.Sprintf("v%03d", n), d.now)
		u.IdentityHash = fmt.Sprint("h", n)
		ws = append(ws, user.Add{User: u})
	}
	storetest.Must(t, d.db.Commit(t.Context(), ws...))
	for n := range many - 1 {
		storetest.Must(t, d.Store.Keep(t.Context(), fmt.Sprintf("v%03d", n), identity.Person{}, []byte(fmt.Sprint(n))))
	}
	var told []int
	tell := func(seen int) { told = append(told, seen) }
	if _, _, err := identity.Rehash(t.Context(), d.Store, keys{fails: true}, tell); err == nil {
		t.Error("no error of a number that cannot be opened")
	}
	for run, want := range []int{many - 1, 0} {
		told = nil
		changed, left, err := identity.Rehash(t.Context(), d.Store, keys{}, tell)
		if changed != want || left != 1 || err != nil || fmt.Sprint(told) != "[500 501]" {
			t.Errorf("run %d: %d changed, %d left, %v, told %v", run, changed, left, err, told)
		}
	}
	if got := d.user("v007").IdentityHash; got != "identity: 7 of identity/v007" {
		t.Errorf("%s", got)
	}
	persistencetest.Fails(t, d.db, "users user_identity", func(ctx context.Context) error {
		_, _, err := identity.Rehash(ctx, d.Store, keys{}, tell)
		return err
	})
	d.change("v007", "identity_hash = 'stale'")
	_, _, err := identity.Rehash(t.Context(), refuses{d.Store}, keys{}, tell)
	storetest.Wants(t, err, fault.Unavailable)
}

// refuses is a store whose hashes cannot be replaced.
type refuses struct{ identity.Store }

func (refuses) Rehash(context.Context, string, string, string) error {
	return fault.New(fault.Unavailable, "away")
}

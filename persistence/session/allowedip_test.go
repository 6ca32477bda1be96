package session_test

import (
	"fmt"
	"net/netip"
	"testing"

	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/allowedip"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
	"castellan/persistence/session"
)

// network is the network of a text, which may be an address.
func network(t *testing.T, text string) netip.Prefix {
	t.Helper()
	p := storetest.Value(allowedip.Parse(text))(t)
	return p
}

func allow(t *testing.T, user, text string) commit.Write {
	t.Helper()
	return allowedip.Allow{UserID: user, Network: network(t, text), At: usertest.Now}
}

func TestAllowedIPStore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := session.NewAllowedIPs(db), t.Context()
		lists := func(want string) {
			t.Helper()
			storetest.Equal(t, fmt.Sprint(storetest.Value(s.All(ctx))(t)), "map["+want+"]")
		}
		lists("")
		storetest.Must(t, db.Commit(ctx, allow(t, "u1", "192.0.2.7"), allow(t, "u1", "2001:db8::/32"),
			allow(t, "u1", "192.0.2.7"), allow(t, "u2", "10.1.2.3/8")))
		storetest.Must(t, db.Commit(ctx, allow(t, "u1", "192.0.2.7")))
		lists("u1:[192.0.2.7/32 2001:db8::/32] u2:[10.0.0.0/8]")
		for user, want := range map[string]string{"u1": "[192.0.2.7/32 2001:db8::/32]", "u3": "[]"} {
			storetest.Equal(t, fmt.Sprint(storetest.Value(s.Networks(ctx, user))(t)), want, user)
		}
		storetest.Must(t, db.Commit(ctx, allowedip.Disallow{UserID: "u1", Network: network(t, "2001:db8::/32")},
			allowedip.Disallow{UserID: "u1", Network: network(t, "9.9.9.9")},
			allowedip.Disallow{UserID: "u2", Network: network(t, "192.0.2.7")}))
		lists("u1:[192.0.2.7/32] u2:[10.0.0.0/8]")
		storetest.Must(t, db.Commit(ctx, allowedip.Disallow{UserID: "u1", Network: network(t, "192.0.2.7")}))
		lists("u2:[10.0.0.0/8]")

		// Concurrent additions of one network store it once.
		storetest.Race(t, 8, "", func(int) error { return db.Commit(ctx, allow(t, "u4", "198.51.100.0/24")) })
		storetest.Equal(t, len(storetest.Value(s.Networks(ctx, "u4"))(t)), 1)
	})
}

// The networks of a user are sorted. A list that cannot be read is an error: an empty one permits every address.
func TestDamagedAddresses(t *testing.T) {
	db, ctx := persistencetest.SQLite(t), t.Context()
	for _, text := range []string{"9.0.0.0/8", "10.0.0.0/8", "2001:db8::/32"} {
		storetest.Must(t, db.Commit(ctx, allow(t, "u1", text)))
	}
	addresses := session.NewAllowedIPs(db)
	got, err := addresses.Networks(ctx, "u1")
	if want := "[9.0.0.0/8 10.0.0.0/8 2001:db8::/32]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	persistencetest.Exec(t, db, "UPDATE allowed_ip SET network = 'x' WHERE network = '9.0.0.0/8'")
	storetest.Wants(t, storetest.Err(addresses.Networks(ctx, "u1")), fault.Internal)
}

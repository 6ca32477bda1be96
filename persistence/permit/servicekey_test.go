package permit_test

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/cronkey"
	"castellan/domain/permit/servicekey"
	"castellan/persistence"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

func TestServiceKeyStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) servicekey.Store { return permit.NewServiceKeys(db) },
		storetest.Cases[servicekey.Store]{"RoundTrip": serviceKeyRoundTrip, "UniqueName": serviceKeyUniqueName,
			"Remove": serviceKeyRemove}, "service_key")
}

var start = time.UnixMilli(1_700_000_000_123).UTC()

func serviceKey(name string) servicekey.Key {
	return servicekey.Key{Name: name, Role: "wallet", Hash: keyring.Sum{Key: "key-1", Sum: []byte(name + "\x00\xff")},
		CreatedAt: start}
}

// wholeServiceKey has a value in every field.
func wholeServiceKey(t *testing.T, name string) servicekey.Key {
	return persistencetest.Whole(t, func(k *servicekey.Key) {
		k.Name, k.Networks = name, append(k.Networks, netip.MustParsePrefix("2001:db8::1/128"))
	})
}

func listedKeys(t *testing.T, s servicekey.Store, want ...servicekey.Key) {
	t.Helper()
	got, err := s.List(t.Context())
	if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("listed %+v, %v; want %+v", got, err, want)
	}
}

func serviceKeyRoundTrip(t *testing.T, s servicekey.Store, _ commit.Committer) {
	listedKeys(t, s)
	a, b := wholeServiceKey(t, "a"), serviceKey("b")
	for _, k := range []servicekey.Key{b, a} {
		storetest.Must(t, s.Add(t.Context(), k))
	}
	listedKeys(t, s, a, b)
	next := wholeServiceKey(t, "b")
	storetest.Must(t, s.Change(t.Context(), "b", func(servicekey.Key) (servicekey.Key, error) { return next, nil }))
	next.CreatedAt = start // it never changes
	listedKeys(t, s, a, next)
}

func serviceKeyUniqueName(t *testing.T, s servicekey.Store, _ commit.Committer) {
	storetest.OneWins(t, 8, fault.RecordAlreadyExist, func(int) error { return s.Add(t.Context(), serviceKey("a")) })
	listedKeys(t, s, serviceKey("a"))
}

func serviceKeyRemove(t *testing.T, s servicekey.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), serviceKey("a")))
	storetest.Must(t, s.Add(t.Context(), serviceKey("b")))
	storetest.OneWins(t, 8, fault.RecordNotFound, func(int) error { return s.Remove(t.Context(), "a") })
	listedKeys(t, s, serviceKey("b"))
	storetest.Must(t, s.Add(t.Context(), serviceKey("a")))
}

func TestCronKeyStore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := permit.NewCronKeys(db), t.Context()
		key := func(name string) cronkey.Key {
			return persistencetest.Whole(t, func(k *cronkey.Key) { k.Name = name })
		}
		listed := func(want ...cronkey.Key) {
			t.Helper()
			got := storetest.Value(s.Keys(ctx))(t)
			storetest.Same(t, got, append([]cronkey.Key{}, want...))
		}
		listed()
		for _, name := range []string{"b", "a"} {
			storetest.Must(t, db.Commit(ctx, cronkey.Add{Key: key(name)}))
		}
		listed(key("a"), key("b"))
		storetest.Wants(t, db.Commit(ctx, cronkey.Add{Key: key("a")}), fault.RecordAlreadyExist)
		err := db.Commit(ctx, cronkey.Remove{Name: "a"}, cronkey.Remove{Name: "nobody"})
		if !errors.Is(err, commit.ErrFenced) {
			t.Errorf("removing one that is not there: %v", err)
		}
		listed(key("a"), key("b"))
		storetest.OneWins(t, 8, fault.RecordNotFound, func(int) error {
			err := db.Commit(ctx, cronkey.Remove{Name: "a"})
			if errors.Is(err, commit.ErrFenced) {
				return fault.New(fault.RecordNotFound, "it is gone")
			}
			return err
		})
		listed(key("b"))
		storetest.Must(t, db.Commit(ctx, cronkey.Add{Key: key("a")}))
	})
}

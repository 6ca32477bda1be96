package permit_test

import (
	"errors"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/cronkey"
	"castellan/persistence"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

func TestCronKeyStore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := permit.NewCronKeys(db), t.Context()
		key := func(name string) cronkey.Key {
			return persistencetest.Whole(t, func(k *cronkey.Key) { k.Name = name })
		}
		listed := func(want ...cronkey.Key) {
			t.Helper()
			got, err := s.Keys(ctx)
			storetest.Must(t, err)
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
		removed := storetest.Race(t, 8, fault.RecordNotFound, func(int) error {
			err := db.Commit(ctx, cronkey.Remove{Name: "a"})
			if errors.Is(err, commit.ErrFenced) {
				return fault.New(fault.RecordNotFound, "it is gone")
			}
			return err
		})
		if removed != 1 {
			t.Errorf("removed %d times", removed)
		}
		listed(key("b"))
		storetest.Must(t, db.Commit(ctx, cronkey.Add{Key: key("a")}))
	})
}

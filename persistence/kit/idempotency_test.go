package kit_test

import (
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/idempotency"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// The answer of a key is found until it is too old, is never replaced, and is purged by its age.
func TestIdempotencyStore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		store, at := kit.NewIdempotency(db), time.UnixMilli(1_700_000_000_123).UTC()
		first := idempotency.Record{ID: "k1", BodyHash: [32]byte{1, 31: 255}, At: at, Sealed: []byte("a\x00\xff")}
		later := idempotency.Record{ID: "k2", BodyHash: [32]byte{2}, At: at.Add(time.Second), Sealed: []byte("b")}
		storetest.Must(t, db.Commit(t.Context(), idempotency.Save{Record: first}, idempotency.Save{Record: later}))
		again := first
		again.Sealed = []byte("c")
		storetest.Wants(t, db.Commit(t.Context(), idempotency.Save{Record: again}), fault.RecordAlreadyExist)
		find := func(r idempotency.Record, since time.Time, want fault.Code) {
			t.Helper()
			got, err := store.Find(t.Context(), r.ID, since)
			if storetest.Wants(t, err, want); want == "" {
				got.At = got.At.UTC()
				storetest.Same(t, got, r)
			}
		}
		find(first, at, "")
		find(first, at.Add(time.Millisecond), fault.RecordNotFound)
		find(idempotency.Record{ID: "k3"}, time.Time{}, fault.RecordNotFound)
		storetest.Must(t, store.Purge(t.Context(), at))
		find(first, at, "")
		storetest.Must(t, store.Purge(t.Context(), at.Add(time.Millisecond)))
		find(first, at, fault.RecordNotFound)
		find(later, at, "")
	})
}

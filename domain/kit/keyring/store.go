package keyring

import "context"

// Store stores the keys. It is safe for concurrent use, also by several processes; the suite in keyringtest defines the
// details. Every change of the keys also adds a change.Keys note in the same transaction, which notifies the other
// nodes.
//
// All keys are wrapped by one master key at any time: a call that would leave two is rejected with INVALID_STATE and
// changes nothing.
type Store interface {
	// Keys lists every key ever made, by purpose and Seq.
	Keys(ctx context.Context) ([]Record, error)
	// Add inserts all records or none. RECORD_ALREADY_EXIST if the ID of a record, or its Seq within the purpose, is
	// taken.
	Add(ctx context.Context, records ...Record) error
	// Rotate inserts next and sets the RetiredAt of retired, atomically. RECORD_ALREADY_EXIST as for Add;
	// RECORD_NOT_FOUND if a retired key does not exist.
	Rotate(ctx context.Context, next Record, retired ...Record) error
	// Rewrap replaces Wrapped and MasterID of records. They must be all existing keys and all still be wrapped by the
	// master key from; otherwise INVALID_STATE, and nothing changes.
	Rewrap(ctx context.Context, from string, records []Record) error
}

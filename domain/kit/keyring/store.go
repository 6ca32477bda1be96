package keyring

import "context"

// Store keeps the keys. It is safe for concurrent use, by several processes
// too; the suite in keyringtest says what that means. Whatever changes the
// keys also leaves a change.Keys note in the same transaction, by which the
// other nodes learn of it.
//
// All keys are wrapped by one master key at any time: a call that would leave
// two is refused with INVALID_STATE and changes nothing.
type Store interface {
	// Keys lists every key that was ever made, by purpose and Seq.
	Keys(ctx context.Context) ([]Record, error)
	// Add inserts all records or none. RECORD_ALREADY_EXIST when the ID, or
	// the Seq within the purpose, of one of them is taken.
	Add(ctx context.Context, records ...Record) error
	// Rotate inserts next and sets the RetiredAt of retired, together.
	// RECORD_ALREADY_EXIST like Add, RECORD_NOT_FOUND when one of retired does
	// not exist.
	Rotate(ctx context.Context, next Record, retired ...Record) error
	// Rewrap replaces Wrapped and MasterID of records, which must be all keys
	// there are and all still be wrapped by the master key from; otherwise
	// INVALID_STATE, and nothing changes.
	Rewrap(ctx context.Context, from string, records []Record) error
}

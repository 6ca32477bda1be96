package addressbook

import "context"

// Store keeps the books. Every method joins the transaction that its context
// carries (commit.Committer.InTx); those that write are called within one. It
// is safe for concurrent use and passes addressbooktest.Run.
type Store interface {
	// Book reads a user's book; an empty one is no error.
	Book(ctx context.Context, userID string) (Book, error)
	// Hold reads a user's book and keeps it as it is until the transaction of
	// ctx ends: another transaction that holds it waits. Books of other users are free.
	Hold(ctx context.Context, userID string) (Book, error)

	// Insert adds an entry and returns its id, which no entry of any user ever
	// had; e.ID is ignored. RECORD_ALREADY_EXIST when the user has the name or
	// the address.
	Insert(ctx context.Context, userID string, e Entry) (int64, error)
	// Replace saves name and address of an entry of the user.
	// RECORD_ALREADY_EXIST as in Insert, RECORD_NOT_FOUND when there is no such
	// entry.
	Replace(ctx context.Context, userID string, e Entry) error
	// Remove deletes an entry of the user; RECORD_NOT_FOUND when there is none.
	Remove(ctx context.Context, userID string, id int64) error
}

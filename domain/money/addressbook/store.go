package addressbook

import "context"

// Store stores the books. Every method joins the transaction that its context carries (commit.Committer.InTx); methods
// that write must be called within one. It is safe for concurrent use.
type Store interface {
	// Book reads a user's book; an empty book is not an error.
	Book(ctx context.Context, userID string) (Book, error)
	// Hold reads a user's book and locks it until the transaction of ctx ends: another transaction that calls Hold for
	// it waits. Books of other users are not locked.
	Hold(ctx context.Context, userID string) (Book, error)

	// Insert adds an entry and returns its id, which was never used before; e.ID is ignored. RECORD_ALREADY_EXIST if
	// the user has the name or the address.
	Insert(ctx context.Context, userID string, e Entry) (int64, error)
	// Replace saves name and address of an entry of the user. RECORD_ALREADY_EXIST as in Insert; RECORD_NOT_FOUND if
	// the entry does not exist.
	Replace(ctx context.Context, userID string, e Entry) error
	// Remove deletes an entry of the user; RECORD_NOT_FOUND if it does not exist.
	Remove(ctx context.Context, userID string, id int64) error
}

package intake

import (
	"context"
	"time"
)

// State is the progress of the import of one file.
type State struct {
	ID        string // of the file's content and its format
	Version   int64  // of its row; 0: there is none yet
	Cursor    int64  // records that were judged
	Imported  int64  // of them, those that became accounts
	Refused   int64  // of them, those that were refused
	Done      bool
	StartedAt time.Time
}

// after returns the state after a batch.
func (s State) after(read, imported, refused int, last bool) State {
	s.Cursor += int64(read)
	s.Imported += int64(imported)
	s.Refused += int64(refused)
	s.Done = last
	return s
}

// Save saves the progress. It is fenced by State.Version, 0 inserts: of two processes that import one file, one fails.
type Save struct {
	State
	At time.Time
}

// Table names the table of the row.
func (Save) Table() string { return "user_import" }

// Fence returns the import and the version that its process saw.
func (w Save) Fence() (string, int64) { return w.ID, w.Version }

// Refusal is a refused line of a file.
type Refusal struct {
	Line   int64
	Reason string // without any text of the file
}

// Refuse records a refused line.
type Refuse struct {
	ImportID string
	Refusal
}

// Table names the table of the row.
func (Refuse) Table() string { return "user_import_refusal" }

// Note says what of an imported user was not taken.
type Note struct {
	Line int64
	Text string // without any text of the file
}

// Remark records a note.
type Remark struct {
	ImportID string
	Note
}

// Table names the table of the row.
func (Remark) Table() string { return "user_import_note" }

// Names are the identifiers of accounts: canonical phones and mail addresses, and external ids.
type Names struct{ Phones, Mails, ExternalIDs []string }

// Store reads imports and the names that accounts have. Writes go through commit.Committer as the values above. It is
// safe for concurrent use.
type Store interface {
	// State reads the progress of an import; Version is 0 if it has not begun.
	State(ctx context.Context, id string) (State, error)
	// Refusals lists refused lines behind a line, in ascending order.
	Refusals(ctx context.Context, id string, after int64, limit int) ([]Refusal, error)
	// Notes lists notes behind a line, in ascending order.
	Notes(ctx context.Context, id string, after int64, limit int) ([]Note, error)
	// Taken returns those of the names that accounts have.
	Taken(ctx context.Context, n Names) (Names, error)
	// ExternalIDs lists the external ids of accounts: account → external id.
	ExternalIDs(ctx context.Context, userIDs []string) (map[string]string, error)
}

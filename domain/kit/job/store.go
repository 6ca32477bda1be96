package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"castellan/domain/kit/page"
)

type ItemState int16

// The states of an item. Sending is durable before the item is sent.
const (
	ItemNew ItemState = iota
	ItemSending
	ItemDone
	ItemFailed
	ItemUnknown
	ItemSkipped
)

// ItemStates are the names of the states, in order.
var ItemStates = []string{"new", "sending", "done", "failed", "unknown", "skipped"}

// Item is one recipient of a job.
type Item struct {
	JobID string
	N     int64 // 1 for the first
	Ref   string
	State ItemState
	Error string // the error, without user texts and addresses
}

// Add inserts a new job (Service.Later).
type Add struct{ Job }

func (Add) Table() string { return "job" }

// Save is the next version of a job. It is fenced by the version that was read. Kind, key, parameters and actor never
// change.
type Save struct{ Job }

func (Save) Table() string { return "job" }

func (s Save) Fence() (string, int64) { return s.ID, s.Version }

// AddItem inserts an item. Its number and its ref are unique within its job.
type AddItem struct{ Item }

func (AddItem) Table() string { return "job_item" }

// SetItem sets state and error of an item, identified by its job and number.
type SetItem struct{ Item }

func (SetItem) Table() string { return "job_item" }

// Query selects jobs; a zero field does not filter.
type Query struct {
	Kind  string
	State State
}

// ItemQuery selects items of one job, in their order.
type ItemQuery struct {
	JobID  string
	After  int64 // number of the last item of the previous page; 0: from the start
	Limit  int
	States []ItemState // none: all
}

// Census is the number of jobs of a kind in a state.
type Census struct {
	Kind  string
	State State
	Jobs  int
	// Stuck counts the jobs that have been due for longer than Late without a step.
	Stuck int
}

// Late is how long a job may be due before it counts as stuck.
const Late = time.Minute

// Store stores the jobs and their items. Every method joins the transaction that its context carries. It is safe for
// concurrent use and passes jobtest.Run. Jobs change through the writes Save, AddItem and SetItem.
type Store interface {
	// Add inserts a job, unless one with its kind and key exists, and returns the stored job. Of many concurrent calls
	// with one key, one adds the job and all get it.
	Add(ctx context.Context, j Job) (stored Job, added bool, err error)
	// Get reads a job. RECORD_NOT_FOUND.
	Get(ctx context.Context, id string) (Job, error)
	// Started returns the keys that have a job of the kind.
	Started(ctx context.Context, kind string, keys []string) ([]string, error)
	// Due lists the ids of up to limit jobs that are due at now, the longest due
	// first.
	Due(ctx context.Context, now time.Time, limit int) ([]string, error)
	// List returns a page of the matching jobs, newest first.
	List(ctx context.Context, q Query, p page.Query[Place]) (page.Of[Job], error)
	// Items lists items of a job.
	Items(ctx context.Context, q ItemQuery) ([]Item, error)
	// Renew sets every unknown item of a job to new and returns their number. It is called in the transaction that
	// saves the job.
	Renew(ctx context.Context, id string) (int64, error)
	// Census counts the jobs that are not over.
	Census(ctx context.Context, now time.Time) ([]Census, error)
	// Purge deletes finished jobs that were created before an instant, with their items, in parts.
	Purge(ctx context.Context, before time.Time) error
}

// Skip says that an item is not to be sent.
//
//lint:ignore ST1012 it reports no failure, as fs.SkipDir does not
var Skip = errors.New("job: not to be sent")

var (
	errUnsure = errors.New("job: unknown whether it was sent")
	errLater  = errors.New("job: nothing was sent")
)

// Unsure says that an item may have been sent.
func Unsure(err error) error { return fmt.Errorf("%w: %w", errUnsure, err) }

// Later says that nothing was sent and that a retry makes sense.
func Later(err error) error { return fmt.Errorf("%w: %w", errLater, err) }

// IsLater reports whether err was made by Later.
func IsLater(err error) bool { return errors.Is(err, errLater) }

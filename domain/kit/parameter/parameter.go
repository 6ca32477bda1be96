// Package parameter manages the system parameters: named JSON objects that administrators change while the service runs
// (section 4.10 of the interface; decisions D-ADM-02, D-GEN-17).
//
// The one idea: a Kind gives a parameter its Go type. The stored object always has the shape of that type, because
// every change is validated against it.
//
// Start reading at kinds.go; Cache holds the snapshot that a node works with.
package parameter

import (
	"context"
	"encoding/json"
	"time"
)

// Parameter is a named object. Code is unique.
type Parameter struct {
	ID        int64
	Code      string
	Name      string
	JSON      json.RawMessage // a JSON object
	Editable  bool
	CreatedAt time.Time
	// UpdatedAt is the version of the parameter: every change increases it by at least a millisecond.
	UpdatedAt time.Time
}

// Query selects parameters; a nil field does not filter.
type Query struct {
	ID       *int64
	Code     *string
	Editable *bool
}

// Store stores the parameters. Every method joins the transaction that its context carries, or else runs in its own. It
// is safe for concurrent use.
type Store interface {
	// List lists the matching parameters in order of creation.
	List(ctx context.Context, q Query) ([]Parameter, error)
	// Add inserts a parameter and returns its id; the id and the times of the argument are ignored.
	// RECORD_ALREADY_EXIST if the code is taken, also under concurrent calls.
	Add(ctx context.Context, p Parameter) (int64, error)
	// Save replaces the object of a parameter that has not changed since it was read, and returns it with its new
	// version. INVALID_STATE if it has changed: of concurrent calls with the same version one succeeds.
	Save(ctx context.Context, read Parameter, object json.RawMessage) (Parameter, error)
}

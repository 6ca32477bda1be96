// Package parameter owns the system parameters: named JSON objects that
// administrators change while the service runs (section 4.10 of the interface;
// decisions D-ADM-02, D-GEN-17).
//
// The one idea: a Kind gives a parameter its Go type. What is stored under its
// code always has the shape of that type, because every change is checked by it.
//
// Start reading at kinds.go; Live holds the snapshot that a node works with.
package parameter

import (
	"context"
	"encoding/json"
	"time"
)

// Parameter is one named object. Code is unique.
type Parameter struct {
	ID        int64
	Code      string
	Name      string
	JSON      json.RawMessage // an object
	Editable  bool
	CreatedAt time.Time
	// UpdatedAt is the version of the parameter: it grows with every change, by at
	// least a millisecond.
	UpdatedAt time.Time
}

// Query selects parameters; nil: any.
type Query struct {
	ID       *int64
	Code     *string
	Editable *bool
}

// Store keeps the parameters. Every method joins the transaction that its context
// carries and else runs in one of its own. It is safe for concurrent use and
// passes parametertest.Run.
type Store interface {
	// List lists the selected parameters in order of creation.
	List(ctx context.Context, q Query) ([]Parameter, error)
	// Add inserts a parameter and returns its id; the id and the instants of the
	// argument are ignored. RECORD_ALREADY_EXIST when the code is taken, also under
	// concurrent calls.
	Add(ctx context.Context, p Parameter) (int64, error)
	// Save replaces the object of a parameter that has not changed since it was
	// read, and returns it with its new version. INVALID_STATE when it has changed,
	// also under concurrent calls: of those that read the same version one wins.
	Save(ctx context.Context, read Parameter, object json.RawMessage) (Parameter, error)
}

package rest

import "context"

// Change is what a request would make of one record. Before and After are records of
// fields; those that stay are in both.
type Change struct {
	Of     string // what it is, such as treasury
	ID     string // "" where Of says all
	Before any
	After  any
}

// Previewed has tell say what a request would change to who decides on it (D-EXT-08).
// It changes nothing. Its errors are what the request would be refused for.
func Previewed[In any](e Endpoint, tell func(context.Context, In) ([]Change, error)) Endpoint {
	e.preview = func(ctx context.Context, in any) ([]Change, error) { return tell(ctx, *in.(*In)) }
	return e
}

// Preview tells what a bound request would change; nil where nobody can say.
func (e *Endpoint) Preview(ctx context.Context, in any) ([]Change, error) {
	if e.preview == nil {
		return nil, nil
	}
	return e.preview(ctx, in)
}

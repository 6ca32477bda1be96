package rest

import "context"

// Change is the change that a request would make to one record. Before and After are records
// of fields; unchanged fields are in both.
type Change struct {
	Of     string // what it is, such as treasury
	ID     string // "" where Of says all
	Before any
	After  any
}

// Previewed adds tell, which describes the changes of a request to its approvers (D-EXT-08).
// It changes nothing. Its errors are the refusals of the request.
func Previewed[In any](e Endpoint, tell func(context.Context, In) ([]Change, error)) Endpoint {
	e.preview = func(ctx context.Context, in any) ([]Change, error) { return tell(ctx, *in.(*In)) }
	return e
}

// Preview returns the changes that a bound request would make; nil if the endpoint has no preview.
func (e *Endpoint) Preview(ctx context.Context, in any) ([]Change, error) {
	if e.preview == nil {
		return nil, nil
	}
	return e.preview(ctx, in)
}

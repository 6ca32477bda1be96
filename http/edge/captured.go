package edge

import (
	"context"
	"encoding/json"
	"fmt"

	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// maxCaptured is the largest command that a challenge keeps (D-2FA-28).
const maxCaptured = 1 << 20

// Captured is a validated request of a guarded endpoint, kept until its caller
// has completed the challenge. It holds the caller's data: store it sealed.
type Captured struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // the template
	Params map[string]string `json:"params,omitempty"`
	Query  string            `json:"query,omitempty"`
	Body   json.RawMessage   `json:"body,omitempty"`
	Caller rest.Caller       `json:"caller"`
	Shown  *rest.Shown       `json:"shown,omitempty"`
}

func capture(e *rest.Endpoint, who rest.Caller, q rest.Query, body []byte) Captured {
	return Captured{Method: e.Method, Path: e.Path, Params: q.Params, Query: q.Raw, Body: body, Caller: who}
}

// captureShown is capture with what the intent of the call has beside its fields.
func captureShown(ctx context.Context, e *rest.Endpoint, who rest.Caller, q rest.Query, body []byte,
	in any) (Captured, error) {
	c := capture(e, who, q, body)
	if e.Show == nil {
		return c, nil
	}
	shown, err := e.Show(ctx, in)
	c.Shown = &shown
	return c, err
}

// call runs the handler of a captured request.
func (c Captured) call(ctx context.Context, e *rest.Endpoint, in any) (any, error) {
	if c.Shown != nil {
		ctx = rest.WithShown(ctx, *c.Shown)
	}
	return e.Call(ctx, c.Caller, in)
}

// commandOf is a command as it is kept. PAYLOAD_TOO_LARGE.
func commandOf(command any) ([]byte, error) {
	text, err := json.Marshal(command)
	if err == nil && len(text) > maxCaptured {
		err = fault.New(fault.PayloadTooLarge, "the request is too large to be stored for approval")
	}
	return text, err
}

// Index finds endpoints by Key.
type Index map[string]*rest.Endpoint

// NewIndex returns the index of a table.
func NewIndex(endpoints []rest.Endpoint) Index {
	ix := make(Index, len(endpoints))
	for i := range endpoints {
		e := endpoints[i]
		ix[e.Key()] = &e
	}
	return ix
}

// key is the key of the endpoint.
func (c Captured) key() string { return c.Method + " " + c.Path }

// bind finds the endpoint of a captured request and binds it again.
func (c Captured) bind(ix Index) (e *rest.Endpoint, in any, err error) {
	if e = ix[c.key()]; e == nil || e.Starts != "" { // a starter only prepares a command and runs nothing
		return nil, nil, fault.New(fault.NotFound, "no such resource")
	}
	in, _, err = e.Bind(rest.Query{Raw: c.Query, Params: c.Params}, c.Body)
	return e, in, err
}

// keepCaptured encodes the answer of a captured request.
func keepCaptured(e *rest.Endpoint, out any) (json.RawMessage, error) {
	a, err := e.EncodeToKeep(out)
	if err != nil {
		return nil, fmt.Errorf("captured request: %w", err)
	}
	if a.ContentType == "" {
		return a.Body, nil
	}
	return json.Marshal(struct {
		ContentType string `json:"contentType"`
		Data        []byte `json:"data"`
	}{a.ContentType, a.Body})
}

// RunCaptured binds a captured request again and runs its handler with the original identity.
// Authorize and MayName judge the caller first, because a permission can have been revoked since
// the request. A successful answer is returned as JSON, its headers are dropped; a binary one
// becomes {"contentType": …, "data": <base64>}.
//
// Errors: NOT_FOUND when the table no longer has the endpoint, those of binding, of a judge and of
// the handler.
func (s *Server) RunCaptured(ctx context.Context, c Captured) (json.RawMessage, error) {
	if e := s.index[c.key()]; e != nil {
		c.Caller.AsAdmin = s.asAdmin(c.Caller, e)
	}
	e, in, err := s.bindCaptured(ctx, c)
	if err != nil {
		return nil, err
	}
	out, err := c.call(ctx, e, in)
	if err != nil {
		return nil, err
	}
	return keepCaptured(e, out)
}

// bindCaptured judges the caller of a captured request again and binds it.
func (s *Server) bindCaptured(ctx context.Context, c Captured) (e *rest.Endpoint, in any, err error) {
	if err = s.Permit(ctx, c.Caller, c.key()); err == nil {
		e, in, err = c.bind(s.index)
	}
	if err == nil {
		err = s.mayName(ctx, c.Caller, e, in)
	}
	return e, in, err
}

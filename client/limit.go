package client

import (
	"context"
	"net/http"
	"time"
)

// LimitRequest is a request of a service under one of its limits (D-WAF-21).
type LimitRequest struct {
	Rule   string `json:"rule"`           // name of the limit
	Entity string `json:"entity"`         // user, address or country
	Cost   int    `json:"cost,omitempty"` // requests that it counts as, 1 to 1000; 0: one
	Peek   bool   `json:"peek,omitempty"` // nothing is counted
}

// LimitState is the decision about a request, with the numbers of the rule that is nearest to its limit.
type LimitState struct {
	Allowed          bool
	Limit, Remaining int64
	Reset, Retry     time.Duration // until the oldest request expires; until this one can be allowed, at the earliest
}

// CountUnderLimit counts a request under a limit of the service, whose key the client has (Service). It is not
// repeated, because a repeated request counts again. Errors: *Error, such as INVALID_FIELD for an unknown limit, and
// UNAVAILABLE if no node could decide.
func (c *Client) CountUnderLimit(ctx context.Context, r LimitRequest) (LimitState, error) {
	var got record[struct {
		Allowed                            bool
		Limit, Remaining, ResetMs, RetryMs int64
	}]
	err := c.Call(ctx, http.MethodPost, "/limit", r, &got)
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	d := got.Data
	return LimitState{d.Allowed, d.Limit, d.Remaining, ms(d.ResetMs), ms(d.RetryMs)}, err
}

package audit

import "context"

type approverKey struct{}

// Rehearsed is the approver of a request that is only rehearsed.
const Rehearsed = "*"

// WithApprover returns a context in which a request runs that a second person has approved.
func WithApprover(ctx context.Context, userID string) context.Context {
	return context.WithValue(ctx, approverKey{}, userID)
}

// Approver returns the person who approved the request of the context; "" for none.
func Approver(ctx context.Context) string {
	userID, _ := ctx.Value(approverKey{}).(string)
	return userID
}

package commit

import "context"

// hooks are the functions that wait for the end of a transaction.
type hooks struct{ run []func() }

type hooksKey struct{}

// After runs fn when the commit made with ctx is durable: at once, or, if ctx is inside InTx, when that transaction has
// committed, before InTx returns. fn never runs if the transaction fails or its outcome is unknown. Call it after
// Commit has returned nil, from the goroutine of the transaction.
//
// It updates copies in memory, such as ended sessions and metrics, without exposing data that may still be rolled back.
func After(ctx context.Context, fn func()) {
	if h, inside := ctx.Value(hooksKey{}).(*hooks); inside {
		h.run = append(h.run, fn)
		return
	}
	fn()
}

// Inside reports whether ctx is inside InTx. Code inside a transaction must not wait for another caller, which may be
// waiting for that transaction.
func Inside(ctx context.Context) bool {
	_, inside := ctx.Value(hooksKey{}).(*hooks)
	return inside
}

// Hooks is for implementations of Committer.InTx: After waits within the returned context, and committed runs the
// waiting functions in order. Call committed once, when the outermost transaction has committed.
func Hooks(ctx context.Context) (_ context.Context, committed func()) {
	h := new(hooks)
	return context.WithValue(ctx, hooksKey{}, h), func() {
		for _, fn := range h.run {
			fn()
		}
	}
}

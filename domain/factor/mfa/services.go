package mfa

import "context"

// ServiceActions returns whether another service may start an action: it has a record, and its code is none of those
// that this service starts itself.
func ServiceActions(store Store, own func(code string) bool) func(ctx context.Context, code string) (bool, error) {
	return func(ctx context.Context, code string) (bool, error) {
		if own(code) {
			return false, nil
		}
		found, err := store.Actions(ctx, code)
		return len(found) > 0, err
	}
}

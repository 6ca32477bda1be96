package policy

import (
	"context"
	"slices"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
)

// Members returns how many active accounts have a role, but one account; "" for none.
func Members(ctx context.Context, users user.Store, role, but string) (n int, err error) {
	held, err := users.Holders(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(held[role]))) {
		if id == but {
			continue
		}
		u, err := users.Get(ctx, id)
		if fault.CodeOf(err) == fault.RecordNotFound {
			continue
		}
		if err != nil {
			return 0, err
		}
		if u.Active() {
			n++
		}
	}
	return n, nil
}

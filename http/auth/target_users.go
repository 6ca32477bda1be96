package auth

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// MayName checks the users that a bound request names (D-AUTH-03). A caller who acts as an
// administrator may not write about a user with a permission that the caller lacks, nor decide
// certain matters of the own account. For a list whose rows are checked when they run, one
// permitted row suffices. A service client has no account to compare: only its role decides
// (D-INT-01). Errors: FORBIDDEN; those of reading the record that the request names, except
// RECORD_NOT_FOUND.
func (g Guards) MayName(ctx context.Context, who rest.Caller, e *rest.Endpoint, in any) error {
	if !e.Naming.Declared() || who.Service != "" || e.Audience == rest.SelfOrAdmin && !g.ActsAsAdmin(who, e) {
		return nil
	}
	named, err := e.Named(ctx, who, in)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	var refusal error
	for _, userID := range named.Users {
		err := g.MayWrite(who.UserID, userID, named.Matter)
		switch {
		case err != nil && !e.Naming.Rows:
			return err
		case err == nil && e.Naming.Rows:
			return nil
		}
		refusal = err
	}
	return refusal
}

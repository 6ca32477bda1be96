package auth

import (
	"context"

	"castellan/domain/proof/stepup"
	"castellan/domain/proof/totp"
	"castellan/http/rest"
)

// Verify checks the caller's current code at endpoints that require one besides the credential
// (edge.Options.Verify, D-AUTH-08).
func Verify(s *totp.Service) func(ctx context.Context, who rest.Caller, e *rest.Endpoint, in any) error {
	return func(ctx context.Context, who rest.Caller, _ *rest.Endpoint, _ any) error {
		return s.Verify(ctx, who.By(), stepup.Typed(who.OTP))
	}
}

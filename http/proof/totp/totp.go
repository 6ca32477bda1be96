// Package totp serves section 4.2 of the interface: setting an authenticator up, deactivating it,
// and recovering its secret. Every rule is in domain/proof/totp.
package totp

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/proof/totp"
	"castellan/http/rest"
)

const section = "4.2 TOTP"

// Group serves the section.
type Group struct{ Service *totp.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Start2FA("POST", "/auth/totp/setup",
			"Set up an authenticator after a challenge",
			rest.User, totp.ActionSetup, g.setup, fault.TOTPAlreadyDefined).TakesRecovery().
			Doc("setupTotp",
				"Starts a challenge. When it is complete, the authenticator is active. execResult.data contains the secret, "+
					"its QR code and five recovery codes, returned only once. An account has one authenticator."),
		rest.Start2FA("POST", "/auth/totp/deactivate",
			"Delete the authenticator after a challenge",
			rest.User, totp.ActionDeactivate, g.deactivate, fault.TOTPNotDefined).TakesRecovery().
			TryLast("").
			Doc("deactivateTotp",
				"Starts a challenge. When it is complete, the authenticator and its recovery codes are deleted."),
		rest.Post("/auth/totp/recover", "Recover the authenticator's secret with a recovery code",
			rest.User, g.recover,
			fault.InvalidField, fault.TOTPNotDefined, fault.RecoveryCodeInvalid, fault.RateLimited).
			Secret("base32", "otpAuthUrl", "otp_auth_url", "qrDataUrl", "qr_data_url").
			Try(`{"recoveryCode":"${setupTotp.result.execResult.data.recoveryCodes.0}"}`).
			Doc("recoverTotp",
				"For an account owner who lost the authenticator app and still has a session. Case, spaces and dashes of the "+
					"code are ignored. Five wrong codes in 15 minutes block the endpoint temporarily for the account."),
	)
}

// Neither action stores data of its request.

func (g Group) setup(ctx context.Context, who rest.Caller, _ rest.None) (rest.None, error) {
	return rest.None{}, g.Service.Definable(ctx, who.UserID)
}

func (g Group) deactivate(ctx context.Context, who rest.Caller, _ rest.None) (rest.None, error) {
	return rest.None{}, g.Service.Removable(ctx, who.UserID)
}

type recoverRequest struct {
	// Code is read in any spelling: case, spaces and dashes do not matter.
	Code string `json:"recoveryCode" alias:"recovery_code" maxLength:"64" doc:"from setupTotp" example:"abcde-fghij"`
}

// recoveredTotp spells two of its fields both ways (D-TOTP-01).
type recoveredTotp struct {
	Base32      string `json:"base32" doc:"the secret"`
	OTPAuthURL  string `json:"otpAuthUrl" doc:"the secret as otpauth://totp/…"`
	QRDataURL   string `json:"qrDataUrl" doc:"the URL as a QR code: a PNG as data:image/png;base64,…"`
	OTPAuthURL2 string `json:"otp_auth_url" alias:"otpAuthUrl"`
	QRDataURL2  string `json:"qr_data_url" alias:"qrDataUrl"`
}

func (g Group) recover(ctx context.Context, who rest.Caller, in recoverRequest) (recoveredTotp, error) {
	a, err := g.Service.Recover(ctx, who.By(), in.Code)
	return recoveredTotp{Base32: a.Base32, OTPAuthURL: a.URL, QRDataURL: a.QRDataURL, OTPAuthURL2: a.URL,
		QRDataURL2: a.QRDataURL}, err
}

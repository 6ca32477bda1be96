// Package fault is the only error type of the service (section 7 of the interface, decision D-GEN-09). An error has a
// stable code, the invalid field and a text that is safe to show. Every layer returns it; only http/rest and http/edge
// turn it into a response. An error that is not an *Error is internal: it is logged and its text never leaves the
// process.
package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Code is a stable error code of the wire.
type Code string

// The codes, in the order of their HTTP status (D-GEN-09).
const (
	InvalidField      Code = "INVALID_FIELD"
	CharLimitExceeded Code = "CHAR_LIMIT_EXCEEDED"

	Unauthenticated         Code = "UNAUTHENTICATED"
	TokenExpired            Code = "TOKEN_EXPIRED"
	TokenRevoked            Code = "TOKEN_REVOKED"
	SubjectUnknown          Code = "SUBJECT_UNKNOWN"
	ChallengeRequired       Code = "CHALLENGE_REQUIRED"
	InvalidCredentials      Code = "INVALID_CREDENTIALS" // #nosec G101: a code, not a credential
	DeviceSignatureRequired Code = "DEVICE_SIGNATURE_REQUIRED"
	DeviceSignatureInvalid  Code = "DEVICE_SIGNATURE_INVALID"
	DPoPInvalid             Code = "DPOP_INVALID"

	Forbidden      Code = "FORBIDDEN"
	TenantMismatch Code = "TENANT_MISMATCH"
	AccessDenied   Code = "ACCESS_DENIED"
	GeoBlocked     Code = "GEO_BLOCKED"
	IPNotAllowed   Code = "IP_NOT_ALLOWED"
	OTPRequired    Code = "OTP_REQUIRED"
	GrantMismatch  Code = "GRANT_MISMATCH"

	RecordNotFound    Code = "RECORD_NOT_FOUND"
	ChallengeNotFound Code = "CHALLENGE_NOT_FOUND"
	MethodNotFound    Code = "METHOD_NOT_FOUND"
	NotFound          Code = "NOT_FOUND" // no such route

	MethodNotAllowed Code = "METHOD_NOT_ALLOWED"

	RecordAlreadyExist     Code = "RECORD_ALREADY_EXIST"
	RecordLimitReached     Code = "RECORD_LIMIT_REACHED"
	InvalidState           Code = "INVALID_STATE"
	ChallengeNotCompleted  Code = "CHALLENGE_NOT_COMPLETED"
	ChallengeClosed        Code = "CHALLENGE_CLOSED"
	MethodAlreadyCompleted Code = "METHOD_ALREADY_COMPLETED"
	MFANotAvailable        Code = "MFA_NOT_AVAILABLE"
	TOTPAlreadyDefined     Code = "TOTP_ALREADY_DEFINED"
	TOTPNotDefined         Code = "TOTP_NOT_DEFINED"
	RenewNotSupported      Code = "RENEW_NOT_SUPPORTED"
	RenewClosed            Code = "RENEW_CLOSED"
	IdempotencyConflict    Code = "IDEMPOTENCY_CONFLICT"
	GrantUsed              Code = "GRANT_USED"

	ChallengeExpired Code = "CHALLENGE_EXPIRED"
	MethodExpired    Code = "METHOD_EXPIRED"

	RequestTimeout   Code = "REQUEST_TIMEOUT"
	PayloadTooLarge  Code = "PAYLOAD_TOO_LARGE"
	UnsupportedMedia Code = "UNSUPPORTED_MEDIA"

	WDNetworkAssetMismatch Code = "WD_NETWORK_ASSET_MISMATCH"
	OTPInvalid             Code = "OTP_INVALID"
	RecoveryCodeInvalid    Code = "RECOVERY_CODE_INVALID"
	PasswordReused         Code = "PASSWORD_REUSED"
	PasswordWrong          Code = "PASSWORD_WRONG"
	IdempotencyMismatch    Code = "IDEMPOTENCY_MISMATCH"

	AccountNotActive     Code = "ACCOUNT_NOT_ACTIVE"
	WithdrawalProhibited Code = "WITHDRAWAL_PROHIBITED"
	AMLRisky             Code = "AML_RISKY"
	PairDisabled         Code = "PAIR_DISABLED"
	BelowMinimum         Code = "BELOW_MINIMUM"
	LimitExceeded        Code = "LIMIT_EXCEEDED"
	AddressNotAllowed    Code = "ADDRESS_NOT_ALLOWED"
	InsufficientBalance  Code = "INSUFFICIENT_BALANCE"
	PolicyDenied         Code = "POLICY_DENIED"
	OwnerRequired        Code = "OWNER_REQUIRED"

	MethodLocked Code = "METHOD_LOCKED"

	RateLimited   Code = "RATE_LIMITED"
	RenewTooEarly Code = "RENEW_TOO_EARLY"

	HeadersTooLarge Code = "HEADERS_TOO_LARGE"

	Internal Code = "INTERNAL"

	Unavailable Code = "UNAVAILABLE"
	Overloaded  Code = "OVERLOADED"
	Draining    Code = "DRAINING"
)

// Problem is one invalid field of a request.
type Problem struct{ Field, Message string }

// Problems collects the invalid fields of a request, for All.
type Problems []Problem

// Require adds the problem of a field unless ok holds.
func (ps *Problems) Require(ok bool, field, format string, args ...any) {
	if !ok {
		*ps = append(*ps, Problem{field, fmt.Sprintf(format, args...)})
	}
}

// Join adds the problems of an INVALID_FIELD, and none of any other error.
func (ps *Problems) Join(err error) {
	var e *Error
	if errors.As(err, &e) {
		*ps = append(*ps, e.Fields...)
	}
}

// Error is a refusal that a caller may see. The zero value of an optional field means "not stated".
type Error struct {
	Code    Code
	Message string // English; shown as the problem's detail
	Field   string // the first invalid field
	Fields  []Problem
	// RetryAfter is how long to wait before the next attempt; it becomes the Retry-After header, in whole seconds
	// rounded up.
	RetryAfter time.Duration
	// Limit accompanies RateLimited: the settings of the limits that can have refused the start, usually one. The log has
	// it, and in development mode the problem's detail.
	Limit string
	// AttemptsLeft accompanies OTPInvalid; nil elsewhere.
	AttemptsLeft *int
	// ResetAt accompanies LimitExceeded: the instant at which the exceeded limit resets; zero elsewhere, and if a rate is
	// missing, because waiting does not help then.
	ResetAt time.Time
	// RedeemedAt accompanies GrantUsed: the time of the first redemption; zero elsewhere.
	RedeemedAt time.Time
	// Record accompanies InvalidState if the caller needs the record to continue: its shape in the interface, as JSON
	// would show it; nil elsewhere.
	Record any
	// Nonce accompanies DeviceSignatureInvalid and DPoPInvalid if only the age of the signature is wrong: the client
	// signs again with the nonce.
	Nonce string
}

func (e *Error) Error() string {
	if e.Field != "" && !strings.HasPrefix(e.Message, e.Field+": ") {
		return string(e.Code) + ": " + e.Field + ": " + e.Message
	}
	return string(e.Code) + ": " + e.Message
}

// New returns an error with a code and a text.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns INVALID_FIELD for one field.
func Invalid(field, format string, args ...any) *Error {
	m := fmt.Sprintf(format, args...)
	return &Error{Code: InvalidField, Field: field, Message: field + ": " + m, Fields: []Problem{{field, m}}}
}

// All joins the problems of several fields into one INVALID_FIELD; nil if there is none.
func All(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	p := problems[0]
	return &Error{Code: InvalidField, Field: p.Field, Message: p.Field + ": " + p.Message, Fields: problems}
}

// Since returns now, the INVALID_FIELD of a changed record, without the problems that the record had before
// in fields that keep their value. So a rule that is newer than a record does not prevent the end of the record.
func Since(before, now error, changed map[string]bool) error {
	was, _ := before.(*Error)
	is, refused := now.(*Error)
	if was == nil || !refused {
		return now
	}
	return All(slices.DeleteFunc(slices.Clone(is.Fields), func(p Problem) bool {
		return !changed[p.Field] && slices.Contains(was.Fields, p)
	}))
}

// After returns a copy of e that tells the caller to wait d.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// By returns a copy of e that names the setting of the limit that refused.
func (e *Error) By(limit string) *Error {
	c := *e
	c.Limit = limit
	return &c
}

// Unexpected returns what a caller sees of an error without a code: UNAVAILABLE for a deadline or a cancellation, which
// are no faults of the client, otherwise INTERNAL. The text of the error stays on the server.
func Unexpected(err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return New(Unavailable, "the request took too long")
	}
	return New(Internal, "the request could not be served")
}

// CodeOf returns the code of err: Internal for an error of any other type and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// Code generated from domain/kit/fault by tools/subset. DO NOT EDIT.

// Package fault has what the client needs of domain/kit/fault.
package fault

import ()

// Code is a stable error code of the wire.
type Code string

const TokenExpired Code = "TOKEN_EXPIRED"

const ChallengeRequired Code = "CHALLENGE_REQUIRED"

const ChallengeNotCompleted Code = "CHALLENGE_NOT_COMPLETED"

const IdempotencyConflict Code = "IDEMPOTENCY_CONFLICT"

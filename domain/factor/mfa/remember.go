package mfa

import (
	"slices"

	"castellan/domain/kit/fault"
)

// MaxRememberDays bounds how long a client is remembered.
const MaxRememberDays = 365

// Administration guards the sensitive endpoints of administrators (mfa.guard_administration).
const Administration = "ADMINISTRATION"

// grave lists the built-in actions that move money or change credentials. A client is remembered for them only if the
// policy has RememberAnyway.
var grave = []string{ResetPassword, UpdatePassword, TOTPSetup, TOTPDeactivate, GeofilterAdd, GeofilterRemove,
	VerifyEmail, DeviceAdd, DeviceRemove, ApproveRequest, Register, Withdraw, Administration}

// rememberProblem checks the option remember.
func (p Policy) rememberProblem(ps []fault.Problem) []fault.Problem {
	before := len(ps)
	ps = between(ps, "remember", int64(p.RememberDays), 0, MaxRememberDays)
	if len(ps) == before && p.RememberDays > 0 && !p.RememberAnyway && slices.Contains(grave, p.ActionCode) {
		ps = append(ps, graveProblem())
	}
	return ps
}

func graveProblem() fault.Problem {
	return fault.Problem{Field: "remember",
		Message: "is refused for actions that move money or change credentials, unless rememberAnyway is true"}
}

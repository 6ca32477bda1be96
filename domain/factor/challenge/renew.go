package challenge

import (
	"time"

	"castellan/domain/kit/fault"
)

// Renew replaces the OTP of an SMS or MAIL method by one with the digest d. It extends the other open methods, so
// that none ends before the renewed one (section 3.1 of the interface, rules 1–4). With an empty digest no value
// matches the new OTP.
//
// Errors, in the order of the checks (D-2FA-21): METHOD_NOT_FOUND, INVALID_FIELD, CHALLENGE_EXPIRED,
// CHALLENGE_CLOSED, METHOD_ALREADY_COMPLETED, RENEW_NOT_SUPPORTED, RENEW_CLOSED, RENEW_TOO_EARLY. They change
// nothing.
func (c Challenge) Renew(now time.Time, r Rules, methodID string, name Name, d Digest) (Challenge, error) {
	i, err := c.Renewable(now, r, methodID, name)
	if err != nil {
		return c, err
	}
	next, ms := c.clone(), now.UnixMilli()
	m := &next.Methods[i]
	m.Digest, m.MadeAt, m.Wrong = d, ms, 0
	m.Generation++
	m.ExpiresAt = min(ms+m.LifetimeMs, c.ExpiresAt)
	for j := range next.Methods {
		o := &next.Methods[j]
		if j == i || o.Order > 0 {
			continue
		}
		until := min(ms+m.LifetimeMs, c.ExpiresAt)
		if o.Name.Sent() {
			until = min(until, o.MadeAt+r.CodeMaxAgeMs)
		}
		o.ExpiresAt = max(o.ExpiresAt, until)
	}
	return next, nil
}

// Renewable makes the checks of Renew and returns the method's index, so that no OTP is created for a renewal that
// must fail.
func (c Challenge) Renewable(now time.Time, r Rules, methodID string, name Name) (int, error) {
	i, err := c.find(methodID, name)
	if err != nil {
		return 0, err
	}
	if err := c.Open(now); err != nil {
		return 0, err
	}
	m, ms := c.Methods[i], now.UnixMilli()
	switch {
	case m.Order > 0:
		return 0, fault.New(fault.MethodAlreadyCompleted, "the method is already completed")
	case !m.Name.Sent() || m.RenewMs <= 0:
		return 0, fault.New(fault.RenewNotSupported, "this method cannot be renewed")
	case c.ExpiresAt-ms < r.RenewCutoffMs:
		return 0, fault.New(fault.RenewClosed, "the challenge expires too soon for a renewal")
	case m.Generation >= r.MaxRenewals:
		return 0, fault.New(fault.RenewClosed, "the method was renewed too often")
	}
	if gate := c.CreatedAt + m.RenewMs; ms < gate {
		return 0, fault.New(fault.RenewTooEarly, "too early to renew").After(time.Duration(gate-ms) * time.Millisecond)
	}
	return i, nil
}

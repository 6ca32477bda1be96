package resource

import (
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

// Matter is the aspect of the named user that an administrator's write decides.
type Matter string

const (
	// General covers names, documents, roles, links and messages. It also applies to the caller's own account.
	General Matter = "general"
	// Contact covers phone numbers and mail addresses, which can reset passwords.
	Contact Matter = "contact"
	// Standing covers money, KYC, level, AML status and the status of the account.
	Standing Matter = "standing"
)

// Refusals of MayWrite.
var (
	errOwn     = fault.New(fault.Forbidden, "another administrator must do this for your own account")
	errExceeds = fault.New(fault.Forbidden, "the account has a permission that you do not have")
)

// MayWrite checks a write by which caller decides m about the account userID (D-AUTH-03). It returns FORBIDDEN when
// the account holds a permission that the caller lacks, and when the account is the caller's own and m is Contact or
// Standing. Commands on the server (audit.Operator) are not bound. It reads the snapshot only and allocates nothing.
func (l *Cache) MayWrite(caller, userID string, m Matter) error {
	switch {
	case caller == audit.Operator.UserID:
		return nil
	case caller == userID && m == General:
		return nil
	case caller == userID:
		return errOwn
	}
	if s := l.held.Current(); l.exceeds(s.of(userID), s.of(caller)) {
		return errExceeds
	}
	return nil
}

// exceeds reports whether p holds a permission that q lacks. At an endpoint for administrators only a grant permits.
// An endpoint open to users permits every account that is not denied, and a grant adds only the right to act for
// others.
func (l *Cache) exceeds(p, q *profile) bool {
	switch {
	case p == q, q.admin:
		return false
	case p.admin:
		return true
	}
	for at, permission := range p.grants {
		if permission.acts() && !q.grants[at].acts() && !l.usersOnly[at] {
			return true
		}
	}
	for _, at := range q.denied {
		if l.open[at] && p.grants[at] != Deny {
			return true
		}
	}
	return false
}

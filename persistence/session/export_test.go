package session

// This file exports internals to the tests of the package.
type (
	MailChangeRow   = mailChangeRow
	RefusedLoginRow = refusedLoginRow
)

var (
	LoginOrder        = loginOrder
	MailChangeFilters = mailChangeFilters
	MailChangeOrder   = mailChangeOrder
	MailChanges       = mailChanges
	RefusedFilters    = refusedFilters
	RefusedLogins     = refusedLogins
)

package permit

// This file exports internals to the tests of the package.
type GrantLogRow = grantLogRow

var (
	GrantLog      = grantLog
	LogFilters    = logFilters
	LogOrder      = logOrder
	MemberFilters = memberFilters
	MemberOrder   = memberOrder
	Members       = members
)

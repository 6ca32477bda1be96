package access

// This file exports internals to the tests of the package.
type (
	GrantLogRow     = grantLogRow
	MailChangeRow   = mailChangeRow
	RefusedLoginRow = refusedLoginRow
	RoleRow         = roleRow
	UserRow         = userRow
)

var (
	AccountFilters    = accountFilters
	AccountsByID      = accountsByID
	Counted           = counted
	GrantLog          = grantLog
	LogFilters        = logFilters
	LogOrder          = logOrder
	LoginOrder        = loginOrder
	MailChangeFilters = mailChangeFilters
	MailChangeOrder   = mailChangeOrder
	MailChanges       = mailChanges
	MemberFilters     = memberFilters
	MemberOrder       = memberOrder
	Members           = members
	RefusedFilters    = refusedFilters
	RefusedLogins     = refusedLogins
	Registered        = registered
	RegisteredFilters = registeredFilters
	RegisteredOrder   = registeredOrder
	VisitorFilters    = visitorFilters
	VisitorOrder      = visitorOrder
	Visitors          = visitors
)

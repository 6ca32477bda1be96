package access

// This file exports internals to the tests of the package.
type (
	GrantLogRow   = grantLogRow
	MailChangeRow = mailChangeRow
	RoleRow       = roleRow
	UserRow       = userRow
)

var (
	AccountFilters    = accountFilters
	AccountsByID      = accountsByID
	Counted           = counted
	GrantLog          = grantLog
	LogFilters        = logFilters
	LogOrder          = logOrder
	MailChangeFilters = mailChangeFilters
	MailChangeOrder   = mailChangeOrder
	MailChanges       = mailChanges
	MemberFilters     = memberFilters
	MemberOrder       = memberOrder
	Members           = members
	Registered        = registered
	RegisteredFilters = registeredFilters
	RegisteredOrder   = registeredOrder
	VisitorFilters    = visitorFilters
	VisitorOrder      = visitorOrder
	Visitors          = visitors
)

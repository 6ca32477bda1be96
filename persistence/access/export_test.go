package access

// What the tests of this package see of its inside.
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

package account

// This file exports internals to the tests of the package.
type UserRow = userRow

var (
	AccountFilters    = accountFilters
	AccountsByID      = accountsByID
	Counted           = counted
	Registered        = registered
	RegisteredFilters = registeredFilters
	RegisteredOrder   = registeredOrder
	VisitorFilters    = visitorFilters
	VisitorOrder      = visitorOrder
	Visitors          = visitors
)

// SetMostFound sets the number of results up to which a search reads them from the index, and returns its end.
func SetMostFound(n int) (end func()) {
	before := mostFound
	mostFound = n
	return func() { mostFound = before }
}

package people

// What the tests of this package see of its inside.
type (
	ApplicationRow = applicationRow
	CorporateRow   = corporateRow
	DocumentRead   = documentRead
)

var (
	ApplicationFilters = applicationFilters
	Applications       = applications
	CorporateFilters   = corporateFilters
	CorporateOrder     = corporateOrder
	CorporateUsers     = corporateUsers
	DocumentFilters    = documentFilters
	DocumentList       = documentList
	DocumentOrder      = documentOrder
	RiskyFilters       = riskyFilters
)

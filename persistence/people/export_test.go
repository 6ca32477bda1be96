package people

// This file exports internals to the tests of the package.
type (
	ApplicationRow = applicationRow
	CorporateRow   = corporateRow
	DocumentRead   = documentRead
)

var (
	Backlogs           = backlogs
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

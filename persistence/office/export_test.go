package office

// This file exports internals to the tests of the package.
type (
	DeployRow   = deployRow
	FourEyesRow = fourEyesRow
	VPNRow      = vpnRow
)

var (
	ApprovalOrder   = approvalOrder
	DeployFilters   = deployFilters
	Deploys         = deploys
	FourEyesFilters = fourEyesFilters
	VPNFilters      = vpnFilters
	VPNs            = vpns
)

package office

// What the tests of this package see of its inside.
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

package office_test

import (
	"testing"

	"castellan/domain/office/contract"
	"castellan/domain/office/contract/contracttest"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func TestContractStore(t *testing.T) {
	persistencetest.RunBoth(t, contracttest.Run,
		func(db *persistence.DB) contract.Store { return office.NewContracts(db) }, "contract_detail", "contract",
		"contract_acceptance")
}

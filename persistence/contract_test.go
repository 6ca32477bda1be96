package persistence

import (
	"testing"

	"castellan/domain/office/contract"
	"castellan/domain/office/contract/contracttest"
)

func TestContractStore(t *testing.T) {
	suite(t, contracttest.Run, func(db *DB) contract.Store { return NewContracts(db) }, "contract_detail", "contract",
		"contract_acceptance")
}

package main

import (
	"cmp"
	"fmt"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/office/contract"
	"castellan/persistence/office"
)

type contractCmd struct {
	Add  contractAddCmd  `cmd:"creates" help:"Add a contract and print its id."`
	List contractListCmd `cmd:"creates" help:"List the contracts: id, code, version, name."`
}

type contractAddCmd struct {
	Code    string `arg:"" help:"Code of the contract: capital letters, digits and _."`
	Name    string `arg:"" help:"Name that users see."`
	Version string `help:"Version of the contract." placeholder:"TEXT"`
	Passive bool   `help:"Do not show the contract to users yet."`
}

func (contractAddCmd) Help() string {
	return `A new installation has the contracts TERMS_OF_USE and PRIVACY. Administrators can also
add contracts, versions and details with POST /admin/contracts:

  castellan contract add DISTANCE_SALES "Distance sales agreement" --version 2026-1`
}

func (c contractAddCmd) Run(e *env, v *app.Deployment) error {
	store := office.NewContracts(v.DB)
	contracts := contract.Service{Store: store, Changes: v.Changes("")}
	contracts.Changes.Lock = store.Lock
	added, err := contracts.Add(e.ctx, audit.Operator,
		contract.Contract{Code: c.Code, Name: c.Name, Version: c.Version, Active: !c.Passive})
	return e.print(explained(err, fault.RecordAlreadyExist, "a contract with the code %q already exists", c.Code),
		added.ID)
}

type contractListCmd struct{}

func (contractListCmd) Run(e *env, v *app.Deployment) error {
	all, err := office.NewContracts(v.DB).Contracts(e.ctx, contract.Query{})
	for _, c := range all {
		fmt.Fprintf(e.out, "%d\t%s\t%s\t%s\n", c.ID, c.Code, cmp.Or(c.Version, "-"), c.Name)
	}
	return err
}

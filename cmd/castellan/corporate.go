package main

import (
	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/people/corporate"
	"castellan/persistence/people"
)

type corporateCmd struct {
	Add corporateAddCmd `cmd:"creates" help:"Add the application of a company and print its id."`
}

type corporateAddCmd struct {
	Name      string `arg:"" help:"Name of the company."`
	TaxNumber string `arg:"" help:"Tax number of the company."`
	Status    string `help:"Status of the application." default:"PENDING" placeholder:"TEXT"`
}

func (corporateAddCmd) Help() string {
	return `Adds an application that administrators can list. Other services add applications with
POST /integration/corporate-applications.

  castellan corporate add "Acme A.Ş." 1234567890 --status APPROVED`
}

func (c corporateAddCmd) Run(e *env, v *app.Deployment) error {
	companies := corporate.Service{Store: people.NewCorporate(v.DB), Changes: v.Changes("")}
	id, err := companies.AddApplication(e.ctx, audit.Operator,
		corporate.Application{CompanyName: c.Name, TaxNumber: c.TaxNumber, Status: c.Status})
	return e.print(err, id)
}

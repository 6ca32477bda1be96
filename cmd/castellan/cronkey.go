package main

import (
	"fmt"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/permit/cronkey"
	"castellan/persistence/permit"
)

type cronKeyCmd struct {
	Add    cronKeyAddCmd    `cmd:"creates" help:"Create a key and print, once, the header value of its client."`
	List   cronKeyListCmd   `cmd:"creates" help:"List the keys: name, time of creation."`
	Remove cronKeyRemoveCmd `cmd:"" help:"Remove a key; every node refuses it within one second."`
}

type cronKeyAddCmd struct {
	Name string `arg:"" help:"Name of the client: letters, digits, _ and -."`
}

func (cronKeyAddCmd) Help() string {
	return `Prints the value of the header cron-auth, which cannot be shown again:

  KEY=$(castellan cron-key add rates)
  curl -H "cron-auth: $KEY" https://…/rates/get-currency-rates

A running service accepts the key within one second.`
}

func (c cronKeyAddCmd) Run(e *env, v *app.Deployment) error {
	header, err := issuer(v).Add(e.ctx, audit.Operator, c.Name)
	return e.print(explained(err, fault.RecordAlreadyExist, "a key named %q already exists: remove it first", c.Name),
		header)
}

type cronKeyListCmd struct{}

func (cronKeyListCmd) Run(e *env, v *app.Deployment) error {
	keys, err := permit.NewCronKeys(v.DB).Keys(e.ctx)
	for _, k := range keys {
		fmt.Fprintf(e.out, "%s\t%s\n", k.Name, k.CreatedAt.UTC().Format(time.RFC3339))
	}
	return err
}

type cronKeyRemoveCmd struct{ keyArg }

func (c cronKeyRemoveCmd) Run(e *env, v *app.Deployment) error {
	return c.report(e, issuer(v).Remove(e.ctx, audit.Operator, c.Name), "removed", c.Name)
}

func issuer(v *app.Deployment) cronkey.Issuer {
	return cronkey.Issuer{Changes: v.Changes(change.CronKeys), Ring: v.Ring}
}

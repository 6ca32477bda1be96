package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/cmd/app/doctor"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/permit/servicekey"
	"castellan/persistence/factor"
	"castellan/persistence/permit"
)

type serviceKeyCmd struct {
	Add    serviceKeyAddCmd    `cmd:"" help:"Create a key and print, once, the header value of its client."`
	List   serviceKeyListCmd   `cmd:"creates" help:"List keys: name, role, networks, created, rotated, actions, callback."`
	Rotate serviceKeyRotateCmd `cmd:"" help:"Create a new key of a client; the previous key stays valid for one hour."`
	Remove serviceKeyRemoveCmd `cmd:"" help:"Remove a key; every node refuses it within one second."`
}

type serviceKeyAddCmd struct {
	Name string   `required:"" help:"Name of the client: letters, digits, _ and -."`
	Role string   `help:"Role of the client, for its permissions (docs/neighbours.md); required without --actions."`
	IP   []string `name:"ip" placeholder:"CIDR" help:"Permitted client address or network; repeatable (default: any)."`
	// Actions and Callback are for the guard (docs/guard.md).
	Actions  []string `placeholder:"CODE" help:"Actions of the challenges that the client can start, separated by commas."`
	Callback string   `placeholder:"URL" help:"https URL to which the outcomes of these challenges are posted."`
}

func (serviceKeyAddCmd) Help() string {
	return `Prints the value of the header service-auth after "key:". It cannot be shown again:

  castellan service-key add --name wallet --role wallet --ip 10.1.0.0/16
  curl -H "service-auth: $KEY" https://…/integration/events

The client can call the endpoints that accept service-auth and that are granted to its
role. With --actions, it can start challenges of these actions (docs/guard.md):

  castellan service-key add --name shop --actions PAYOUT --callback https://shop.example/in

A running service accepts the key within one second.`
}

func (c serviceKeyAddCmd) Run(e *env) error {
	networks, err := servicekey.ParseNetworks(c.IP)
	if err != nil {
		return err
	}
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	_, header, err := serviceKeys(e, v).Add(e.ctx, audit.Operator, servicekey.New{Name: c.Name, Role: c.Role,
		Networks: networks, Actions: c.Actions, Callback: c.Callback})
	return e.print(explained(err, fault.RecordAlreadyExist,
		"a key named %q already exists: rotate it or remove it first", c.Name), "key:", header)
}

type serviceKeyListCmd struct{}

func (serviceKeyListCmd) Run(e *env, v *app.Deployment) error {
	keys, err := permit.NewServiceKeys(v.DB).List(e.ctx)
	for _, k := range keys {
		rotated := "-"
		if !k.RotatedAt.IsZero() {
			rotated = k.RotatedAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(e.out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Name, cmp.Or(k.Role, "-"),
			cmp.Or(servicekey.Join(k.Networks), "any address"), k.CreatedAt.UTC().Format(time.RFC3339), rotated,
			cmp.Or(strings.Join(k.Actions, ","), "-"), cmp.Or(k.Callback, "-"))
	}
	return err
}

// keyArg is the key argument of a command.
type keyArg struct {
	Name string `arg:"" help:"Name of the client."`
}

// report prints what was done with the key.
func (c keyArg) report(e *env, err error, done ...any) error {
	return e.print(explained(err, fault.RecordNotFound, "there is no key named %q", c.Name), done...)
}

type serviceKeyRotateCmd struct{ keyArg }

func (c serviceKeyRotateCmd) Run(e *env, v *app.Deployment) error {
	_, header, err := serviceKeys(e, v).Rotate(e.ctx, audit.Operator, c.Name)
	return c.report(e, err, "key:", header)
}

type serviceKeyRemoveCmd struct{ keyArg }

func (c serviceKeyRemoveCmd) Run(e *env, v *app.Deployment) error {
	return c.report(e, serviceKeys(e, v).Remove(e.ctx, audit.Operator, c.Name), "removed", c.Name)
}

func serviceKeys(e *env, v *app.Deployment) *servicekey.Service {
	return &servicekey.Service{Store: permit.NewServiceKeys(v.DB), Changes: v.Changes(change.ServiceKeys),
		Ring: v.Ring, Roles: permit.NewResources(v.DB).Roles, AllowPlain: e.cfg.Dev,
		Action: mfa.ServiceActions(factor.NewMFA(v.DB), doctor.OwnActions(e.cfg.MFA))}
}

package main

import (
	"fmt"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	foreign "castellan/domain/proof/issuer"
)

type userLinkCmd struct {
	User    string `required:"" help:"User id, mail address, or phone number with its dialling code (+905…)."`
	Issuer  string `required:"" help:"Issuer of the tokens, one of guard.issuers."`
	Subject string `required:"" help:"Value of the claim that identifies the user there."`
	Remove  bool   `help:"Remove the link instead."`
}

func (userLinkCmd) Help() string {
	return `The service then accepts tokens of the subject for the account: the user logs in at
another service and approves transactions here (docs/guard.md).

  castellan user link --user +905321234567 \
    --issuer https://id.example.com/realms/shop --subject 5c1f…

A subject belongs to one account. A running service accepts the link at once, and its owner
is notified. With --remove, the open challenges that the subject started are closed.

It first prints the database and the issuers of its settings, and where they come from:
they must be those of the service.`
}

func (c userLinkCmd) Run(e *env) error {
	for _, key := range []string{"database.url", "guard.issuers"} { // another shell may lack those of the service
		text := e.cfg.Shown(key)
		if key == "database.url" {
			text = e.cfg.Database.Redacted()
		}
		if _, err := fmt.Fprintf(e.err, "%s (%s): %s\n", key, e.cfg.Source(key), text); err != nil {
			return err
		}
	}
	v, err := app.OpenExisting(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	u, err := userArg{c.User}.find(e, v)
	if err != nil {
		return err
	}
	notices, err := v.Notices(e.cfg)
	if err != nil {
		return err
	}
	// A running node learns of a closed challenge from its row.
	s, err := v.Foreign(e.cfg.Guard, v.Changes(""), notices, func(string) {})
	if err != nil {
		return err
	}
	l, did, do := foreign.Link{UserID: u.ID, Issuer: c.Issuer, Subject: c.Subject}, "linked", s.Link
	if c.Remove {
		did, do = "removed the link of", s.Unlink
	}
	err = do(e.ctx, audit.Operator, l)
	err = explained(err, fault.RecordAlreadyExist, "the subject %q is already linked to an account", c.Subject)
	err = explained(err, fault.RecordNotFound, "the subject %q is not linked to the account", c.Subject)
	return e.print(err, did, u.ID)
}

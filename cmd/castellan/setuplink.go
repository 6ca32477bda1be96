package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

type setupLinkCmd struct{}

func (setupLinkCmd) Help() string {
	return `Prints a link to a page that makes the first administrator, with a passkey or an
authenticator. The link is valid for 30 minutes and for one administrator. A new link
voids the one before it, and an administrator voids every link. The service can run.

  docker compose exec node-1 /castellan setup-link
  kubectl exec castellan-0 -- /castellan setup-link

The link begins with http.public_url. A holder of the link becomes the administrator:
do not send it, and keep the output out of logs.`
}

func (setupLinkCmd) Run(e *env) error {
	if e.cfg.Dev {
		return errors.New("development mode has an administrator; the login is in dev-login.txt of its data folder")
	}
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	token, l, err := v.Bootstrap().Create(e.ctx, audit.Operator)
	err = explained(err, fault.InvalidState, "an administrator exists; castellan user add --role admin adds another one")
	if err != nil {
		return err
	}
	// An address is no domain, and a passkey needs one.
	base := strings.Replace(e.cfg.HTTP.PublicURL, "http://127.0.0.1", "http://localhost", 1)
	if _, err := fmt.Fprintln(e.out, base+"/setup#"+token); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.err, "valid until %s\n", l.ExpiresAt.UTC().Format(time.DateTime+" UTC"))
	return err
}

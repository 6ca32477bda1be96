package main

import (
	"fmt"

	"castellan/cmd/app/calibrate"
)

type passwordCmd struct {
	Calibrate calibrateCmd `cmd:"" help:"Measure this machine, and print the strongest parameters of password hashes."`
}

type calibrateCmd struct {
	Logins int `help:"Logins a second that this machine must serve." required:"" placeholder:"N"`
}

func (calibrateCmd) Help() string {
	return `Measures argon2id with the sets of OWASP and RFC 9106, and with stronger ones, in all
slots at once (password.hash_slots). Prints how many logins a second this machine would
serve with each, and what a guess costs an attacker who has the stored hashes. The last
lines are the settings of the strongest set that still serves N logins a second.

Run it on a machine that does nothing else; it takes about ten seconds and changes
nothing. After the settings have changed, stored hashes get the new parameters at the
next login of their account.

  castellan password calibrate --logins 50`
}

const maxLogins = 100_000

func (c calibrateCmd) Run(e *env) error {
	if c.Logins < 1 || c.Logins > maxLogins {
		return fmt.Errorf("--logins must be 1 to %d", maxLogins)
	}
	return calibrate.Run(e.ctx, e.out, c.Logins, e.cfg.Password.HashSlots)
}

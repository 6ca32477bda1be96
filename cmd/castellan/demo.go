package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/cmd/app/adapters"
	"castellan/cmd/demo"
	"castellan/domain/account/password"
	"castellan/domain/money/addressbook/address"
	"castellan/persistence"
)

type demoCmd struct {
	Users    *int    `help:"Number of accounts, 100 to 5000000 (default 300)." placeholder:"N"`
	Seed     *uint64 `help:"Seed of the random data; equal seeds give equal data (default 1)." placeholder:"N"`
	Now      string  `help:"End of the history at 00:00 UTC, such as 2026-01-31 (default today)." placeholder:"DAY"`
	Password string  `help:"Password of all printed logins (default: a random password for each)." placeholder:"TEXT"`
}

func (demoCmd) Help() string {
	return `Fills a new database with demo data of one year: accounts in every state, logins,
documents, currencies, rates, a ledger, contracts, announcements, rules, roles, requests
and jobs. All names, numbers and wallet addresses are fictitious.

  CASTELLAN_DEV=true castellan demo                  then: make run
  castellan demo --users 1000000                     minutes, with the progress on stderr

Stop the service first. The database must not contain accounts, except for the two
logins of development mode. To continue an interrupted run, run the command again
without options or with the same ones; nothing is created twice. The same seed, users
and day give the same data, except for passwords and keys of the installation.

Only the accounts that are printed at the end have a password, because a million
password hashes would take hours. The logins are also saved to demo-logins.txt in the
data folder. If they are created in development mode, they work only in that mode.`
}

func (c demoCmd) Run(e *env) error {
	clock := new(demo.Clock)
	v, err := app.OpenWith(e.ctx, e.cfg, persistence.Options{Now: clock.Now})
	if err != nil {
		return err
	}
	defer v.Close()
	files, err := adapters.Files(e.cfg.Files)
	if err != nil {
		return err
	}
	hasher, err := app.NewHasher(e.cfg)
	if err != nil {
		return err
	}
	rules, err := address.NewRules(e.cfg.AddressBook.AddressRules)
	if err != nil {
		return err
	}
	logins := app.DemoLoginsFile(e.cfg.DataDir)
	w := demo.World{DB: v.DB, Clock: clock, Ring: v.Ring, Files: files, Hasher: hasher, HashIdentity: v.HashIdentity,
		Rules: rules, Waiting: e.cfg.AddressBook.WaitingTime, Dev: e.cfg.Dev, Password: c.password,
		Progress: progressOn(e.err), Keep: func(all []demo.Login) error { return keepLogins(logins, all) }}
	if c.Password != "" {
		if err := app.PasswordPolicy(e.cfg).Check(c.Password, password.Personal{}); err != nil {
			return err
		}
	}
	o, err := c.options(e, w)
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := demo.Run(e.ctx, w, o)
	switch {
	case errors.Is(err, demo.ErrFinished):
		return fmt.Errorf("%w; the logins are in %s", err, logins)
	case errors.Is(err, demo.ErrPeople), errors.Is(err, demo.ErrMoney): // before the first stage
		return err
	case err != nil:
		return fmt.Errorf("%w\nfinished work is saved: run the command again to continue", err)
	}
	return report(e.out, s, o, logins, time.Since(began))
}

// options returns the options of the command, or of the run that it continues.
func (c demoCmd) options(e *env, w demo.World) (demo.Options, error) {
	o := demo.Options{Seed: 1, Users: 300, Now: time.Now().UTC().Truncate(24 * time.Hour)}
	was, begun, err := demo.Unfinished(e.ctx, w)
	if err != nil {
		return o, err
	}
	if begun {
		o = was
	}
	if c.Users != nil {
		o.Users = *c.Users
	}
	if c.Seed != nil {
		o.Seed = *c.Seed
	}
	if c.Now != "" {
		if o.Now, err = time.Parse(time.DateOnly, c.Now); err != nil {
			return o, errors.New("--now must be a day such as 2026-01-31")
		}
	}
	if o.Users < demo.LeastUsers || o.Users > demo.MostUsers {
		return o, fmt.Errorf("--users must be %d to %d", demo.LeastUsers, demo.MostUsers)
	}
	return o, nil
}

func (c demoCmd) password() string { return cmp.Or(c.Password, app.RandomPassword()) }

// progressOn writes the progress of a run, once a second.
func progressOn(out io.Writer) func(done, of int, what string) {
	began, last := time.Now(), time.Time{}
	return func(done, of int, what string) {
		now := time.Now()
		if of == 0 {
			fmt.Fprintln(out, what)
			return
		}
		if now.Sub(last) < time.Second && done < of {
			return
		}
		last = now
		spent := now.Sub(began)
		left := time.Duration(0)
		if done > 0 {
			left = spent * time.Duration(of-done) / time.Duration(done)
		}
		fmt.Fprintf(out, "%s: %d of %d, %s, about %s left\n", what, done, of, spent.Round(time.Second),
			left.Round(time.Second))
	}
}

// keepLogins writes the logins of the demo data to a file.
func keepLogins(file string, all []demo.Login) error {
	var b strings.Builder
	b.WriteString("Logins of the demo data. Other accounts have no password.\n\n")
	for _, l := range all {
		fmt.Fprintf(&b, "%s\n", inLine(l))
	}
	return app.KeepLogins(file, b.String())
}

func inLine(l demo.Login) string {
	return fmt.Sprintf("%-15s  %-20s  +%s %s  %-21s  password %s", l.Who, l.Name, l.CountryCode, l.Phone, l.Mail,
		l.Password)
}

func report(out io.Writer, s demo.Summary, o demo.Options, logins string, took time.Duration) error {
	var transfers int64
	for _, t := range s.Totals {
		transfers += t.Transfers
	}
	fmt.Fprintf(out, "%d accounts; ledger of %d assets and %d transfers verified; %s\n\n", o.Users, len(s.Totals),
		transfers, took.Round(time.Second))
	for _, l := range s.Logins {
		fmt.Fprintf(out, "  %s\n%19s%s\n", inLine(l), "", l.See)
	}
	_, err := fmt.Fprintf(out, "\nTo log in, run \"make run\": the page of sent codes shows the codes.\n"+
		"The logins are saved in %s.\n", logins)
	return err
}

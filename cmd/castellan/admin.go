package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/money/transaction"
	"castellan/domain/people/kyc"
	"castellan/persistence/account"
)

type userCmd struct {
	Add    userAddCmd    `cmd:"" help:"Add an account and print its id."`
	Unlock userUnlockCmd `cmd:"" help:"Unlock an account after too many wrong passwords."`

	Withdrawals    userWithdrawalsCmd    `cmd:"" help:"Prohibit or allow withdrawals of an account."`
	ReopenKYC      userReopenKYCCmd      `cmd:"" name:"reopen-kyc" help:"Reopen the decision on a rejected identity."`
	AllowIP        userAllowIPCmd        `cmd:"" name:"allow-ip" help:"Set the networks for submitting identity data."`
	Link           userLinkCmd           `cmd:"" help:"Link an account to a subject of another login service."`
	Import         userImportCmd         `cmd:"" help:"Import the users of another login service."`
	Export         userExportCmd         `cmd:"" help:"Export the accounts to a file."`
	Phones         userPhonesCmd         `cmd:"" help:"List phone numbers that 0.9 shortened, and repair them."`
	ClearGeofilter userClearGeofilterCmd `cmd:"" name:"clear-geofilter" help:"Clear the country filter of an account."`
}

type userAddCmd struct {
	Email         string `help:"Mail address." required:""`
	CountryCode   string `help:"Dialling code of the phone, such as 90." required:""`
	Phone         string `help:"Phone number without the dialling code." required:""`
	PasswordStdin bool   `help:"Read the password from the first line of standard input." required:""`
	Role          string `help:"Role to assign." enum:"admin,user" default:"user"`
	Name          string `help:"First name."`
	Surname       string `help:"Last name."`
}

func (userAddCmd) Help() string {
	return `To create the first administrator of a new installation:

  read -rs PASSWORD; printf '%s\n' "$PASSWORD" | castellan user add \
    --email admin@example.com --country-code 90 --phone 5321234567 \
    --password-stdin --role admin

A running service accepts the account at once. The phone number and the mail address
must not belong to another account. In a container, which needs no shell:

  printf '%s\n' "$PASSWORD" | docker compose exec -T node-1 /castellan user add …
  printf '%s\n' "$PASSWORD" | kubectl exec -i castellan-0 -- /castellan user add …

"castellan setup-link" makes the first administrator in a browser instead.`
}

func (c userAddCmd) Run(e *env) error {
	line, err := bufio.NewReader(io.LimitReader(e.in, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the password: %w", err)
	}
	secret := strings.TrimRight(line, "\r\n")
	phone, err := user.Canonical(c.CountryCode, c.Phone)
	if err != nil {
		return err
	}
	mail, err := user.CanonicalMail(c.Email)
	if err != nil {
		return err
	}
	dial, err := user.DialCode(c.CountryCode)
	if err != nil {
		return err
	}
	owner := password.Personal{Phone: phone, DialCode: dial, Mail: mail}
	if err := app.PasswordPolicy(e.cfg).Check(secret, owner); err != nil {
		return err
	}
	hasher, err := app.NewHasher(e.cfg)
	if err != nil {
		return err
	}
	hash, err := hasher.Hash(e.ctx, secret)
	if err != nil {
		return err
	}
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	now := time.Now()
	u := user.New(id.New(now), now)
	u.CountryCode, u.Phone, u.Email, u.Name, u.Surname = dial, phone, mail, c.Name, c.Surname
	if c.Role == user.RoleAdmin {
		u.Roles = []string{user.RoleAdmin}
	}
	done := admin.Done{Target: u.ID, UserID: u.ID, Detail: "role " + c.Role}
	done.Writes = append(done.Writes, user.Add{User: u, PasswordHash: hash})
	// An administrator voids the setup link, so the two wait for each other.
	err = v.Bootstrap().Changes.Do(e.ctx, audit.Operator, "USER_ADD", func(context.Context) (admin.Done, error) {
		return done, nil
	})
	return e.print(explained(err, fault.RecordAlreadyExist,
		"an account with this phone number or mail address already exists"), u.ID)
}

// userArg is the account argument of a command.
type userArg struct {
	User string `arg:"" help:"User id, mail address, or phone number with its dialling code (+905…)."`
}

// find reads the account in the argument.
func (c userArg) find(e *env, v *app.Deployment) (u user.User, err error) {
	users := account.NewUsers(v.DB)
	switch to := app.CanonicalDestination(c.User); {
	case strings.Contains(c.User, "@"):
		u, err = users.ByEmail(e.ctx, to)
	case strings.HasPrefix(c.User, "+"):
		u, err = users.ByPhone(e.ctx, to, user.FormerOf(to))
	default:
		u, err = users.Get(e.ctx, c.User)
	}
	return u, explained(err, fault.RecordNotFound, "there is no account %q", c.User)
}

type userUnlockCmd struct{ userArg }

func (c userUnlockCmd) Run(e *env, v *app.Deployment) error {
	u, err := c.find(e, v)
	if err != nil {
		return err
	}
	err = v.Operate(e.ctx, change.Users, audit.Record{Action: "USER_UNLOCK", UserID: u.ID, Target: u.ID},
		password.ClearGuard{Key: u.ID}, challenge.SwitchOn{UserID: u.ID})
	return e.print(err, "unlocked", u.ID)
}

type userWithdrawalsCmd struct {
	userArg
	Permission string `arg:"" enum:"prohibit,allow" help:"Permission to withdraw."`
}

func (userWithdrawalsCmd) Help() string {
	return `Sets isWithdrawProhibited in the profile of the account (GET /user/user-profile).
While it is set, the queued withdrawals of the account are held.`
}

func (c userWithdrawalsCmd) Run(e *env, v *app.Deployment) error {
	u, err := c.find(e, v)
	if err != nil {
		return err
	}
	prohibit := c.Permission == "prohibit"
	var done admin.Done
	done.Writes = append(done.Writes, user.SetWithdrawProhibited{UserID: u.ID, Prohibited: prohibit})
	if prohibit {
		hold, err := transaction.HoldQueued(&job.Service{Changes: v.Changes(change.Users),
			Seal: v.Ring.Seal})(audit.Operator, u.ID)
		if err != nil {
			return err
		}
		done.Writes = append(done.Writes, hold)
	}
	err = v.Operate(e.ctx, change.Users, audit.Record{Action: "USER_WITHDRAWALS", UserID: u.ID, Target: u.ID,
		Detail: c.Permission}, done.Writes...)
	return e.print(err, c.Permission, u.ID)
}

type userReopenKYCCmd struct{ userArg }

func (userReopenKYCCmd) Help() string {
	return `Sets kycConfirm of the account to waitingApproval, as an upload of another identity
document does. The identity of the account must be rejected.`
}

func (c userReopenKYCCmd) Run(e *env, v *app.Deployment) error {
	u, err := c.find(e, v)
	if err != nil {
		return err
	}
	err = kyc.Reopen(e.ctx, account.NewUsers(v.DB), v.Changes(change.Users), audit.Operator, u.ID)
	return e.print(err, "reopened", u.ID)
}

type userPhonesCmd struct {
	Repair bool `help:"Store the repaired numbers."`
}

func (userPhonesCmd) Help() string {
	return `Lists the accounts whose phone number version 0.9 shortened: it dropped one leading 0 in
every country, also where the 0 is part of the number, and no other prefix. Each line has the
account, the stored number and the repaired one. Nothing changes without --repair.

Run it with --repair when no node of 0.9 runs any more. Until then a login also tries the
stored form, and new accounts are stored so that 0.9 finds them. If another account has the
repaired number, both are listed and neither changes: ask their owners. A number that is in
use with and without the 0 cannot be judged and stays as it is.`
}

func (c userPhonesCmd) Run(e *env, v *app.Deployment) error {
	repaired := 0
	ambiguous, err := user.FindShortened(e.ctx, account.NewUsers(v.DB), func(s user.Shortened) error {
		if s.Other == "" && c.Repair {
			done, err := repairPhone(e, v, s)
			if err != nil {
				return err
			}
			if done {
				repaired++
			} else {
				s.Other = "another account"
			}
		}
		end := ""
		if s.Other != "" {
			end = ", the number of " + s.Other
		}
		_, err := fmt.Fprintf(e.out, "%s %s -> %s%s\n", s.UserID, s.Phone, s.Repaired, end)
		return err
	})
	if err != nil {
		return err
	}
	for _, dial := range slices.Sorted(maps.Keys(ambiguous)) {
		if _, err := fmt.Fprintf(e.out, "+%s: %d numbers are in use with and without a leading 0, and stay as they are\n",
			dial, ambiguous[dial]); err != nil {
			return err
		}
	}
	if !c.Repair {
		return nil
	}
	return e.print(account.EndPhoneRepair(e.ctx, v.DB), "repaired", repaired)
}

// repairPhone stores a repaired number. It reports false if another account has taken the number meanwhile.
func repairPhone(e *env, v *app.Deployment, s user.Shortened) (done bool, err error) {
	err = v.Operate(e.ctx, change.Users, audit.Record{Action: "USER_PHONE_REPAIR", UserID: s.UserID, Target: s.UserID},
		user.SetPhone{UserID: s.UserID, CV: s.CV, CountryCode: s.CountryCode, Phone: s.Repaired, Repair: true})
	if fault.CodeOf(err) == fault.RecordAlreadyExist {
		return false, nil
	}
	return err == nil, err
}

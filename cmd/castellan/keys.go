package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/keyring"
	"castellan/domain/people/identity"
	"castellan/persistence/kit"
	"castellan/persistence/people"
)

type keysCmd struct {
	List   keysListCmd `cmd:"creates" help:"List the keys with their use and expiry."`
	Rotate rotateCmd   `cmd:"" help:"Replace a key by a new one, also after a compromise."`
	Rehash rehashCmd   `cmd:"" help:"Hash identity numbers again with the new key."`
}

type keysListCmd struct{}

func (keysListCmd) Help() string {
	return `The steady key is the one for stable hashes: of decoys, destinations of messages, the Web
Push key (VAPID), one-time tokens, identity numbers and idempotency keys. A rotation keeps
it; "castellan keys rotate hashing --compromised" replaces it. The thumbprint of a signing
key is that of "castellan intent verify"; expired keys stay in the list.`
}

func (keysListCmd) Run(e *env, v *app.Deployment) error {
	store, now := kit.NewKeys(v.DB), time.Now()
	records, err := store.Keys(e.ctx)
	if err != nil {
		return err
	}
	recovery, cron, err := store.Held(e.ctx)
	if err != nil {
		return err
	}
	serves, thumbprints := v.Ring.Serves(now), v.Ring.Thumbprints()
	w := e.table()
	for _, r := range records {
		what := []string{serves[r.ID]}
		if n := recovery[r.ID]; n > 0 {
			what = append(what, fmt.Sprintf("recovery codes of %d accounts", n))
		}
		if n := cron[r.ID]; n > 0 {
			what = append(what, fmt.Sprintf("%d keys of scheduled clients", n))
		}
		if thumbprint := thumbprints[r.ID]; thumbprint != "" {
			what = append(what, "thumbprint "+thumbprint)
		}
		until := "no expiry"
		if !r.RetiredAt.IsZero() {
			until = "until " + r.RetiredAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\tfrom %s\t%s\t%s\n", r.Purpose, r.ID, r.NotBefore.UTC().Format(time.RFC3339), until,
			strings.Join(what, "; "))
	}
	return w.Flush()
}

type rotateCmd struct {
	Purpose string `arg:"" optional:"" enum:"signing,sealing,hashing,master" default:"signing" help:"Purpose of the key."`
	Force   bool   `help:"Rotate even if tokens of the previous key are valid; they end at once."`

	Compromised bool          `help:"Revoke older keys after a compromise (signing, hashing)."`
	Grace       time.Duration `help:"Validity of older hashing keys after --compromised, 25h or more." default:"25h"`
}

func (rotateCmd) Help() string {
	return `signing  A new key is published at once and signs ten seconds later. The old key
         verifies until its last token expires. No restart is needed.
         --compromised: the tokens of all older keys expire after those ten
         seconds, and all users must log in again.
sealing  New values are encrypted with the new key; old values stay readable. If a
         key was compromised, values encrypted with it may have been read, and a
         rotation does not help. Set up authenticators again, change credentials.
hashing  New codes are hashed with the new key ten seconds later. Old keys still
         verify. Stable hashes keep the steady key (castellan keys list).
         --compromised: ten seconds later, the new key replaces the steady key.
           decoys             those of the password reset come from the new key
           messages           limits count messages under both keys
           Web Push (VAPID)   /.well-known/vapid.json has the new key; pushes are
                              signed with both until the device subscribes again
           one-time tokens    new ones come from the new key, issued ones work
           identity numbers   hashed again at once (castellan keys rehash)
         The older keys expire after --grace, 25 hours or more. Recovery codes and
         keys of scheduled clients that were created with them expire too; the
         command prints their number.
master   All keys are encrypted with a new master key file. On several nodes, first
         copy the same <file>.new next to the file of each node. A compromised
         master key compromises all keys: rotate it, then signing and hashing with
         --compromised, and sealing. The key of the audit trail is never rotated;
         compare checkpoints that are stored elsewhere.`
}

func (c rotateCmd) Run(e *env, v *app.Deployment) error {
	purpose := keyring.Purpose(c.Purpose)
	switch {
	case c.Compromised:
		return c.replace(e, v, purpose)
	case c.Purpose == "master":
		return c.master(e, v)
	}
	life, err := v.TokenLife(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	r, err := v.Keeper.Rotate(e.ctx, purpose, life, c.Force)
	if err != nil {
		return err
	}
	if err := c.record(e, v, r.ID); err != nil {
		return err
	}
	fmt.Fprintf(e.out, "new %s key %s, in use from %s\n", c.Purpose, r.ID, r.From.Format(time.RFC3339))
	if r.Retiring != "" {
		fmt.Fprintf(e.out, "key %s verifies until %s\n", r.Retiring, r.Until.Format(time.RFC3339))
	}
	for _, ended := range r.Ended {
		fmt.Fprintf(e.out, "key %s and its tokens have expired\n", ended)
	}
	return nil
}

func (c rotateCmd) record(e *env, v *app.Deployment, key string) error {
	detail := c.Purpose
	if c.Compromised {
		detail += ", compromised"
	}
	return v.Operate(e.ctx, "", audit.Record{Action: "KEYS_ROTATE", Target: key, Detail: detail})
}

func (c rotateCmd) master(e *env, v *app.Deployment) error {
	name, err := v.Keeper.RotateMaster(e.ctx)
	if err != nil {
		return err
	}
	return e.print(c.record(e, v, name), "all keys are encrypted by master key", name)
}

// replace creates a key in place of compromised ones.
func (c rotateCmd) replace(e *env, v *app.Deployment, purpose keyring.Purpose) error {
	if purpose != keyring.Signing && purpose != keyring.Hashing {
		return errors.New("--compromised requires signing or hashing; see castellan keys rotate --help")
	}
	r, err := v.Keeper.Replace(e.ctx, purpose, c.Grace)
	if err != nil {
		return err
	}
	if err := c.record(e, v, r.ID); err != nil {
		return err
	}
	fmt.Fprintf(e.out, "new %s key %s, in use from %s\n", c.Purpose, r.ID, r.From.Format(time.RFC3339))
	recovery, cron, err := kit.NewKeys(v.DB).Held(e.ctx)
	if err != nil {
		return err
	}
	for _, old := range r.Ended {
		fmt.Fprintf(e.out, "key %s expires at %s", old, r.Until.Format(time.RFC3339))
		if recovery[old]+cron[old] > 0 {
			fmt.Fprintf(e.out, ", with the recovery codes of %d accounts and %d keys of scheduled clients",
				recovery[old], cron[old])
		}
		fmt.Fprintln(e.out)
	}
	if purpose != keyring.Hashing {
		return nil
	}
	fmt.Fprintln(e.out, "devices must subscribe to Web Push again: /.well-known/vapid.json then has the new key")
	select { // every node has the new key by then
	case <-e.ctx.Done():
		return fmt.Errorf("run castellan keys rehash: %w", e.ctx.Err())
	case <-time.After(time.Until(r.From)):
	}
	if err := v.Keeper.Reload(e.ctx); err != nil {
		return fmt.Errorf("run castellan keys rehash: %w", err)
	}
	return rehashCmd{}.Run(e, v)
}

type rehashCmd struct{}

func (rehashCmd) Help() string {
	return `"castellan keys rotate hashing --compromised" runs this at its end. Run it again if that
was interrupted. If all numbers are hashed with the new key, it changes nothing.`
}

func (rehashCmd) Run(e *env, v *app.Deployment) error {
	changed, left, err := identity.Rehash(e.ctx, people.NewIdentities(v.DB), v.Ring,
		func(seen int) { fmt.Fprintf(e.err, "\r%d identity numbers", seen) })
	if err != nil {
		return fmt.Errorf("hash identity numbers again (repeat with castellan keys rehash): %w", err)
	}
	if changed > 0 {
		fmt.Fprintln(e.err)
		done := audit.Record{Action: "KEYS_REHASH", Detail: fmt.Sprint(changed, " accounts")}
		if err := v.Operate(e.ctx, "", done); err != nil {
			return err
		}
	}
	fmt.Fprintf(e.out, "%d identity numbers hashed again", changed)
	if left > 0 {
		fmt.Fprintf(e.out, "; %d accounts have no stored number: after the old key expires, they cannot be found by it",
			left)
	}
	return e.print(nil)
}

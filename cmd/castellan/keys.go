package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/persistence/kit"
)

type keysCmd struct {
	List   keysListCmd `cmd:"" help:"List the keys, what each serves, and until when."`
	Rotate rotateCmd   `cmd:"" help:"Make a new key and let it follow the present one; heal what a known key spoils."`
	Rehash rehashCmd   `cmd:"" help:"Put the hashes of identity numbers under the new key."`
}

type keysListCmd struct{}

func (keysListCmd) Help() string {
	return `steady: what is counted, found or derived by its hash comes from this key: decoys,
destinations of messages, the key of Web Push (VAPID), one-time tokens, identity
numbers, idempotency keys. It stays when keys rotate and goes with
"castellan keys rotate hashing --compromised".`
}

func (keysListCmd) Run(e *env) error {
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	store, now := kit.NewKeys(v.DB), time.Now()
	records, err := store.Keys(e.ctx)
	if err != nil {
		return err
	}
	recovery, cron, err := store.Held(e.ctx)
	if err != nil {
		return err
	}
	serves := v.Ring.Serves(now)
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	for _, r := range records {
		what := []string{serves[r.ID]}
		if n := recovery[r.ID]; n > 0 {
			what = append(what, fmt.Sprintf("recovery codes of %d accounts", n))
		}
		if n := cron[r.ID]; n > 0 {
			what = append(what, fmt.Sprintf("%d keys of scheduled clients", n))
		}
		until := "for ever"
		if !r.RetiredAt.IsZero() {
			until = "until " + r.RetiredAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\tfrom %s\t%s\t%s\n", r.Purpose, r.ID, r.NotBefore.UTC().Format(time.RFC3339), until,
			strings.Join(what, "; "))
	}
	return w.Flush()
}

type rotateCmd struct {
	Purpose string `arg:"" optional:"" enum:"signing,sealing,hashing,master" default:"signing" help:"Which key."`
	Force   bool   `help:"Rotate although tokens of the key before are still alive; they end at once."`

	Compromised bool          `help:"Older keys became known: they end. For signing and hashing."`
	Grace       time.Duration `help:"How long older hashing keys go on after --compromised; 25h or more." default:"25h"`
}

func (rotateCmd) Help() string {
	return `signing  A new key is published at once and signs ten seconds later; the old one
         verifies until its last token has ended. Nothing is restarted.
         --compromised: the tokens of all older keys end with those ten seconds;
         everybody logs in again.
sealing  New values are sealed under the new key; old ones stay readable. What was
         sealed under a key that became known was readable by whoever had both:
         no rotation heals that. Set authenticators up again, change credentials.
hashing  New codes are hashed under the new key ten seconds later; old keys go on
         to verify. What is counted, found or derived by its hash stays under the
         steady key (castellan keys list).
         --compromised: the new key takes over all of that ten seconds later.
           decoys             those of the password reset come from the new key
           messages           caps count what was sent under both keys
           Web Push (VAPID)   /.well-known/vapid.json has the new key; devices
                              subscribe again, pushes go out under both until then
           one-time tokens    new ones come from the new key, those under way work
           identity numbers   hashed again at once (castellan keys rehash)
         The older keys end after --grace, 25 hours or more, and verify nothing
         from then on: recovery codes and keys of scheduled clients that were made
         under them end too. The command says how many there are.
master   All keys are wrapped again under a new master key file. On several nodes
         put the same <file>.new beside each node's file first. A master key that
         became known has shown all keys: rotate it, then signing and hashing with
         --compromised, and sealing. The key of the audit trail is never rotated;
         checkpoints kept elsewhere vouch for what was before the leak.`
}

func (c rotateCmd) Run(e *env) error {
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	purpose := map[string]keyring.Purpose{"signing": keyring.Signing, "sealing": keyring.Sealing,
		"hashing": keyring.Hashing}[c.Purpose]
	switch {
	case c.Compromised:
		return c.replace(e, v, purpose)
	case purpose == "":
		return c.master(e, v)
	}
	life, err := v.TokenLife(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	r, err := v.Keeper.Rotate(e.ctx, purpose, life, c.Force)
	if fault.CodeOf(err) == fault.InvalidState {
		return fmt.Errorf("%w (--force ends its tokens now)", err)
	}
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
		fmt.Fprintf(e.out, "key %s and its tokens have ended\n", ended)
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
	if err := c.record(e, v, name); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "all keys are wrapped by master key %s\n", name)
	return err
}

// replace creates a key in place of compromised ones.
func (c rotateCmd) replace(e *env, v *app.Deployment, purpose keyring.Purpose) error {
	if purpose != keyring.Signing && purpose != keyring.Hashing {
		return errors.New("--compromised is for signing and hashing; see castellan keys rotate --help")
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
		fmt.Fprintf(e.out, "key %s ends at %s", old, r.Until.Format(time.RFC3339))
		if recovery[old]+cron[old] > 0 {
			fmt.Fprintf(e.out, ", and with it the recovery codes of %d accounts and %d keys of scheduled clients",
				recovery[old], cron[old])
		}
		fmt.Fprintln(e.out)
	}
	if purpose != keyring.Hashing {
		return nil
	}
	fmt.Fprintln(e.out, "devices subscribe anew for Web Push: /.well-known/vapid.json has the new key from then on")
	select { // every node has the new key by then
	case <-e.ctx.Done():
		return fmt.Errorf("run castellan keys rehash: %w", e.ctx.Err())
	case <-time.After(time.Until(r.From)):
	}
	if err := v.Keeper.Reload(e.ctx); err != nil {
		return fmt.Errorf("run castellan keys rehash: %w", err)
	}
	return rehash(e, v)
}

type rehashCmd struct{}

func (rehashCmd) Help() string {
	return `"castellan keys rotate hashing --compromised" does this at its end. Repeat it where
that was cut short; it changes nothing where nothing is to do.`
}

func (rehashCmd) Run(e *env) error {
	v, err := app.Open(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	return rehash(e, v)
}

func rehash(e *env, v *app.Deployment) error {
	changed, left, err := v.RehashIdentities(e.ctx, func(seen int) { fmt.Fprintf(e.err, "\r%d identity numbers", seen) })
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
	fmt.Fprintf(e.out, "%d identity numbers hashed anew", changed)
	if left > 0 {
		fmt.Fprintf(e.out, "; of %d accounts the number is not kept: nobody finds them by it once the old key has ended",
			left)
	}
	_, err = fmt.Fprintln(e.out)
	return err
}

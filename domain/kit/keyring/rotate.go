package keyring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"castellan/domain/kit/fault"
)

// Notice is how long a new key is published before it comes into use, so that every node and every cache of the key set
// has it by then (D-AUTH-01).
const Notice = 10 * time.Second

// Rotation is the result of a rotation.
type Rotation struct {
	ID   string    // the new key
	From time.Time // when it comes into use
	// Retiring is the replaced signing key, and Until the instant at which its last token has ended. Empty for other
	// purposes.
	Retiring string
	Until    time.Time
	// Ended lists signing keys that stop verifying although their tokens have not ended: the price of force.
	Ended []string
}

// Rotate makes a new key for a purpose, which replaces the newest one.
//
// A signing key is published at once and signs after Notice; the old one verifies until its last token has ended,
// tokenLife later. Until then another rotation is rejected with INVALID_STATE, so that at most two keys are live. With
// force the rotation proceeds and ends the older of the two keys, and its tokens, at once. Two forced rotations
// therefore end a leaked key.
//
// A sealing key seals at once, and the old one can open its values forever: Stale finds the values still sealed under
// it. A hashing key is used for new values after Notice; the older ones still verify, and the steady key does not
// change (StableHash). The audit key is not rotated: INVALID_FIELD.
//
// INVALID_STATE also reports that another process rotated at the same time. The ring of this process gets the new key
// like any other: through Reload.
func (k *Keeper) Rotate(ctx context.Context, p Purpose, tokenLife time.Duration, force bool) (Rotation, error) {
	if p != Signing && p != Sealing && p != Hashing {
		return Rotation{}, fault.Invalid("purpose", "keys of this purpose are not rotated")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	records, err := k.load(ctx)
	if err != nil {
		return Rotation{}, fmt.Errorf("rotate keys: %w", err)
	}
	now := k.now().Truncate(time.Millisecond)
	var newest Record
	var live []Record // retired, but some of their tokens have not ended
	for _, r := range records {
		if r.Purpose != p {
			continue
		}
		if r.Seq > newest.Seq {
			newest = r
		}
		if r.RetiredAt.After(now) { // a hashing key does not block the rotation
			live = append(live, r)
		}
	}
	from := now.Add(Notice)
	if p == Sealing {
		from = now
	}
	next := newKey(k.master, p, newest.Seq+1, now, from)
	done := Rotation{ID: next.ID, From: next.NotBefore}
	var retired []Record
	if p == Signing {
		for _, r := range live {
			if !force {
				return Rotation{}, fault.New(fault.InvalidState,
					"signing key %s verifies tokens until %s: rotate after that, or use --force, which ends them now",
					r.ID, r.RetiredAt.UTC().Format(time.RFC3339))
			}
			r.RetiredAt = now
			retired = append(retired, r)
			done.Ended = append(done.Ended, r.ID)
		}
		newest.RetiredAt = from.Add(tokenLife)
		retired = append(retired, newest)
		done.Retiring, done.Until = newest.ID, newest.RetiredAt
	}
	return done, k.follow(ctx, next, retired)
}

// follow stores a new key and the keys it retires.
func (k *Keeper) follow(ctx context.Context, next Record, retired []Record) error {
	err := k.store.Rotate(ctx, next, retired...)
	if fault.CodeOf(err) == fault.RecordAlreadyExist {
		return fault.New(fault.InvalidState, "another process has just rotated the %s key", next.Purpose)
	}
	if err != nil {
		return fmt.Errorf("rotate keys: %w", err)
	}
	return nil
}

// RotateMaster wraps all keys with a new master key and returns its id. It must not be called inside a transaction,
// since files do not roll back.
//
// The new key is written to <file>.new, the rows are changed in one transaction, and then the new file replaces the old
// one. If that is interrupted at any point, Open finds the file that fits the rows. The old key stays as <file>.<its
// id> for older backups of the database. If the rotation is due to a leaked key, remove that file by hand.
//
// An existing <file>.new becomes the new key. On several nodes, first put the same <file>.new beside each node's file:
// the other nodes then use it automatically.
//
// INVALID_STATE reports that the keys changed at the same time.
func (k *Keeper) RotateMaster(ctx context.Context) (id string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	records, err := k.load(ctx)
	if err != nil {
		return "", fmt.Errorf("rotate master key: %w", err)
	}
	next, err := ReadMaster(k.file + nextSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		next, err = CreateMaster(k.file + nextSuffix)
	}
	if err != nil {
		return "", fmt.Errorf("rotate master key: %w", err)
	}
	for i, r := range records {
		secret, err := k.master.unwrap(r)
		if err != nil {
			return "", fmt.Errorf("rotate master key: %w", err)
		}
		records[i] = next.wrap(r, secret)
		clear(secret)
	}
	// If this fails with an unknown outcome, the prepared file stays and Open decides by the rows.
	if err := k.store.Rewrap(ctx, k.master.id, records); err != nil {
		return "", fmt.Errorf("rotate master key: %w", err)
	}
	k.master = next
	if err := promote(k.file, next); err != nil {
		return next.id, fmt.Errorf("master key %s is in use but still in %s%s: move it to %s: %w", next.id, k.file,
			nextSuffix, k.file, err)
	}
	return next.id, nil
}

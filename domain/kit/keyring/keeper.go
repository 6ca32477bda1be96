package keyring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"castellan/domain/kit/fault"
)

// Keeper holds the master key, makes keys and keeps a Ring up to date. It is
// safe for concurrent use.
type Keeper struct {
	store Store
	file  string
	now   func() time.Time
	ring  *Ring

	mu     sync.Mutex // guards master, and orders reloads so that an older view never replaces a newer one
	master Master
}

// Open reads the keys of store with the master key in file and makes the missing keys. On the first start it makes all;
// later it makes the keys of new purposes. The caller holds the lock for setting up a deployment. Without the lock
// nothing breaks, since the store accepts only one set.
//
// The master key itself is made only if mayCreate is true, the store has no key and the file does not exist. So a new
// master key never replaces one that keys depend on. If the file is missing, or its key does not wrap the keys, the
// error names a key. An interrupted rotation of the master key is completed here.
func Open(ctx context.Context, store Store, file string, mayCreate bool, now func() time.Time) (*Keeper, error) {
	k := &Keeper{store: store, file: file, now: now}
	k.ring = &Ring{now: now, reload: k.Reload}
	if err := k.open(ctx, mayCreate); err != nil {
		return nil, fmt.Errorf("open keys: %w", err)
	}
	return k, nil
}

// Ring returns the ring, which follows every Reload.
func (k *Keeper) Ring() *Ring { return k.ring }

// Reload reads the keys again. Keys that the ring already holds are not unwrapped again, so a node works through a
// rotation of the master key even before it has the new file; only a new key needs the file. On an error the ring is
// unchanged.
func (k *Keeper) Reload(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	records, err := k.store.Keys(ctx)
	if err == nil && !k.ring.view.Load().holds(records) {
		records, err = k.load(ctx)
	}
	if err == nil {
		err = k.show(records)
	}
	if err != nil {
		return fmt.Errorf("reload keys: %w", err)
	}
	return nil
}

func (k *Keeper) open(ctx context.Context, mayCreate bool) error {
	records, err := k.store.Keys(ctx)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		err = k.first(mayCreate)
	} else {
		records, err = k.load(ctx)
	}
	if err != nil {
		return err
	}
	if missing := k.missing(records); len(missing) > 0 {
		// The process that loses the race to make them uses the winner's keys.
		if err := k.store.Add(ctx, missing...); err != nil && fault.CodeOf(err) != fault.RecordAlreadyExist &&
			fault.CodeOf(err) != fault.InvalidState {
			return err
		}
		if records, err = k.load(ctx); err != nil {
			return err
		}
	}
	return k.show(records)
}

// first finds or makes the master key for a store without keys.
func (k *Keeper) first(mayCreate bool) (err error) {
	k.master, err = ReadMaster(k.file)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !mayCreate {
		return fmt.Errorf("there is no master key: create %[1]s once, with (umask 077; openssl rand -base64 32 > %[1]s), "+
			"keep a copy in a safe place and copy the same file to every node", k.file)
	}
	k.master, err = CreateMaster(k.file)
	if errors.Is(err, fs.ErrExist) { // another process was first
		k.master, err = ReadMaster(k.file)
	}
	return err
}

// load reads the keys and finds their master key. If none fits, the master key may have been rotated between the two
// reads, so load retries as long as the rows name a different one.
func (k *Keeper) load(ctx context.Context) ([]Record, error) {
	for seen := ""; ; {
		records, err := k.store.Keys(ctx)
		if err != nil {
			return nil, err
		}
		if len(records) == 0 {
			return nil, errors.New("the store has no keys")
		}
		if err = k.fit(records[0]); err == nil || records[0].MasterID == seen {
			return records, err
		}
		seen = records[0].MasterID
	}
}

// fit finds the master key that wraps a key, as it wraps all others. It is in the file, or in the prepared file if a
// rotation was interrupted between rows and file.
func (k *Keeper) fit(want Record) error {
	// The prepared file is read first: if another process moves it into place meanwhile, the next read finds it there.
	next, errNext := ReadMaster(k.file + nextSuffix)
	if errNext == nil && next.id == want.MasterID {
		k.master = next
		if err := promote(k.file, next); err != nil {
			slog.Warn("the prepared file of the master key stays beside the old one; the next start tries again", "err", err)
		}
		return nil
	}
	m, err := ReadMaster(k.file)
	if err == nil && m.id == want.MasterID {
		k.master = m
		return nil
	}
	if errors.Is(errNext, fs.ErrNotExist) {
		errNext = nil
	}
	needs := fmt.Sprintf("key %s (%s) is wrapped by master key %s", want.ID, want.Purpose, want.MasterID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%s, and the file %s is missing: restore it; no other file decrypts the keys", needs, k.file)
	case err != nil:
		err = fmt.Errorf("%s: %w", needs, err)
	default:
		err = fmt.Errorf("%s, but %s holds master key %s: restore the right one", needs, k.file, m.id)
	}
	return errors.Join(err, errNext) // the prepared key may be the right one, but unreadable
}

// missing makes a first key for every purpose without one.
func (k *Keeper) missing(records []Record) (made []Record) {
	now := k.now()
	for _, p := range purposes {
		if !slices.ContainsFunc(records, func(r Record) bool { return r.Purpose == p }) {
			made = append(made, newKey(k.master, p, 1, now, now))
		}
	}
	return made
}

// show puts records into the ring.
func (k *Keeper) show(records []Record) error {
	old := k.ring.view.Load()
	keys := make([]*key, len(records))
	for i, r := range records {
		if old != nil {
			if held := old.find(r.ID, r.Purpose); held != nil {
				keys[i] = &key{r, held.material}
				continue
			}
		}
		m, err := k.material(r)
		if err != nil {
			return err
		}
		keys[i] = &key{r, m}
	}
	v, err := newView(keys)
	if err != nil {
		return err
	}
	k.ring.view.Store(v)
	return nil
}

func (k *Keeper) material(r Record) (*material, error) {
	secret, err := k.master.unwrap(r)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	m, err := newMaterial(r.Purpose, secret)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", r.ID, err)
	}
	return m, nil
}

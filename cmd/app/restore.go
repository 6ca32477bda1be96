package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/config"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/backup"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/money/ledger"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/money"
)

// Progress receives how much of a long step is done, in bytes.
type Progress func(step string, done int64)

// Backup writes the deployment to an empty store while it serves: most files, the database at one instant, and the
// files that were stored meanwhile.
func (v *Deployment) Backup(ctx context.Context, files, to blob.Store, version string, progress Progress) (
	backup.Manifest, error) {
	w, err := backup.NewWriter(ctx, to, func(done int64) { progress("copied", done) })
	if err != nil {
		return backup.Manifest{}, err
	}
	w.Version = version
	for _, copied := range []func() error{
		func() error { return w.Files(ctx, files) },
		func() error { return persistence.Dump(ctx, v.DB, w) },
		func() error { return w.Files(ctx, files) },
		func() error { return w.Close(ctx, v.Ring.Audit()) },
	} {
		if err := copied(); err != nil {
			return w.Manifest, err
		}
	}
	return w.Manifest, v.DB.Commit(ctx, audit.Operator.Did(audit.Record{At: time.Now(), Action: "BACKUP",
		Detail: w.Point.Format(time.RFC3339Nano)}))
}

// Restored is the result of a restore.
type Restored struct {
	Point time.Time
	Ended persistence.Ended
	Audit int64           // verified rows
	Books []ledger.Totals // verified; nil if the ledger was not verified
}

// Restore restores a backup into an empty place. A backup that is damaged, incomplete or of another deployment is
// refused before anything changes. An interrupted restore leaves a place that only another Restore accepts.
func Restore(ctx context.Context, cfg config.Config, from blob.Store, verify bool, progress Progress) (r Restored,
	err error) {
	master, err := keyring.ReadMaster(cfg.Keys.MasterFile)
	if err != nil {
		return r, fmt.Errorf("keys.master_file: %w (a backup never contains the master key)", err)
	}
	b, err := backup.Open(ctx, from, master)
	if err != nil {
		return r, fmt.Errorf("--from: %w", err)
	}
	if err := persistence.CanRestore(b, cfg.Database.URL.Reveal()); err != nil {
		return r, err
	}
	o := persistence.Options{MaxConns: cfg.Database.MaxConnections, Patient: true}
	place, err := persistence.Stage(ctx, cfg.Database.URL.Reveal(), o)
	if err != nil {
		return r, fmt.Errorf("database.url: %w", err)
	}
	if err := b.Check(ctx, func(done int64) { progress("checked", done) }); err != nil {
		return r, fmt.Errorf("--from: %w", err)
	}
	files, err := adapters.Files(cfg.Files)
	if err != nil {
		return r, err
	}
	if !place.Again {
		for info, err := range files.List(ctx, blob.All) {
			if err == nil {
				err = fmt.Errorf("there are files already, such as %s: restore into an empty place only", info.Key)
			}
			return r, fmt.Errorf("files: %w", err)
		}
	}
	if err := persistence.Mark(ctx, place, b, o); err != nil {
		return r, err
	}
	if err := restoreFiles(ctx, b, files, progress); err != nil {
		return r, err
	}
	db, err := persistence.Restore(ctx, place, b, o)
	if err != nil {
		return r, fmt.Errorf("restore the database: %w", err)
	}
	v := &Deployment{DB: db}
	r, err = v.restored(ctx, cfg, b, verify, progress)
	_, embedded := cfg.Database.SQLitePath()
	if err == nil && !embedded {
		err = place.Finish(ctx, db)
	}
	if err = errors.Join(err, db.Close()); err == nil && embedded {
		err = place.Finish(ctx, nil)
	}
	return r, err
}

func restoreFiles(ctx context.Context, b *backup.Backup, files blob.Store, progress Progress) error {
	var done int64
	for f, err := range b.List(ctx) {
		if err != nil {
			return err
		}
		content, err := b.File(ctx, f)
		if err != nil {
			return err
		}
		if err := files.Put(ctx, f.Key, content); err != nil {
			return err
		}
		done += f.Bytes
		progress("restored files", done)
	}
	return nil
}

// restored completes a database that has the rows of a backup.
func (v *Deployment) restored(ctx context.Context, cfg config.Config, b *backup.Backup, verify bool,
	progress Progress) (r Restored, err error) {
	if _, err := persistence.Migrate(ctx, v.DB); err != nil {
		return r, err
	}
	if _, err := persistence.BuildIndexes(ctx, v.DB); err != nil {
		return r, err
	}
	if v.Keeper, err = keyring.Open(ctx, kit.NewKeys(v.DB), cfg.Keys.MasterFile, false, time.Now); err != nil {
		return r, err
	}
	v.Ring = v.Keeper.Ring()
	if err := persistence.CompareHeads(ctx, v.DB, b.Heads); err != nil {
		return r, err
	}
	if verify {
		progress("verifying the audit trail and the ledger", 0)
		if r, err = v.verifyChains(ctx, b.Heads.Checkpoint); err != nil {
			return r, err
		}
	}
	persistence.Start(v.DB, v.Ring.Audit(), id.New(time.Now()))
	r.Point = b.Point
	r.Ended, err = v.invalidate(ctx, b.Point, b.Heads.EventsAfter)
	return r, err
}

func (v *Deployment) verifyChains(ctx context.Context, since audit.Anchor) (r Restored, err error) {
	rows, err := kit.NewAudit(v.DB).VerifySince(ctx, v.Ring.Audit(), since)
	if err != nil {
		return r, err
	}
	r.Audit = rows.Rows
	r.Books, err = ledger.Verify(ctx, money.NewLedger(v.DB))
	return r, err
}

// invalidate replaces the signing key and ends all that must not outlive a restore.
func (v *Deployment) invalidate(ctx context.Context, point time.Time, eventsAfter int64) (e persistence.Ended,
	err error) {
	if _, err := v.Keeper.Restore(ctx); err != nil {
		return e, err
	}
	now := time.Now()
	restore := id.New(now)
	err = v.DB.InTx(ctx, func(ctx context.Context) error {
		if e, err = persistence.Invalidate(ctx, v.DB, restore, point, eventsAfter); err != nil {
			return err
		}
		return v.DB.Commit(ctx, audit.Operator.Did(audit.Record{At: now, Action: "RESTORE", Target: restore,
			Detail: point.UTC().Format(time.RFC3339Nano)}))
	})
	return e, err
}

// AdoptRestored does what Restore does after the copy, in a database that another program has restored. Such a program
// is pg_restore, Litestream, or PostgreSQL with an archive of its log. No process may serve the database.
func AdoptRestored(ctx context.Context, cfg config.Config, point time.Time, verify bool) (r Restored, err error) {
	v, err := openExisting(ctx, cfg, persistence.Options{Serves: true}) // SQLite: no other process serves
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if alone, clustered, err := v.DB.Servers(ctx); err != nil || alone+clustered > 1 {
		return r, errors.Join(err, errors.New("the service uses this database: stop every node first"))
	}
	if verify {
		if r, err = v.verifyChains(ctx, audit.Anchor{}); err != nil {
			return r, err
		}
	}
	after, err := persistence.LastEvent(ctx, v.DB)
	if err != nil {
		return r, err
	}
	r.Point = point
	r.Ended, err = v.invalidate(ctx, point, after)
	return r, err
}

package main

import (
	"fmt"
	"time"

	"castellan/cmd/app"
	"castellan/cmd/app/adapters"
)

type backupCmd struct {
	To string `help:"Empty folder, or s3://BUCKET/NAME on the server of files.s3_url." required:"" placeholder:"PLACE"`
}

func (backupCmd) Help() string {
	return `Copies the database as it is at one instant, and the files, while the service runs. The
manifest is written last and signed with the audit key: a backup without it is
incomplete. It has the heads of the audit trail and of the ledger, which "castellan
restore --verify" compares.

  castellan backup --to /backup/2026-11-29

The master key (keys.master_file) is never part of a backup: keep a copy elsewhere. A
backup has personal data: protect its place like the database. SQLite needs as much free
space as the database, beside it. docs/backup.md has the steps of a whole week.`
}

func (c backupCmd) Run(e *env, v *app.Deployment) error {
	files, err := adapters.Files(e.cfg.Files)
	if err != nil {
		return err
	}
	to, err := adapters.BackupTo(e.cfg.Files, c.To)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	m, err := v.Backup(e.ctx, files, to, version, e.progress())
	fmt.Fprintln(e.err)
	if err != nil {
		return fmt.Errorf("--to %s: %w", c.To, err)
	}
	return e.printf(nil, "backup of %s complete: %d bytes, %d files, %d transfers, audit checkpoint %d\n",
		m.Point.Format(time.RFC3339Nano), m.Bytes, m.Files, m.Heads.Transfers, m.Heads.Checkpoint.Counter)
}

// progress returns a function that writes a line of progress at most five times a second.
func (e *env) progress() app.Progress {
	var last time.Time
	var of string
	return func(step string, done int64) {
		if of == step && time.Since(last) < 200*time.Millisecond {
			return
		}
		if of != "" && of != step {
			fmt.Fprintln(e.err)
		}
		last, of = time.Now(), step
		fmt.Fprintf(e.err, "\r%s", step)
		if done > 0 {
			fmt.Fprintf(e.err, " %d MiB", done>>20)
		}
	}
}

package persistence

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/backup"
	"castellan/persistence/engine"
	"castellan/persistence/kit"
)

// Staged is the place of a restore; see engine.Staged.
type Staged = engine.Staged

// ErrUnfinished refuses a database in which a restore was interrupted.
var ErrUnfinished = engine.ErrUnfinished

// Dump writes the database to a backup as it is at one instant, with the heads of its chains. The process that calls it
// need not be the only one.
func Dump(ctx context.Context, db *DB, w *backup.Writer) error {
	keys, err := kit.NewKeys(db).Keys(ctx) // the audit key never changes
	if err != nil {
		return err
	}
	w.Keys, w.Database = keys, databaseOf(db)
	w.Point = db.Now().UTC().Truncate(time.Millisecond)
	return db.Freeze(ctx, func(f *engine.Frozen) error {
		if w.Heads, err = headsOf(ctx, db.Postgres(), f.Rows); err != nil {
			return err
		}
		done, err := f.Rows(ctx, "SELECT name FROM schema_migrations ORDER BY name")
		if err != nil {
			return err
		}
		for _, m := range done {
			w.Migrations = append(w.Migrations, m[0])
		}
		for _, table := range f.Tables {
			copied := func(to *backup.StreamWriter) error { return f.Copy(ctx, table, to) }
			if err := w.Stream(ctx, table, copied); err != nil {
				return err
			}
		}
		if !db.Postgres() {
			return nil
		}
		w.Sequences, err = numbersOf(ctx, f.Rows, "SELECT sequencename, COALESCE(last_value + increment_by, start_value) "+
			"FROM pg_sequences WHERE schemaname = current_schema()")
		return err
	})
}

func databaseOf(db *DB) string {
	if db.Postgres() {
		return backup.PostgreSQL
	}
	return backup.SQLite
}

// query returns the result of a query as texts.
type query func(ctx context.Context, text string) ([][]string, error)

// numbersOf returns the rows of a query as a map.
func numbersOf(ctx context.Context, read query, text string) (map[string]int64, error) {
	rows, err := read(ctx, text)
	all := make(map[string]int64, len(rows))
	for _, r := range rows {
		n, nerr := strconv.ParseInt(r[1], 10, 64)
		all[r[0]], err = n, errors.Join(err, nerr)
	}
	return all, err
}

// The heads of the chains. An event of a transaction that was under way at the point may be lost, and readers get the
// later ones only after its end.
const (
	auditHeads = "SELECT chain, MAX(seq) FROM audit GROUP BY chain"
	newestMark = "SELECT counter, hex(hash) FROM audit_checkpoint ORDER BY counter DESC LIMIT 1"
	transfers  = "SELECT COALESCE(MAX(id), ''), COUNT(*) FROM transfer"
	lastEvent  = "SELECT 'tx', COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'integration_event'"

	newestMarkPostgres = "SELECT counter, encode(hash, 'hex') FROM audit_checkpoint ORDER BY counter DESC LIMIT 1"
	lastEventPostgres  = "SELECT 'tx', pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1 + " +
		kit.EventsOffset
)

func headsOf(ctx context.Context, postgres bool, read query) (h backup.Heads, err error) {
	if h.Audit, err = numbersOf(ctx, read, auditHeads); err != nil {
		return h, err
	}
	mark, event := newestMark, lastEvent
	if postgres {
		mark, event = newestMarkPostgres, lastEventPostgres
	}
	marks, err := read(ctx, mark)
	if err != nil {
		return h, err
	}
	for _, m := range marks {
		var a audit.Anchor
		a.Counter, err = strconv.ParseInt(m[0], 10, 64)
		mac, herr := hex.DecodeString(m[1])
		if a.MAC = mac; errors.Join(err, herr) != nil {
			return h, errors.Join(err, herr)
		}
		if a.Counter > 0 {
			h.Checkpoint = a
		}
	}
	moved, err := numbersOf(ctx, read, transfers)
	if err != nil {
		return h, err
	}
	for h.LastTransfer, h.Transfers = range moved {
	}
	events, err := numbersOf(ctx, read, event)
	h.EventsAfter = events["tx"]
	return h, err
}

// CanRestore reports why this program cannot restore a backup to a database.
func CanRestore(b *backup.Backup, dsn string) error {
	if kind := (map[bool]string{true: backup.SQLite, false: backup.PostgreSQL})[engine.IsSQLite(dsn)]; b.Database != kind {
		return fmt.Errorf("database.url names %s, and the backup is of %s", kind, b.Database)
	}
	known, err := engine.MigrationsOf(migrations, b.Database == backup.PostgreSQL)
	if err != nil {
		return err
	}
	for _, name := range b.Migrations {
		if !slices.ContainsFunc(known, func(m engine.Migration) bool { return m.Name == name }) {
			return fmt.Errorf("the backup was made by a newer version, %s (migration %s)", b.Version, name)
		}
	}
	return nil
}

// Stage examines the place of a restore and changes nothing. An error if there is a database.
func Stage(ctx context.Context, dsn string, o Options) (Staged, error) {
	return engine.Stage(ctx, dsn, kinds(time.Now), o)
}

// Mark marks the place as unfinished: from now on no program serves it.
func Mark(ctx context.Context, s Staged, b *backup.Backup, o Options) error {
	if b.Database == backup.SQLite {
		return s.LoadFile(strings.NewReader(""))
	}
	db, err := Open(ctx, s.DSN, o)
	if err != nil {
		return err
	}
	return errors.Join(s.Clear(ctx, db), db.Close())
}

// Restore fills the place, which is marked, and opens it in the schema of the backup.
func Restore(ctx context.Context, s Staged, b *backup.Backup, o Options) (db *DB, err error) {
	tables := b.Tables()
	if b.Database == backup.SQLite {
		if len(tables) != 1 {
			return nil, backup.ErrDamaged
		}
		content, err := b.Stream(ctx, tables[0])
		if err != nil {
			return nil, err
		}
		if err := s.LoadFile(content); err != nil {
			return nil, err
		}
		return Open(ctx, s.DSN, o)
	}
	if db, err = Open(ctx, s.DSN, o); err != nil {
		return nil, err
	}
	if _, err = db.Migrate(ctx, only{migrations, b.Migrations}); err == nil {
		err = db.Load(ctx, tables, func(t string) (io.Reader, error) { return b.Stream(ctx, t) }, b.Sequences)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// only is a file system with some of the files of another one.
type only struct {
	fs.FS
	names []string
}

func (o only) Glob(pattern string) ([]string, error) {
	all, err := fs.Glob(o.FS, pattern)
	return slices.DeleteFunc(all, func(f string) bool { return !slices.Contains(o.names, path.Base(f)) }), err
}

// CompareHeads reports the first difference between the heads of the database and those of a backup.
func CompareHeads(ctx context.Context, db *DB, want backup.Heads) error {
	has, err := headsOf(ctx, db.Postgres(), db.Texts)
	switch {
	case err != nil:
		return err
	case !maps.Equal(has.Audit, want.Audit):
		return errors.New("the chains of the audit trail differ from those of the backup")
	case has.Checkpoint.String() != want.Checkpoint.String():
		return fmt.Errorf("the newest checkpoint is %s, that of the backup is %s", has.Checkpoint, want.Checkpoint)
	case has.Transfers != want.Transfers, has.LastTransfer != want.LastTransfer:
		return fmt.Errorf("the ledger has %d transfers, the backup has %d", has.Transfers, want.Transfers)
	}
	return nil
}

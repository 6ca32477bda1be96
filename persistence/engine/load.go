package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// A restore leaves a mark until it is complete, so that an unfinished one is recognised: on SQLite the file under
// another name, on PostgreSQL a table.
const (
	stagedSuffix = ".restoring"
	stagedTable  = "restore_unfinished"
)

// ErrUnfinished refuses a database in which a restore was interrupted.
var ErrUnfinished = errors.New("a restore of this database is unfinished: repeat castellan restore with its backup")

// Unfinished reports whether a restore of PostgreSQL was interrupted. Open refuses such a file of SQLite.
func (db *DB) Unfinished(ctx context.Context) (is bool, err error) {
	if !db.Postgres() {
		return false, nil
	}
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	err = db.read.DB.QueryRowContext(ctx, "SELECT to_regclass('"+stagedTable+"') IS NOT NULL").Scan(&is)
	return is, Translate(err)
}

func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// IsSQLite reports whether a database URL names a file of SQLite.
func IsSQLite(dsn string) bool { return strings.HasPrefix(dsn, "sqlite:") }

// Staged is the place of a restore.
type Staged struct {
	// DSN opens the database during the restore.
	DSN string
	// Again reports that an earlier restore was interrupted here. Its remains are replaced.
	Again bool

	file string // of SQLite
}

// ErrNotEmpty refuses to restore over a database.
var ErrNotEmpty = errors.New("there is a database already: restore into an empty place only")

// Stage examines the place of a restore and changes nothing. ErrNotEmpty.
func Stage(ctx context.Context, dsn string, kinds Kinds, o Options) (s Staged, err error) {
	if path, is := strings.CutPrefix(dsn, "sqlite:"); is {
		if s.file, err = filepath.Abs(path); err != nil {
			return s, err
		}
		s.DSN = "sqlite:" + s.file + stagedSuffix
		there, err := exists(s.file)
		if err == nil && there {
			err = ErrNotEmpty
		}
		if err == nil {
			s.Again, err = exists(s.file + stagedSuffix)
		}
		return s, err
	}
	s.DSN = dsn
	db, err := Open(ctx, dsn, kinds, o)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if s.Again, err = db.Unfinished(ctx); err != nil || s.Again {
		return s, err
	}
	var tables int
	err = db.read.DB.QueryRowContext(ctx, "SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND "+
		"relnamespace = current_schema()::regnamespace").Scan(&tables)
	if err == nil && tables > 0 {
		err = ErrNotEmpty
	}
	return s, Translate(err)
}

// LoadFile stores the file of SQLite under its name during the restore.
func (s Staged) LoadFile(content io.Reader) error {
	staged := s.file + stagedSuffix
	if err := os.MkdirAll(filepath.Dir(staged), 0o700); err != nil {
		return err
	}
	if err := removeFiles(staged+"-wal", staged+"-shm"); err != nil {
		return err
	}
	f, err := os.OpenFile(staged, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Finish gives the restored database its name. The database must be closed on SQLite and open on PostgreSQL.
func (s Staged) Finish(ctx context.Context, db *DB) error {
	if s.file == "" {
		_, err := db.write.ExecContext(ctx, "DROP TABLE "+stagedTable)
		return Translate(err)
	}
	staged := s.file + stagedSuffix
	if left, err := exists(staged + "-wal"); err != nil || left {
		return errors.Join(err, fmt.Errorf("%s is still open", staged))
	}
	if err := removeFiles(staged+".lock", staged+"-shm"); err != nil {
		return err
	}
	if err := os.Rename(staged, s.file); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(s.file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Clear marks the restore as unfinished, and removes the remains of an earlier one. PostgreSQL only.
func (s Staged) Clear(ctx context.Context, db *DB) error {
	return db.withPgConn(ctx, func(conn *pgconn.PgConn) error {
		if !s.Again {
			return conn.Exec(ctx, "CREATE TABLE "+stagedTable+" ()").Close()
		}
		return conn.Exec(ctx, `DO $$ DECLARE o record; BEGIN
			FOR o IN SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
				AND relname <> '`+stagedTable+`'
			LOOP EXECUTE format('DROP TABLE IF EXISTS %I CASCADE', o.relname); END LOOP;
			FOR o IN SELECT p.oid::regprocedure AS name FROM pg_proc p WHERE pronamespace = current_schema()::regnamespace
				AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
			LOOP EXECUTE 'DROP FUNCTION IF EXISTS ' || o.name || ' CASCADE'; END LOOP;
		END $$`).Close()
	})
}

// references are the tables that a table references by keys that are checked at once.
const references = "SELECT DISTINCT a.relname, b.relname FROM pg_constraint k JOIN pg_class a ON a.oid = k.conrelid " +
	"JOIN pg_class b ON b.oid = k.confrelid WHERE k.contype = 'f' AND NOT k.condeferrable AND a.oid <> b.oid " +
	"AND k.connamespace = current_schema()::regnamespace ORDER BY 1, 2"

// Load fills the tables of PostgreSQL, which has the schema and no rows that are kept, and sets its sequences. The
// triggers do not run: the rows are as they were.
func (db *DB) Load(ctx context.Context, tables []string, open func(table string) (io.Reader, error),
	sequences map[string]int64) error {
	return db.withPgConn(ctx, func(conn *pgconn.PgConn) (err error) {
		if err := conn.Exec(ctx, "BEGIN; SET LOCAL statement_timeout = 0").Close(); err != nil {
			return err
		}
		end := "ROLLBACK"
		defer func() { err = errors.Join(err, conn.Exec(context.WithoutCancel(ctx), end).Close()) }()
		s := &Frozen{conn: conn}
		keys, err := s.Rows(ctx, references)
		if err != nil {
			return err
		}
		ordered := inOrder(tables, keys)
		for _, table := range slices.Backward(ordered) {
			name := quoteName(table)
			if err := conn.Exec(ctx, "ALTER TABLE "+name+" DISABLE TRIGGER USER; DELETE FROM "+name).Close(); err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
		}
		for _, table := range ordered {
			if err := load(ctx, conn, table, open); err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
		}
		if err := conn.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE").Close(); err != nil {
			return err
		}
		for _, table := range ordered {
			if err := conn.Exec(ctx, "ALTER TABLE "+quoteName(table)+" ENABLE TRIGGER USER").Close(); err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(sequences)) {
			set := fmt.Sprintf("SELECT setval(%s, %d, false)", quote(quoteName(name)), sequences[name])
			if err := conn.Exec(ctx, set).Close(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		end = "COMMIT"
		return nil
	})
}

func load(ctx context.Context, conn *pgconn.PgConn, table string, open func(string) (io.Reader, error)) error {
	content, err := open(table)
	if err != nil {
		return err
	}
	rows := bufio.NewReader(content)
	columns, err := rows.ReadString('\n')
	if err != nil {
		return err
	}
	_, err = conn.CopyFrom(ctx, rows, fmt.Sprintf("COPY %s (%s) FROM STDIN", quoteName(table),
		strings.TrimSuffix(columns, "\n")))
	return err
}

// inOrder sorts tables after those that they reference.
func inOrder(tables []string, references [][]string) (ordered []string) {
	var add func(table string)
	add = func(table string) {
		if slices.Contains(ordered, table) || !slices.Contains(tables, table) {
			return
		}
		for _, r := range references {
			if r[0] == table {
				add(r[1])
			}
		}
		ordered = append(ordered, table)
	}
	for _, t := range tables {
		add(t)
	}
	return ordered
}

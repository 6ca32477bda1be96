package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Frozen is the database at one instant, for a backup. It is used by one goroutine.
type Frozen struct {
	// Tables are the names for Copy: the tables of PostgreSQL, or the whole file of SQLite.
	Tables []string

	file  string
	db    *sql.DB // of the copy of SQLite
	conn  *pgconn.PgConn
	lists map[string]string // table → its columns
}

// wholeFile is the only table of a snapshot of SQLite.
const wholeFile = "database"

// Freeze calls fn with a consistent copy of the database, while other processes write to it. SQLite needs as much free
// space as the database, beside it; PostgreSQL keeps the removed rows until fn returns.
func (db *DB) Freeze(ctx context.Context, fn func(*Frozen) error) error {
	if db.Postgres() {
		return db.freezePostgres(ctx, fn)
	}
	return db.freezeSQLite(ctx, fn)
}

func (db *DB) freezeSQLite(ctx context.Context, fn func(*Frozen) error) (err error) {
	copied := db.file + ".backup"
	unlock, err := lockFile(copied) // one backup at a time
	if err != nil {
		return err
	}
	defer unlock()
	remove := func() error { return removeFiles(copied, copied+"-journal") }
	if err := remove(); err != nil { // of a backup that was killed
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	from, err := sql.Open("sqlite", sqliteName(db.file))
	if err != nil {
		return err
	}
	_, err = from.ExecContext(ctx, "VACUUM INTO ?", copied)
	if err = errors.Join(err, from.Close()); err != nil {
		return fmt.Errorf("copy the database: %w", Translate(err))
	}
	if err := os.Chmod(copied, 0o600); err != nil {
		return err
	}
	own, err := sql.Open("sqlite", sqliteName(copied, "query_only(1)")+"&mode=ro&immutable=1")
	if err != nil {
		return err
	}
	defer own.Close()
	return fn(&Frozen{Tables: []string{wholeFile}, file: copied, db: own})
}

func removeFiles(names ...string) error {
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// columnLists are the tables of this schema with their columns, quoted and in order. Tables come after those that they
// reference in Load.
const columnLists = "SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_class c " +
	"JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' " +
	"WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') GROUP BY c.relname ORDER BY 1"

func (db *DB) freezePostgres(ctx context.Context, fn func(*Frozen) error) error {
	return db.withPgConn(ctx, func(conn *pgconn.PgConn) (err error) {
		s := &Frozen{conn: conn, lists: map[string]string{}}
		err = conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; "+
			"SET LOCAL idle_in_transaction_session_timeout = 0").Close()
		if err != nil {
			return err
		}
		defer func() {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			err = errors.Join(err, conn.Exec(end, "ROLLBACK").Close())
		}()
		tables, err := s.Rows(ctx, columnLists)
		if err != nil {
			return err
		}
		for _, t := range tables {
			s.Tables, s.lists[t[0]] = append(s.Tables, t[0]), t[1]
		}
		return fn(s)
	})
}

// withPgConn calls fn with a connection of the pool. Statements on it have no limit of time.
func (db *DB) withPgConn(ctx context.Context, fn func(*pgconn.PgConn) error) error {
	c, err := db.write.DB.Conn(ctx)
	if err != nil {
		return Translate(err)
	}
	defer c.Close()
	return Translate(c.Raw(func(driven any) error { return fn(driven.(*stdlib.Conn).Conn().PgConn()) }))
}

// Rows returns the result of a query on the snapshot as texts.
func (s *Frozen) Rows(ctx context.Context, query string) (all [][]string, err error) {
	if s.conn != nil {
		results, err := s.conn.Exec(ctx, query).ReadAll()
		if err != nil {
			return nil, err
		}
		for _, r := range results[0].Rows {
			all = append(all, textsOf(r))
		}
		return all, nil
	}
	return texts(ctx, s.db, query)
}

// Texts returns the result of a query as texts.
func (db *DB) Texts(ctx context.Context, query string) ([][]string, error) {
	all, err := texts(ctx, db.read.DB, query)
	return all, Translate(err)
}

func texts(ctx context.Context, db *sql.DB, query string) (all [][]string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		texts, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range texts {
			to[i] = &texts[i]
		}
		err = rows.Scan(to...)
		one := make([]string, len(columns))
		for i, t := range texts {
			one[i] = t.String
		}
		all = append(all, one)
	}
	return all, errors.Join(err, rows.Err())
}

func (s *Frozen) Copy(ctx context.Context, table string, w io.Writer) error {
	if s.conn == nil {
		f, err := os.Open(s.file)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}
	// The columns are named, so that a later order of the columns does not matter.
	head := s.lists[table] + "\n"
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	_, err := s.conn.CopyTo(ctx, w, fmt.Sprintf("COPY %s (%s) TO STDOUT", quoteName(table), s.lists[table]))
	return err
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
)

// sqliteExecutor runs the writer's transactions on the writing connection of SQLite, below database/sql. The overhead
// of database/sql around a statement (locks, a closure, copies of the arguments) costs as much as the statement
// (docs/decisions/0002-group-commit-and-its-executors.md). The executor borrows the one connection for the duration of
// a transaction, so interactive transactions take turns with it, and keeps its statements prepared.
type sqliteExecutor struct {
	db       *sql.DB
	conn     driver.Conn // on which the statements are prepared
	prepared map[string]sqliteStatement
	args     []driver.NamedValue
	asked    [1]driver.Value
}

// sqliteStatement is a prepared statement of the driver.
type sqliteStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func (e *sqliteExecutor) transact(ctx context.Context, steps []step, flush bool) (failed map[int]bool, err error) {
	c, err := e.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	err = c.Raw(func(conn any) (err error) {
		e.use(conn.(driver.Conn))
		if !flush {
			if err := e.set("PRAGMA synchronous = NORMAL"); err != nil {
				return err
			}
			defer func() {
				if e.set("PRAGMA synchronous = FULL") != nil {
					err = driver.ErrBadConn // nothing else is ever committed on it
				}
			}()
		}
		failed, err = e.run(steps)
		return err
	})
	return failed, err
}

// set changes a setting of the connection, which a prepared statement cannot do.
func (e *sqliteExecutor) set(pragma string) error {
	_, err := e.conn.(driver.ExecerContext).ExecContext(context.Background(), pragma, nil)
	return err
}

// close closes the statements before their connection is closed.
func (e *sqliteExecutor) close() {
	if e.conn == nil {
		return
	}
	c, err := e.db.Conn(context.Background())
	if err != nil {
		return
	}
	defer c.Close()
	c.Raw(func(conn any) error {
		if e.conn == conn.(driver.Conn) {
			for _, s := range e.prepared {
				s.Close()
			}
		}
		e.conn, e.prepared = nil, nil
		return nil
	})
}

// use makes conn the connection of the statements. Those of another connection were lost with it.
func (e *sqliteExecutor) use(conn driver.Conn) {
	if conn != e.conn {
		e.conn, e.prepared = conn, map[string]sqliteStatement{}
	}
}

func (e *sqliteExecutor) run(steps []step) (failed map[int]bool, err error) {
	tx, err := e.conn.(driver.ConnBeginTx).BeginTx(context.Background(), driver.TxOptions{})
	if err != nil {
		return nil, err
	}
	if failed, err = runSteps(steps, nil, e.runRows); err != nil {
		tx.Rollback()
		return nil, err
	}
	if len(failed) > 0 {
		return failed, tx.Rollback()
	}
	if err = tx.Commit(); err != nil {
		return nil, commitError{err}
	}
	return nil, nil
}

// runRows runs a statement for one row after the other, and returns the writes whose rows were refused.
func (e *sqliteExecutor) runRows(b *boundStatement) (missing []int, err error) {
	s, err := prepareSQLite(e.conn, e.prepared, b.sqlite)
	if err != nil {
		return nil, err
	}
	run := e.exec
	if b.asks {
		run = e.ask
	}
	for row := range b.rows.Len() {
		stands, err := run(s, e.bind(b, row))
		if err != nil {
			return nil, err
		}
		if !stands && b.keys != nil {
			missing = append(missing, b.writes[row])
		}
	}
	return missing, nil
}

// bind returns the parameters of a row.
func (e *sqliteExecutor) bind(b *boundStatement, row int) []driver.NamedValue {
	for len(e.args) < len(b.params) {
		e.args = append(e.args, driver.NamedValue{Ordinal: len(e.args) + 1})
	}
	for i, column := range b.params {
		e.args[i].Value = b.value(row, column)
	}
	return e.args[:len(b.params)]
}

// prepareSQLite returns a statement of conn, which prepared keeps from then on.
func prepareSQLite(conn driver.Conn, prepared map[string]sqliteStatement, text string) (sqliteStatement, error) {
	if s := prepared[text]; s != nil {
		return s, nil
	}
	made, err := conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	s := made.(sqliteStatement)
	prepared[text] = s
	return s, nil
}

// exec reports whether a row was written.
func (e *sqliteExecutor) exec(s sqliteStatement, args []driver.NamedValue) (bool, error) {
	r, err := s.ExecContext(context.Background(), args)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// ask reports whether a row was returned.
func (e *sqliteExecutor) ask(s sqliteStatement, args []driver.NamedValue) (bool, error) {
	rows, err := s.QueryContext(context.Background(), args)
	if err != nil {
		return false, err
	}
	err = rows.Next(e.asked[:])
	if cerr := rows.Close(); err == nil {
		err = cerr
	}
	if err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

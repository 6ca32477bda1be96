package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
)

// direct is SQLite's writing connection as the writer uses it: what
// database/sql does around a statement (locks, a closure, copies of the
// arguments) costs as much as the statement. It borrows the one connection for
// the length of a transaction, so interactive transactions take turns with it,
// and keeps its statements prepared.
type sqliteExecutor struct {
	db    *sql.DB
	conn  driver.Conn // on which the statements are prepared
	kept  map[string]sqliteStatement
	args  []driver.NamedValue
	asked [1]driver.Value
}

// sqliteStatement is what a statement of the driver can do.
type sqliteStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// transact makes steps in one transaction; see writer.once.
func (d *sqliteExecutor) transact(ctx context.Context, steps []step, flush bool) (failed map[int]bool, err error) {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	err = c.Raw(func(conn any) (err error) {
		d.on(conn.(driver.Conn))
		if !flush {
			if err := d.set("PRAGMA synchronous = NORMAL"); err != nil {
				return err
			}
			defer func() {
				if d.set("PRAGMA synchronous = FULL") != nil {
					err = driver.ErrBadConn // never is anything else committed on it
				}
			}()
		}
		failed, err = d.run(steps)
		return err
	})
	return failed, err
}

// set changes a setting of the connection, which no prepared statement does.
func (d *sqliteExecutor) set(pragma string) error {
	_, err := d.conn.(driver.ExecerContext).ExecContext(context.Background(), pragma, nil)
	return err
}

// close gives up the statements, while their connection still lives.
func (d *sqliteExecutor) close() {
	if d.conn == nil {
		return
	}
	c, err := d.db.Conn(context.Background())
	if err != nil {
		return
	}
	defer c.Close()
	c.Raw(func(conn any) error {
		if d.conn == conn.(driver.Conn) {
			for _, s := range d.kept {
				s.Close()
			}
		}
		d.conn, d.kept = nil, nil
		return nil
	})
}

// on takes the connection over. Statements of another one died with it.
func (d *sqliteExecutor) on(conn driver.Conn) {
	if conn != d.conn {
		d.conn, d.kept = conn, map[string]sqliteStatement{}
	}
}

func (d *sqliteExecutor) run(steps []step) (failed map[int]bool, err error) {
	tx, err := d.conn.(driver.ConnBeginTx).BeginTx(context.Background(), driver.TxOptions{})
	if err != nil {
		return nil, err
	}
	for i := range steps {
		s := &steps[i]
		if len(failed) > 0 && !s.kind.refusable {
			break // what the losers of a race inserted does not matter
		}
		for j := range s.statements {
			missing, err := d.call(&s.statements[j])
			if err != nil {
				tx.Rollback()
				return nil, fmt.Errorf("%s: %w", s.writes[0].Table(), err)
			}
			s.refuse(&failed, missing)
		}
	}
	if len(failed) > 0 {
		return failed, tx.Rollback()
	}
	if err = tx.Commit(); err != nil {
		return nil, commitError{err}
	}
	return nil, nil
}

// call makes the rows of a call and reports the writes whose rows were
// refused. Rows that can be refused are made one by one, to know which were.
func (d *sqliteExecutor) call(c *boundStatement) (missing []int, err error) {
	row, rows := 0, c.rows.Len()
	for _, l := range c.lite {
		if l.rows > 1 && c.keys != nil || rows-row < l.rows {
			continue
		}
		s, err := d.statement(l.text)
		if err != nil {
			return nil, err
		}
		for ; rows-row >= l.rows; row += l.rows {
			args := d.bind(c, row, l.rows)
			var stands bool
			if c.asks {
				stands, err = d.ask(s, args)
			} else {
				stands, err = d.exec(s, args)
			}
			if err != nil {
				return nil, err
			}
			if !stands && c.keys != nil {
				missing = append(missing, c.writes[row])
			}
		}
	}
	return missing, nil
}

// bind returns the values of rows in the order of their places.
func (d *sqliteExecutor) bind(c *boundStatement, from, rows int) []driver.NamedValue {
	n := rows * len(c.places)
	for len(d.args) < n {
		d.args = append(d.args, driver.NamedValue{Ordinal: len(d.args) + 1})
	}
	for i := range n {
		d.args[i].Value = c.value(from+i/len(c.places), c.places[i%len(c.places)])
	}
	return d.args[:n]
}

func (d *sqliteExecutor) statement(text string) (sqliteStatement, error) {
	if s := d.kept[text]; s != nil {
		return s, nil
	}
	made, err := d.conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	s := made.(sqliteStatement)
	d.kept[text] = s
	return s, nil
}

// exec tells whether a row was written.
func (d *sqliteExecutor) exec(s sqliteStatement, args []driver.NamedValue) (bool, error) {
	r, err := s.ExecContext(context.Background(), args)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// ask tells whether a row came back.
func (d *sqliteExecutor) ask(s sqliteStatement, args []driver.NamedValue) (bool, error) {
	rows, err := s.QueryContext(context.Background(), args)
	if err != nil {
		return false, err
	}
	err = rows.Next(d.asked[:])
	if cerr := rows.Close(); err == nil {
		err = cerr
	}
	if err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

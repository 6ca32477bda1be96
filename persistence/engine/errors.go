package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"castellan/domain/kit/fault"
)

// Translate converts errors of both drivers to domain errors. No row is RECORD_NOT_FOUND, a duplicate unique key is
// RECORD_ALREADY_EXIST, a database that does not answer is UNAVAILABLE. An error with a code is not changed.
func Translate(err error) error {
	var pg *pgconn.PgError
	var lite *sqlite.Error
	var known *fault.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, sql.ErrNoRows):
		return ErrNoRecord()
	case errors.As(err, &pg):
		return translatePostgres(err, pg.Code)
	case errors.As(err, &lite):
		return translateSQLite(err, lite.Code())
	case errors.Is(err, context.DeadlineExceeded):
		return unavailable(fmt.Errorf("no answer in time: %w", err))
	case unreachable(err):
		return unavailable(err)
	}
	return err
}

// ErrNoRecord is RECORD_NOT_FOUND.
func ErrNoRecord() error { return fault.New(fault.RecordNotFound, "no such record") }

func errRecordExists() error { return fault.New(fault.RecordAlreadyExist, "the record exists already") }

// idleInTransaction is the error code for a process that was stopped in a transaction.
const idleInTransaction = "25P03"

func translatePostgres(err error, code string) error {
	if code == "23505" {
		return errRecordExists()
	}
	if code == idleInTransaction {
		return unavailable(err)
	}
	for _, class := range []string{"57P", "53", "08"} { // shutdown, out of resources, connection
		if strings.HasPrefix(code, class) {
			return unavailable(err)
		}
	}
	return err
}

// existsAlready is the text of triggers that refuse a row with an existing key, also if the statement would replace the
// other row.
const existsAlready = "exists already"

func translateSQLite(err error, code int) error {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return errRecordExists()
	case sqlite3.SQLITE_CONSTRAINT_TRIGGER:
		if strings.Contains(err.Error(), existsAlready) {
			return errRecordExists()
		}
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return unavailable(err)
	}
	return err
}

// unreachable reports whether an error concerns the connection, not a statement.
func unreachable(err error) bool {
	for _, broken := range []error{driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, sql.ErrConnDone,
		sql.ErrTxDone, context.Canceled} {
		if errors.Is(err, broken) {
			return true
		}
	}
	var neterr net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &neterr) || errors.As(err, &connect) || pgconn.SafeToRetry(err)
}

func unavailable(cause error) error {
	return fmt.Errorf("%w: %w", fault.New(fault.Unavailable, "the database cannot be reached").After(time.Second),
		cause)
}

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

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// Translate converts errors of both drivers to domain errors. No row is RECORD_NOT_FOUND, a duplicate unique key is
// RECORD_ALREADY_EXIST, a refusal by a check is commit.ErrCheck. A wait for rows that the server has ended is
// OVERLOADED, a database that does not answer is UNAVAILABLE. An error with a code is not changed.
func Translate(err error) error {
	var pg *pgconn.PgError
	var lite *sqlite.Error
	var known *fault.Error
	var connect *pgconn.ConnectError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &connect), errors.Is(err, errUnreplicated):
		return unavailable(err) // whatever the server says to a connection
	case errors.Is(err, sql.ErrNoRows):
		return ErrNoRecord()
	case errors.As(err, &pg):
		return translatePostgres(err, pg)
	case errors.As(err, &lite):
		return translateSQLite(err, lite.Code())
	case errors.Is(err, context.DeadlineExceeded):
		return unavailable(fmt.Errorf("no answer in time: %w", err))
	case unreachable(err):
		return unavailable(err)
	}
	return err
}

func ErrNoRecord() error { return fault.New(fault.RecordNotFound, "no such record") }

func errRecordExists() error { return fault.New(fault.RecordAlreadyExist, "the record exists already") }

// Codes of PostgreSQL.
const (
	idleInTransaction   = "25P03" // a process was stopped in a transaction
	deadlock            = "40P01"
	lockTimeout         = "55P03"
	readOnlyTransaction = "25006"
)

// dead reports whether an error of the server means that its connections are of no use: it shuts down, or it has become
// read-only, as after a failover.
func dead(e *pgconn.PgError) bool {
	switch e.Code {
	case readOnlyTransaction, "57P01", "57P02", "57P03":
		return true
	}
	// Other messages may quote what a user wrote.
	return strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Message, "cannot execute ") &&
		strings.HasSuffix(e.Message, " in a read-only transaction")
}

// uncertain reports whether an error may follow a commit: the server or a pooler lost the connection of the session.
func uncertain(e *pgconn.PgError) bool {
	return fatal(e) || dead(e) && e.Code != readOnlyTransaction
}

// fatal reports whether the server ends the connection with an error.
func fatal(e *pgconn.PgError) bool {
	return e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC" || e.Severity == "FATAL"
}

// Unsuitable returns the reason, in one line, why a database can never be used as it is. Reasons are its encoding, a
// pooler that shares sessions, and a refusal of the role, its password, the name of the database or a setting of the
// URL. It returns nil for any other error.
func Unsuitable(err error) error {
	var u unsuitable
	if errors.As(err, &u) {
		return u
	}
	var connect *pgconn.ConnectError
	var pg *pgconn.PgError
	if errors.As(err, &connect) && errors.As(err, &pg) {
		switch pg.Code {
		case "28000", "28P01", "3D000", "42501", "42704", "22023": // the last two: a setting in the URL
			return pg
		}
	}
	return nil
}

func translatePostgres(err error, pg *pgconn.PgError) error {
	switch code := pg.Code; {
	case code == "23505":
		return errRecordExists()
	case code == "23514":
		return fmt.Errorf("%w: %w", commit.ErrCheck, err)
	case code == deadlock, code == lockTimeout: // nothing was written, and the database works
		busy := fault.New(fault.Overloaded, "other writes hold the rows; try again").After(time.Second)
		return fmt.Errorf("%w: %w", busy, err)
	case code == idleInTransaction, dead(pg), strings.HasPrefix(code, "57P"),
		strings.HasPrefix(code, "53"): // shutdown, out of resources
		return unavailable(err)
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
	case sqlite3.SQLITE_CONSTRAINT_CHECK:
		return fmt.Errorf("%w: %w", commit.ErrCheck, err)
	case sqlite3.SQLITE_CONSTRAINT_TRIGGER:
		if strings.Contains(err.Error(), existsAlready) {
			return errRecordExists()
		}
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
		sqlite3.SQLITE_CANTOPEN:
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
	return errors.As(err, &neterr) || pgconn.SafeToRetry(err)
}

func unavailable(cause error) error {
	text := "the database cannot be reached"
	switch causeOf(cause) {
	case CauseDisk:
		text = "the disk of the database is full or cannot be written"
	case CauseReadOnly:
		text = "the database is read-only"
	}
	return fmt.Errorf("%w: %w", fault.New(fault.Unavailable, "%s", text).After(time.Second), databaseError{cause})
}

// databaseError is the cause of an UNAVAILABLE error that comes from the database and from no other system.
type databaseError struct{ error }

func (e databaseError) Unwrap() error { return e.error }

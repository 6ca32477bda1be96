package budget_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// postgresLog reads the write-ahead log of a server that only this test uses.
type postgresLog struct {
	t        testing.TB
	conn     *pgx.Conn // to another database than the service's
	service  *pgx.Conn
	names    map[string]string // of tables and indexes, by file
	position string
}

// startPostgres starts a server whose log depends only on the service: without images of whole pages, whose number
// depends on checkpoints, and without autovacuum.
func startPostgres(t testing.TB) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Start(pgtest.Settings("synchronous_commit=on", "full_page_writes=off", "autovacuum=off",
		"checkpoint_timeout=1h", "max_wal_size=4GB"))
	storetest.Must(t, err)
	t.Cleanup(s.Stop)
	return s
}

func newPostgresLog(t testing.TB, server, service string) *postgresLog {
	t.Helper()
	l := &postgresLog{t: t, conn: connect(t, server), service: connect(t, service)}
	l.exec("CREATE EXTENSION pg_walinspect")
	return l
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	c := storetest.Value(pgx.Connect(context.Background(), dsn))(t)
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func (l *postgresLog) exec(statement string) {
	l.t.Helper()
	if _, err := l.conn.Exec(context.Background(), statement); err != nil {
		l.t.Fatalf("%s: %v", statement, err)
	}
}

func (l *postgresLog) now() (position string) {
	l.t.Helper()
	err := l.conn.QueryRow(context.Background(), "SELECT pg_current_wal_insert_lsn()::text").Scan(&position)
	storetest.Must(l.t, err)
	return position
}

// begin records the end of the log.
func (l *postgresLog) begin() { l.position = l.now() }

var (
	leaf     = regexp.MustCompile(`level:? 0\b`) // a page with entries, not other pages
	relation = regexp.MustCompile(`rel (\S+)`)
)

// end adds the records since begin. Records without a transaction do not come from the service: readers prune pages,
// and the server writes records for standbys.
func (l *postgresLog) end(c *counts) {
	l.t.Helper()
	end := l.now()
	if end == l.position {
		return
	}
	l.exec("SELECT pg_logical_emit_message(true, 'budget', '')") // its commit flushes the log to the disk
	rows, err := l.conn.Query(context.Background(), `SELECT resource_manager || '/' || replace(record_type, '+INIT', ''),
		record_length - fpi_length, coalesce(description, ''), coalesce(block_ref, '')
		FROM pg_get_wal_records_info($1::text::pg_lsn, $2::text::pg_lsn) WHERE xid::text <> '0'`, l.position, end)
	storetest.Must(l.t, err)
	var kind, description, blocks string
	var bytes int
	_, err = pgx.ForEachRow(rows, []any{&kind, &bytes, &description, &blocks}, func() error {
		name := ""
		if m := relation.FindStringSubmatch(blocks); m != nil {
			name = l.name(m[1])
		}
		if strings.HasPrefix(kind, "Heap2/PRUNE") { // by the first reader or writer that sees the page
			return nil
		}
		switch kind {
		case "Heap/INSERT", "Heap/UPDATE", "Heap/HOT_UPDATE", "Heap/DELETE":
			c.Rows[name]++
		case "Btree/INSERT_LEAF", "Btree/INSERT_POST":
			c.Entries[name]++
		case "Btree/SPLIT_L", "Btree/SPLIT_R":
			if leaf.MatchString(description) {
				c.Entries[name]++
			}
		case "Transaction/COMMIT":
			c.Transactions++
		}
		c.WALBytes += bytes
		return nil
	})
	storetest.Must(l.t, err)
}

// name returns the name of a table or an index of the service, by its file.
func (l *postgresLog) name(file string) string {
	if name, known := l.names[file]; known {
		return name
	}
	l.names = map[string]string{}
	rows, err := l.service.Query(context.Background(), `
		SELECT '1663/' || d.oid || '/' || pg_relation_filenode(c.oid), c.relname FROM pg_class c, pg_database d
		WHERE d.datname = current_database() AND pg_relation_filenode(c.oid) IS NOT NULL`)
	storetest.Must(l.t, err)
	var key, name string
	if _, err = pgx.ForEachRow(rows, []any{&key, &name}, func() error {
		l.names[key] = name
		return nil
	}); err != nil {
		l.t.Fatal(err)
	}
	if l.names[file] == "" {
		l.names[file] = file
	}
	return l.names[file]
}

// sqliteLog reads the length of the write-ahead log of a SQLite file.
type sqliteLog struct {
	t      testing.TB
	file   string
	frames uint32
}

// begin empties the log if it can, so that the service's own checkpoint does not fall into the flow. The log would
// start again there, and its frames before would not be counted.
func (l *sqliteLog) begin() {
	l.t.Helper()
	db, err := sql.Open("sqlite", "file:"+l.file+"?_pragma=busy_timeout(10000)")
	if err == nil {
		_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
		err = errors.Join(err, db.Close())
	}
	storetest.Must(l.t, err)
	l.frames, _ = l.now()
}

// end adds the frames since begin. After a checkpoint the log starts again from its beginning.
func (l *sqliteLog) end(c *counts) {
	now, page := l.now()
	if now >= l.frames {
		now -= l.frames
	}
	c.WALBytes += int(now) * (int(page) + frameHead)
}

const frameHead = 24 // bytes before each page of the log

// now reads the number of frames and the size of a page from the index of the log
// (https://sqlite.org/walformat.html, section 2.1).
func (l *sqliteLog) now() (frames, page uint32) {
	l.t.Helper()
	var head [24]byte
	f, err := os.Open(l.file + "-shm")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0
	}
	if err == nil {
		_, err = f.ReadAt(head[:], 0)
		f.Close()
	}
	storetest.Must(l.t, err)
	return binary.NativeEndian.Uint32(head[16:]), uint32(binary.NativeEndian.Uint16(head[14:]))
}

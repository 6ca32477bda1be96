package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// serveAlone takes the lock of the one process that serves an SQLite file. Commands do not take it. The kernel releases
// it with the process.
func serveAlone(file string) (lock io.Closer, err error) {
	if real, err := filepath.EvalSymlinks(file); err == nil { // else the file is new
		file = real
	}
	f, err := os.OpenFile(file+".serve", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock database: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
		}
		if err == nil {
			return f, nil
		}
	}
	defer f.Close()
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("lock database: %w", err)
	}
	holder := make([]byte, 20)
	n, _ := f.ReadAt(holder, 0) // an error leaves the number out
	return nil, fmt.Errorf("another process%s serves %s: an SQLite file is for one process; stop that one, or use "+
		"PostgreSQL", strings.TrimRight(" "+string(holder[:n]), " "), file)
}

// Classes of the advisory locks that serving processes hold on PostgreSQL, shared and for as long as they run.
const (
	lockAlone     = 0x63617301
	lockClustered = 0x63617302
)

// presence is the lock of this process: a class and a random number, which a connection that the server has not yet
// given up shares with the next one.
type presence struct{ class, id int32 }

func newPresence(o Options) *presence {
	if !o.Serves || o.ReadOnly {
		return nil
	}
	p := &presence{lockAlone, rand.Int32()} // #nosec G404: a name among a few processes
	if o.Clustered {
		p.class = lockClustered
	}
	return p
}

// show takes the lock on a new connection of the writer.
func (p *presence) show(ctx context.Context, c *pgx.Conn) error {
	if p == nil {
		return nil
	}
	_, err := row(ctx, c.PgConn(), fmt.Sprintf("SELECT pg_advisory_lock_shared(%d, %d)", p.class, p.id))
	return err
}

// Servers counts the processes that serve a PostgreSQL database: those without a cluster, and the nodes of clusters.
// SQLite has one at most, and returns 0.
func (db *DB) Servers(ctx context.Context) (alone, clustered int, err error) {
	if !db.Postgres() {
		return 0, 0, nil
	}
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	err = db.read.DB.QueryRowContext(ctx, "SELECT count(DISTINCT objid) FILTER (WHERE classid = $1), "+
		"count(DISTINCT objid) FILTER (WHERE classid = $2) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 "+
		"AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())", lockAlone,
		lockClustered).Scan(&alone, &clustered)
	return alone, clustered, Translate(err)
}

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/logtest"
	"castellan/internal/pgtest"
)

// psql runs statements as the role app.
func psql(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c := storetest.Value(pgx.Connect(ctx, dsn))(t)
	defer c.Close(ctx)
	for _, s := range statements {
		storetest.Must(t, storetest.Err(c.Exec(ctx, s)))
	}
}

// private starts a server that only this test uses.
func private(t *testing.T, options ...pgtest.Option) *pgtest.Server {
	t.Helper()
	pgtest.Need(t)
	s := storetest.Value(pgtest.Start(options...))(t)
	t.Cleanup(s.Stop)
	return s
}

// writeBoth writes a note by a unit and by an interactive transaction.
func writeBoth(ctx context.Context, db *DB, id string) error {
	return errors.Join(db.Commit(ctx, addNote{ID: id}), db.InTx(ctx, func(ctx context.Context) error {
		return db.Commit(ctx, addNote{ID: id + "-tx"})
	}))
}

// refusal writes until a write is refused: a session reads new settings of the server some time after they were set.
func refusal(t *testing.T, write func(id string) error) error {
	t.Helper()
	for i, end := 0, time.Now().Add(20*time.Second); time.Now().Before(end); i++ {
		if err := write(fmt.Sprint("until", i)); err != nil {
			return err
		}
	}
	t.Fatal("nothing is refused")
	return nil
}

// Sessions become read-only, as after a failover, and new ones are writable: the service needs no restart, and every
// refusal meanwhile is 503.
func TestReadOnlySessionsAreReplaced(t *testing.T) {
	t.Parallel()
	s := private(t)
	db := openWith(t, s.DSN(), Options{MaxConns: 6})
	storetest.Must(t, writeBoth(t.Context(), db, "before"))
	psql(t, s.DSN(), "ALTER ROLE app SET default_transaction_read_only = off",
		"ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
	err := refusal(t, func(id string) error { return writeBoth(t.Context(), db, id) })
	for refused := 1; err != nil; refused++ {
		if fault.CodeOf(err) != fault.Unavailable || refused > 3 {
			t.Fatalf("refusal %d: %v", refused, err)
		}
		err = writeBoth(t.Context(), db, fmt.Sprint("after", refused))
	}
	for range 8 { // every connection of the pool is new
		var mode string
		storetest.Must(t, db.read.NewRaw("SHOW transaction_read_only").Scan(t.Context(), &mode))
		storetest.Equal(t, mode, "off", "a session of before the change is in use")
	}
}

// Each answer of the server to a connection is UNAVAILABLE while the service runs, and the service recovers.
func TestRefusedConnectionsAreUnavailable(t *testing.T) {
	t.Parallel()
	s := private(t)
	psql(t, s.DSN(), "CREATE ROLE service LOGIN", "CREATE DATABASE served OWNER service")
	served := strings.NewReplacer("/postgres?", "/served?", "app@", "service@").Replace(s.DSN())
	db := openWith(t, served, Options{})
	for name, c := range map[string]struct{ begin, end string }{
		"role without login": {"ALTER ROLE service NOLOGIN", "ALTER ROLE service LOGIN"},
		"too many":           {"ALTER ROLE service CONNECTION LIMIT 0", "ALTER ROLE service CONNECTION LIMIT -1"},
		"closed database":    {"ALTER DATABASE served ALLOW_CONNECTIONS off", "ALTER DATABASE served ALLOW_CONNECTIONS on"},
	} {
		t.Run(name, func(t *testing.T) {
			psql(t, s.DSN(), c.begin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'served'")
			for i := range 6 {
				storetest.Wants(t, writeBoth(t.Context(), db, fmt.Sprint("a", i)), fault.Unavailable, i)
				var rows []noteRow
				storetest.Wants(t, db.Find(t.Context(), &rows, "", ""), fault.Unavailable, i)
			}
			psql(t, s.DSN(), c.end)
			storetest.Must(t, writeBoth(t.Context(), db, "after "+name))
		})
	}
}

// A connection ends at its maximum age, whether it is the pool's or the writer's.
func TestConnectionsHaveAMaximumAge(t *testing.T) {
	db := openWith(t, pgtest.DSN(t), Options{MaxConns: 4})
	pids := func() (pool, writer uint32) {
		storetest.Must(t, db.read.NewRaw("SELECT pg_backend_pid()").Scan(t.Context(), &pool))
		e := db.executor.(*postgresExecutor)
		storetest.Must(t, db.Commit(t.Context(), addNote{ID: fmt.Sprint(time.Now().UnixNano())}))
		return pool, e.conn.PgConn().PID()
	}
	pool, writer := pids()
	if p, w := pids(); p != pool || w != writer {
		t.Fatal("a young connection was replaced")
	}
	own := db.executor.(*postgresExecutor).conn.PgConn().CustomData()[connectionKey].(*connection)
	if left := time.Until(own.until); left > maxAge || left < maxAge*89/100 {
		t.Errorf("a new connection ends after %v", left)
	}
	own.until = time.Now()
	c := storetest.Value(db.read.DB.Conn(t.Context()))(t)
	storetest.Must(t, c.Raw(func(conn any) error {
		conn.(*stdlib.Conn).Conn().PgConn().CustomData()[connectionKey].(*connection).until = time.Now()
		return nil
	}))
	storetest.Must(t, c.Close())
	if p, w := pids(); p == pool || w == writer {
		t.Errorf("an old connection is in use: pool %v, writer %v", p == pool, w == writer)
	}
}

// An acknowledgement that did not wait for the standby is no acknowledgement, also for a role that hides warnings.
func TestCancelledWaitForTheStandbyIsUnknown(t *testing.T) {
	t.Parallel()
	s := private(t)
	psql(t, s.DSN(), "ALTER ROLE app SET client_min_messages = error")
	db := openWith(t, s.DSN(), Options{})
	psql(t, s.DSN(), "ALTER SYSTEM SET synchronous_standby_names = 'missing'", "SELECT pg_reload_conf()")
	ctx, stop := context.WithCancel(t.Context())
	var cancels sync.WaitGroup
	defer cancels.Wait()
	defer stop()
	cancels.Go(func() {
		for ctx.Err() == nil {
			psql(t, s.DSN(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			time.Sleep(20 * time.Millisecond)
		}
	})
	unit := func(id string) error { return db.Commit(t.Context(), addNote{ID: id}) }
	storetest.Is(t, refusal(t, unit), commit.ErrUnknown, "a unit")
	err := db.InTx(t.Context(), func(ctx context.Context) error { return db.Commit(ctx, addNote{ID: "tx"}) })
	if !errors.Is(err, commit.ErrUnknown) {
		t.Errorf("a transaction: %v", err)
	}
}

// A database that can never serve is refused at once, in one line that says why.
func TestUnsuitableDatabasesAreRefused(t *testing.T) {
	s := private(t)
	psql(t, s.DSN(), "CREATE DATABASE latin ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	for dsn, want := range map[string]string{
		strings.Replace(s.DSN(), "/postgres?", "/latin?", 1):   "encoding of the database is LATIN1",
		strings.Replace(s.DSN(), "/postgres?", "/missing?", 1): `database "missing" does not exist`,
		s.DSN() + "&no_such_setting=1":                         "no_such_setting",
	} {
		_, err := Open(t.Context(), dsn, noteKinds, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			fault.CodeOf(err) == fault.Unavailable {
			t.Errorf("%s: %v", want, err)
		}
	}
	// A role's own format of bytes is overridden, with a line.
	psql(t, s.DSN(), "ALTER ROLE app SET bytea_output = escape")
	log := logtest.Default(t)
	// The URL cannot weaken a commit; what it may set is kept.
	db := openWith(t, s.DSN()+"&synchronous_commit=off&statement_timeout=7000", Options{})
	var level, limit string
	storetest.Must(t, db.read.NewRaw("SELECT current_setting('synchronous_commit'), current_setting('statement_timeout')").
		Scan(t.Context(), &level, &limit))
	storetest.Equal(t, level, "on")
	storetest.Equal(t, limit, "7s")
	storetest.Must(t, db.Commit(t.Context(), addNote{ID: "b", Sealed: []byte{0, 1, 255}}))
	storetest.Equal(t, string(note(t, db, "b").Sealed), "\x00\x01\xff", "bytes are read as")
	storetest.Equal(t, strings.Count(log.String(), "bytea_output"), 1)
}

// Behind PgBouncer the service works with session pooling, and says by name why it does not with any other.
func TestPgBouncer(t *testing.T) {
	pooled := pgtest.Pooler(t, pgtest.DSN(t), "pool_mode=session")
	db := openWith(t, pooled, Options{MaxConns: 4})
	storetest.Must(t, writeBoth(t.Context(), db, "a"))
	storetest.Equal(t, note(t, db, "a").ID, "a", "a note is missing")
	for _, mode := range []string{"transaction", "statement"} {
		for _, order := range []string{"0", "1"} {
			pooled := pgtest.Pooler(t, pgtest.DSN(t), "pool_mode="+mode, "server_round_robin="+order, "min_pool_size=3",
				"ignore_startup_parameters=extra_float_digits")
			_, err := Open(t.Context(), pooled, noteKinds, Options{})
			if err == nil || !strings.Contains(err.Error(), "pool_mode = session") ||
				fault.CodeOf(err) == fault.Unavailable {
				t.Errorf("%s pooling, round robin %s: %v", mode, order, err)
			}
		}
	}
}

// After an answer of a pooler that lost the server it is unknown whether a unit was committed, whatever the severity. A
// message that quotes a user ends no connection.
func TestAnswersAboutConnections(t *testing.T) {
	for _, c := range []struct {
		severity, code, message string
		dead, uncertain         bool
	}{
		{"ERROR", "25006", "cannot execute INSERT in a read-only transaction", true, false},
		{"ERROR", "XX000", "cannot execute INSERT in a read-only transaction", true, true},
		{"ERROR", "08006", "server closed the connection", true, true},
		{"FATAL", "57P01", "terminating connection due to administrator command", true, true},
		{"FATAL", "25P03", "terminating connection due to idle-in-transaction timeout", false, true},
		{"ERROR", "22P02", `invalid input syntax for type uuid: "cannot execute in a read-only transaction"`, false, false},
	} {
		e := &pgconn.PgError{SeverityUnlocalized: c.severity, Code: c.code, Message: c.message}
		storetest.Equal(t, dead(e), c.dead, e)
		storetest.Equal(t, uncertain(e), c.uncertain, e)
	}
}

// A server of a lower timeline than one that was used is refused, and named. A role that may not ask for it is served.
func TestOldPrimaryIsRefused(t *testing.T) {
	t.Parallel()
	s := private(t)
	db := openWith(t, s.DSN(), Options{})
	storetest.Must(t, db.Writable(t.Context()))
	if got := db.server.timeline.Load(); got != 1 {
		t.Fatalf("the timeline of a new server is %d", got)
	}
	// A connection ends with its generation, also if that ends while the connection is made.
	own, before := db.executor.(*postgresExecutor).conn, db.server.generation.Load()
	db.server.lose(before)
	if storetest.Must(t, db.server.accept(own.PgConn(), 1, before)); db.server.usable(own) {
		t.Error("a connection survives the end of its generation")
	}
	db.server.timeline.Store(2)
	db.server.lose(db.server.generation.Load())
	for what, err := range map[string]error{"a write": writeBoth(t.Context(), db, "a"),
		"readiness": db.Writable(t.Context())} {
		if fault.CodeOf(err) != fault.Unavailable || CauseOf(err) != CauseOutdated {
			t.Errorf("%s: %v", what, err)
		}
	}
	psql(t, s.DSN(), `DO $$ DECLARE f regprocedure; BEGIN FOR f IN SELECT oid FROM pg_proc WHERE proname IN
		('pg_walfile_name', 'pg_logical_emit_message') LOOP EXECUTE 'REVOKE EXECUTE ON FUNCTION ' || f || ' FROM PUBLIC';
		END LOOP; END $$`, "CREATE ROLE plain LOGIN", "GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
	plain := storetest.Value(Open(t.Context(), strings.Replace(s.DSN(), "app@", "plain@", 1), noteKinds, Options{}))(t)
	defer plain.Close()
	plain.Start(func(int) State { return nil })
	storetest.Must(t, plain.Writable(t.Context()))
	storetest.Must(t, writeBoth(t.Context(), plain, "b"))
}

// Readiness fails, with its cause, while writes would fail on SQLite: another process holds the file, or it cannot be
// written. It fails if the queue of the writer is full.
func TestWritable(t *testing.T) {
	both(t, func(t *testing.T, db *DB) { storetest.Must(t, db.Writable(t.Context())) })
	dsn := sqliteFile(t)
	release := hold(t, dsn)
	db := storetest.Value(Open(t.Context(), dsn, noteKinds, Options{Timeout: 200 * time.Millisecond}))(t)
	defer db.Close()
	for range maxQueued {
		db.writer.queue <- &unit{done: make(chan error, 1)}
	}
	storetest.Wants(t, db.Writable(t.Context()), fault.Overloaded, "a full queue")
	for range maxQueued {
		<-db.writer.queue
	}
	db.Start(func(int) State { return nil })
	for range 2 {
		if err := db.Writable(t.Context()); CauseOf(err) != CauseLocked || fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("a file that another process holds: %v", err)
		}
	}
	release()
	storetest.Must(t, db.Writable(t.Context()))
	_, err := db.write.Exec("PRAGMA query_only = on")
	storetest.Must(t, err)
	if err := db.Writable(t.Context()); CauseOf(err) != CauseReadOnly || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a file that cannot be written: %v", err)
	}
}

// A pooler that drops a setting is noticed by reading it back, and the refusal names the setting.
func TestDroppedSettingIsNoticed(t *testing.T) {
	u := storetest.Value(url.Parse(pgtest.DSN(t)))(t)
	server := u.Host
	l := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go drop(client, server)
		}
	}()
	u.Host = l.Addr().String()
	_, err := Open(t.Context(), u.String(), noteKinds, Options{})
	if err == nil || !strings.Contains(err.Error(), "the setting synchronous_commit is") {
		t.Errorf("a pooler that drops synchronous_commit: %v", err)
	}
}

// drop passes a connection on, and changes the name of a setting to another of the same length.
func drop(client net.Conn, to string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	go io.Copy(client, server)
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		server.Write(bytes.ReplaceAll(buffer[:n], []byte("set_config('synchronous_commit'"),
			[]byte("set_config('castellan.ignored1'")))
	}
}

// A host that does not answer takes a share of the time only, at the start and later.
func TestHostWithoutAnswerTakesAShare(t *testing.T) {
	t.Parallel()
	silent, live := private(t), private(t)
	dsn := pgtest.Both(silent, live)
	silent.Freeze()
	defer silent.Thaw()
	db := openWith(t, dsn, Options{Timeout: 4 * time.Second}) // a host alone would take all of it
	storetest.Must(t, writeBoth(t.Context(), db, "a"))
	db.server.address.Store(nil) // the silent host is tried first
	db.server.lose(db.server.generation.Load())
	storetest.Must(t, db.Commit(t.Context(), addNote{ID: "b"}))
}

package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A connection to PostgreSQL is used only while it can write. Each new connection sets its settings by SET and reads
// them back, because a pooler may drop those of the start of a session. A server that is read-only, or that has fallen
// behind one that was used before, is refused. After an answer such as "read-only transaction" or "shutting down" every
// older connection is closed before its next use, so that a failover of the server needs no restart.

// maxAge is the maximum age of a connection. Each connection ends up to a tenth earlier, at random.
const maxAge = 30 * time.Minute

// Reasons to refuse a server.
var (
	errReadOnly = errors.New("the server is read-only")
	errOutdated = errors.New("the server has an older timeline than a server that was used before: it is an old primary")
	// errUnreplicated is the warning of a primary whose commit did not wait for its synchronous standby.
	errUnreplicated = errors.New("the commit may be lost in a failover: the wait for the standby was cancelled")
)

// unsuitable is a reason to refuse a server that waiting does not change.
type unsuitable string

func (u unsuitable) Error() string { return string(u) }

// setting is a setting of a session. value is an SQL expression, and accepts lists the values that may be read back;
// nil accepts the value that the server returned.
type setting struct {
	name, value string
	accepts     []string
}

// required are the settings of every session. Their values are written as the server shows them.
var required = []setting{
	{"client_encoding", "'UTF8'", []string{"UTF8"}},
	{"standard_conforming_strings", "'on'", []string{"on"}},
	{"bytea_output", "'hex'", []string{"hex"}},
	{"client_min_messages", "'warning'", []string{"warning"}}, // errUnreplicated is one
	// A stronger level of the role is kept.
	{"synchronous_commit", "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' " +
		"ELSE 'on' END", []string{"on", "remote_apply"}},
}

// sessionSettings moves the settings of a URL from the start of a session, which a pooler may refuse, to SET, and adds
// those of every session and more.
func sessionSettings(cfg *pgx.ConnConfig, more ...setting) (all []setting) {
	more = slices.Concat(required, more)
	for _, name := range slices.Sorted(maps.Keys(cfg.RuntimeParams)) {
		value := cfg.RuntimeParams[name]
		i := slices.IndexFunc(more, func(s setting) bool { return s.name == strings.ToLower(name) })
		if i < 0 || slices.Contains(more[i].accepts, value) { // any other value is overridden
			all = append(all, setting{name: name, value: quote(value)})
		}
	}
	return slices.Concat(all, more)
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// server is what the connections of a DB share about the server of PostgreSQL.
type server struct {
	limit    func() time.Duration // of a connection attempt
	readOnly bool                 // Options.ReadOnly: any server will do
	empty    func()               // closes the idle connections of the pool

	generation   atomic.Int64           // a connection of an earlier generation is not used again
	timeline     atomic.Int64           // the highest one that was used; 0: unknown
	address      atomic.Pointer[string] // of the last server that was used
	names        sync.Map               // address → the name of its host
	unreplicated atomic.Int64           // warnings errUnreplicated
}

// connection is the state of one connection.
type connection struct {
	generation int64
	until      time.Time
}

const connectionKey = "castellan"

// atStart reports whether a setting is sent at the start of a session: every pooler accepts those.
func atStart(name string) bool { return name == "application_name" || name == "options" }

// configure makes the connections of cfg belong to s.
func (s *server) configure(cfg *pgx.ConnConfig, more ...setting) {
	settings := slices.DeleteFunc(sessionSettings(cfg, more...), func(v setting) bool { return atStart(v.name) })
	maps.DeleteFunc(cfg.RuntimeParams, func(name, _ string) bool { return !atStart(name) })
	cfg.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error { return s.begin(ctx, c, settings) }
	cfg.OnPgError = s.answered
	cfg.OnNotice = s.noticed
	lookup := cfg.LookupFunc
	cfg.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		addresses, err := lookup(ctx, host)
		for _, a := range addresses {
			s.names.Store(a, host)
		}
		return addresses, err
	}
}

// begin prepares a new connection, or refuses its server.
func (s *server) begin(ctx context.Context, c *pgconn.PgConn, settings []setting) error {
	generation := s.generation.Load() // what ends a generation from here on concerns this connection
	set, read := make([]string, len(settings)), make([]string, len(settings))
	for i, v := range settings {
		set[i] = "set_config(" + quote(v.name) + ", " + v.value + ", false)"
		read[i] = "current_setting(" + quote(v.name) + ")"
	}
	told, err := row(ctx, c, "SELECT "+strings.Join(set, ", "))
	if err != nil {
		return err
	}
	have, err := row(ctx, c, "SELECT "+strings.Join(read, ", ")+
		", current_setting('server_encoding'), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'")
	if err != nil {
		return err
	}
	for i, v := range settings {
		if have[i] != told[i] || v.accepts != nil && !slices.Contains(v.accepts, have[i]) {
			return unsuitable(fmt.Sprintf("the setting %s is %q after it was set to %q: a pooler between the service and "+
				"PostgreSQL drops it; use session pooling", v.name, have[i], told[i]))
		}
	}
	if encoding := have[len(settings)]; encoding != "UTF8" {
		return unsuitable("the encoding of the database is " + encoding + ", and the service needs UTF8: create the " +
			"database with ENCODING 'UTF8' TEMPLATE template0")
	}
	if s.readOnly {
		return nil
	}
	if have[len(settings)+1] == "t" {
		return errReadOnly
	}
	timeline, err := timelineOf(ctx, c)
	if err != nil {
		return err
	}
	return s.accept(c, timeline, generation)
}

// accept makes a connection of a generation usable, unless a server of a higher timeline was used before. On a higher
// timeline than before it ends the connections to the former primary, which may be alive.
func (s *server) accept(c *pgconn.PgConn, timeline, generation int64) error {
	for {
		known := s.timeline.Load()
		if timeline < known && timeline != 0 {
			return fmt.Errorf("%w (timeline %d after %d)", errOutdated, timeline, known)
		}
		if timeline <= known {
			break
		}
		if s.timeline.CompareAndSwap(known, timeline) {
			if known != 0 {
				slog.Info("a promoted database server is in use", "timeline", timeline, "before", known)
				s.lose(s.generation.Load())
			}
			generation = s.generation.Load()
			break
		}
	}
	address := c.Conn().RemoteAddr().String()
	s.address.Store(&address)
	// #nosec G404: connections only have to end at different times.
	until := time.Now().Add(maxAge - rand.N(maxAge/10))
	c.CustomData()[connectionKey] = &connection{generation, until}
	return nil
}

// timelineOf returns the timeline that a primary writes; 0 if the server does not say. The file of control data has it
// too, but only after the first checkpoint of a promoted server.
func timelineOf(ctx context.Context, c *pgconn.PgConn) (int64, error) {
	file, err := row(ctx, c, "SELECT pg_walfile_name(pg_current_wal_lsn())")
	var refused *pgconn.PgError
	if errors.As(err, &refused) && !c.IsClosed() && refused.Code != readOnlyTransaction {
		return 0, nil // a service that speaks PostgreSQL's protocol, or a role without the right
	}
	if err != nil || len(file[0]) < 8 {
		return 0, err
	}
	n, err := strconv.ParseInt(file[0][:8], 16, 64)
	return n, err
}

// row returns the only row of a query as text.
func row(ctx context.Context, c *pgconn.PgConn, query string) ([]string, error) {
	results, err := c.Exec(ctx, query).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, fmt.Errorf("%d results instead of one row", len(results))
	}
	return textsOf(results[0].Rows[0]), nil
}

func textsOf(row [][]byte) []string {
	texts := make([]string, len(row))
	for i, v := range row {
		texts[i] = string(v)
	}
	return texts
}

// usable reports whether a connection may be used again.
func (s *server) usable(c *pgx.Conn) bool {
	own, is := c.PgConn().CustomData()[connectionKey].(*connection)
	return !is || own.generation == s.generation.Load() && time.Now().Before(own.until)
}

// reset refuses a connection of the pool that must not be used again.
func (s *server) reset(_ context.Context, c *pgx.Conn) error {
	if !s.usable(c) {
		return driver.ErrBadConn
	}
	return nil
}

// answered decides whether a connection survives an error of the server, and whether the others do.
func (s *server) answered(c *pgconn.PgConn, e *pgconn.PgError) (keep bool) {
	gone := dead(e)
	if gone {
		s.loseTo(c, e)
	}
	return !gone && !fatal(e)
}

// loseTo ends the connections of the generation of c, because of err.
func (s *server) loseTo(c *pgconn.PgConn, err error) {
	if own, is := c.CustomData()[connectionKey].(*connection); is && s.lose(own.generation) {
		slog.Warn("the database server is not usable any more; connecting again", "err", err)
	}
}

// lose ends a generation of connections; false if it has ended already.
func (s *server) lose(generation int64) bool {
	lost := s.generation.CompareAndSwap(generation, generation+1)
	if lost && s.empty != nil {
		go s.empty()
	}
	return lost
}

func (s *server) noticed(_ *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" { // its text has the language of the server
		s.unreplicated.Add(1)
	}
}

// warnings returns the number of warnings errUnreplicated; 0 for SQLite, which has no server.
func (s *server) warnings() int64 {
	if s == nil {
		return 0
	}
	return s.unreplicated.Load()
}

// replicated returns errUnreplicated as an unknown outcome if a commit of this process got the warning since there were
// warned of them. It may have been the commit of another transaction at that time.
func (s *server) replicated(warned int64) error {
	if s.warnings() != warned {
		return commitError{errUnreplicated}
	}
	return nil
}

// aim orders the hosts of an attempt, the last good one first, and shares the time among them. A host that does not
// answer must not take the time of the others.
func (s *server) aim(cfg *pgx.ConnConfig) {
	hosts := groups(cfg)
	cfg.ConnectTimeout = s.timePerHost(len(hosts))
	slices.SortStableFunc(hosts, func(a, b []*pgconn.FallbackConfig) int { return s.rank(a[0]) - s.rank(b[0]) })
	all := slices.Concat(hosts...)
	cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// timePerHost is the time to connect to one of n hosts. A start is patient with a single host only.
func (s *server) timePerHost(n int) time.Duration {
	if n == 1 {
		return s.limit()
	}
	return min(s.limit(), 3*time.Second) / time.Duration(n)
}

// rank is 0 for the last good host, else 1.
func (s *server) rank(way *pgconn.FallbackConfig) int {
	good := s.address.Load()
	if good == nil {
		return 1
	}
	address, port, err := net.SplitHostPort(*good)
	name, _ := s.names.Load(address)
	if err == nil && port == strconv.Itoa(int(way.Port)) && (way.Host == address || way.Host == name) {
		return 0
	}
	return 1
}

// groups returns the hosts of cfg, each with its ways, such as with and without TLS.
func groups(cfg *pgx.ConnConfig) (hosts [][]*pgconn.FallbackConfig) {
	first := &pgconn.FallbackConfig{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}
	for _, way := range append([]*pgconn.FallbackConfig{first}, cfg.Fallbacks...) {
		last := len(hosts) - 1
		if last >= 0 && hosts[last][0].Host == way.Host && hosts[last][0].Port == way.Port {
			hosts[last] = append(hosts[last], way)
		} else {
			hosts = append(hosts, []*pgconn.FallbackConfig{way})
		}
	}
	return hosts
}

// survey asks each of several hosts before the first connection. An old primary that came back while no process ran is
// then known by its timeline.
func (s *server) survey(ctx context.Context, cfg *pgx.ConnConfig) {
	hosts := groups(cfg)
	if len(hosts) == 1 {
		return
	}
	best := int64(-1)
	for _, ways := range hosts {
		one := cfg.Copy()
		one.Host, one.Port, one.TLSConfig, one.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
		one.ConnectTimeout = s.timePerHost(len(hosts))
		one.ValidateConnect = nil
		c, err := pgconn.ConnectConfig(ctx, &one.Config)
		if err != nil {
			continue
		}
		state, err := row(ctx, c, "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'")
		if err == nil && state[0] == "f" {
			if timeline, err := timelineOf(ctx, c); err == nil && timeline > best {
				address := c.Conn().RemoteAddr().String()
				best = timeline
				s.address.Store(&address)
			}
		}
		c.Close(ctx)
	}
	if best > 0 && !s.readOnly {
		s.timeline.Store(best)
	}
}

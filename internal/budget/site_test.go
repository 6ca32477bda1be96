package budget_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/budget"
)

// site is the service in a separate process, with the meters of its costs.
type site struct {
	*blackbox.Site
	t         testing.TB
	node      *blackbox.Node
	database  string
	measures  []string
	people    []person
	questions net.Conn
	answers   *bufio.Reader
	outbox    *sql.DB
	log       interface {
		begin()
		end(*counts)
	}
	wire *wire // nil on SQLite
}

// Kinds of sites. SQLite needs two: counting statements allocates memory.
var kinds = []struct {
	name, database string
	measures       []string
	make           func(testing.TB) *site
}{
	{"sqlite", "sqlite", []string{budget.Statements, budget.Transactions, budget.Rows, budget.IndexEntries,
		budget.WALBytes}, func(t testing.TB) *site { return newSQLite(t, countedCommand) }},
	{"sqlite-allocations", "sqlite", allocations, func(t testing.TB) *site { return newSQLite(t, serveCommand) }},
	{"postgres", "postgres", append([]string{budget.Statements, budget.RoundTrips, budget.Transactions, budget.Rows,
		budget.IndexEntries, budget.WALBytes}, allocations...), newPostgres},
}

func newSQLite(t testing.TB, command string) *site {
	t.Helper()
	s := &site{Site: blackbox.NewSiteOn(t, ""), t: t}
	s.start(command)
	if command == countedCommand {
		s.log = &sqliteLog{t: t, file: strings.TrimPrefix(s.DSN, "sqlite:")}
	}
	return s
}

func newPostgres(t testing.TB) *site {
	t.Helper()
	server := startPostgres(t)
	dsn := storetest.Value(server.Database("service"))(t)
	s := &site{Site: blackbox.NewSiteOn(t, dsn), t: t, wire: &wire{}}
	s.Behind().Tap(s.wire.connection)
	s.start(serveCommand)
	s.log = newPostgresLog(t, server.DSN(), dsn)
	return s
}

// start seeds the database and starts the service.
func (s *site) start(command string) {
	s.t.Helper()
	s.Production().Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "LOG_LEVEL=info")
	got := s.Command("", seedCommand)
	if got.Code != 0 {
		s.t.Fatalf("seed: exit %d: %s", got.Code, got.ErrOut)
	}
	storetest.Must(s.t, json.Unmarshal([]byte(got.Out), &s.people))
	s.Exec(`UPDATE parameter SET json = '{"BTC":{"BTC":"bc1qtreasury"}}' WHERE code = 'TREASURY'`)
	s.node = s.Run(command)
	s.node.Ready()
	_, addr, _ := strings.Cut(s.node.Out(), questionsAt+" ")
	addr, _, _ = strings.Cut(addr, "\n")
	c := storetest.Value(net.Dial("tcp", addr))(s.t)
	s.t.Cleanup(func() { c.Close() })
	s.questions, s.answers = c, bufio.NewReader(c)
	s.outbox = s.Open()
	s.t.Cleanup(func() { s.outbox.Close() })
}

func (s *site) ask(question byte) {
	s.t.Helper()
	if _, err := s.questions.Write([]byte{question}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) allocations() int {
	s.t.Helper()
	s.ask(askAllocations)
	var number [8]byte
	if _, err := io.ReadFull(s.answers, number[:]); err != nil {
		s.t.Fatal(err)
	}
	return int(binary.BigEndian.Uint64(number[:]))
}

// sent returns the counts of what the service sent to its database since the last call.
func (s *site) sent() (c counts) {
	s.t.Helper()
	switch {
	case s.wire != nil:
		c = counts{Statements: s.wire.statements.take(), RoundTrips: s.wire.trips.take(), Rows: map[string]int{},
			Entries: map[string]int{}}
	case s.log != nil:
		s.ask(askCounts)
		line, err := s.answers.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &c)
		}
		storetest.Must(s.t, err)
	}
	return c
}

// quiet waits until all messages are delivered: the delivery is a cost of the flow.
func (s *site) quiet() {
	s.t.Helper()
	blackbox.Until(s.t, time.Minute, "delivered", func() bool {
		var n int
		err := s.outbox.QueryRowContext(context.Background(), "SELECT count(*) FROM outbox WHERE state = 0").Scan(&n)
		storetest.Must(s.t, err)
		return n == 0
	})
}

// sample counts the costs of do.
func (s *site) sample(do func()) counts {
	s.t.Helper()
	s.quiet()
	if s.log != nil {
		s.log.begin()
	}
	s.sent()
	before := s.allocations()
	do()
	s.quiet()
	after := s.allocations()
	c := s.sent()
	if s.log != nil {
		s.log.end(&c)
	}
	c.Allocations = after - before
	return c
}

// costs returns the costs of one of the n requests of a sample.
func (s *site) costs(c counts, n int) budget.Costs {
	all := map[string]int{
		budget.Statements:   total(c.Statements),
		budget.RoundTrips:   total(c.RoundTrips),
		budget.Transactions: c.Transactions,
		budget.Rows:         total(c.Rows),
		budget.IndexEntries: total(c.Entries),
		budget.WALBytes:     c.WALBytes,
		budget.Allocations:  c.Allocations,
	}
	costs := budget.Costs{}
	for _, m := range s.measures {
		costs[m] = (all[m] + n - 1) / n
	}
	return costs
}

func total(of map[string]int) (n int) {
	for _, times := range of {
		n += times
	}
	return n
}

func sorted(of map[string]int) []string { return slices.Sorted(maps.Keys(of)) }

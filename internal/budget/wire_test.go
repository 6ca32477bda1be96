package budget_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// wire counts what the service sends to PostgreSQL: statements, and the messages after which it waits for the
// answers.
type wire struct{ statements, trips texts }

// connection returns the reader of one connection's messages.
func (w *wire) connection() io.Writer {
	return &messages{wire: w, prepared: map[string]string{}, bound: map[string]string{}}
}

// messages reads the messages of the frontend, in pieces of any size.
type messages struct {
	*wire
	rest     []byte
	started  bool
	prepared map[string]string // text by the name of the statement
	bound    map[string]string // text by the name of the portal
	trip     []string          // texts since the last answer
}

// Write reads whole messages and keeps the rest. It never fails.
func (m *messages) Write(p []byte) (int, error) {
	m.rest = append(m.rest, p...)
	for {
		head := 1 // the type; the first message has none
		if !m.started {
			head = 0
		}
		if len(m.rest) < head+4 {
			break
		}
		size := head + int(binary.BigEndian.Uint32(m.rest[head:]))
		if len(m.rest) < size {
			break
		}
		if m.started {
			m.read(m.rest[0], m.rest[head+4:size])
		}
		m.started = true
		m.rest = m.rest[size:]
	}
	return len(p), nil
}

// read reads one message of the extended or the simple protocol.
func (m *messages) read(kind byte, body []byte) {
	switch kind {
	case 'P': // Parse: name, text
		name, rest := word(body)
		text, _ := word(rest)
		m.prepared[name] = normalised(text)
		m.trip = append(m.trip, "prepare "+m.prepared[name])
	case 'B': // Bind: portal, name
		portal, rest := word(body)
		name, _ := word(rest)
		m.bound[portal] = m.prepared[name]
	case 'E': // Execute: portal
		portal, _ := word(body)
		m.statement(m.bound[portal])
	case 'Q': // a simple query
		text, _ := word(body)
		m.statement(normalised(text))
		m.answered()
	case 'S': // Sync
		m.answered()
	}
}

func (m *messages) statement(text string) {
	m.statements.add(text)
	m.trip = append(m.trip, text)
}

func (m *messages) answered() {
	m.trips.add(strings.Join(slices.Compact(m.trip), "; "))
	m.trip = nil
}

// word splits a text that ends with a zero from the rest.
func word(b []byte) (text string, rest []byte) {
	before, after, _ := bytes.Cut(b, []byte{0})
	return string(before), after
}

// Statements and round trips are counted for pieces of any size.
func TestWireCounts(t *testing.T) {
	var sent []byte
	for _, m := range []pgproto3.FrontendMessage{
		&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "app"}},
		&pgproto3.Parse{Name: "s1", Query: "UPDATE a SET b = $1"}, &pgproto3.Describe{ObjectType: 'S', Name: "s1"},
		&pgproto3.Sync{},
		&pgproto3.Bind{PreparedStatement: "s1", Parameters: [][]byte{[]byte("x")}}, &pgproto3.Execute{},
		&pgproto3.Bind{PreparedStatement: "s1", Parameters: [][]byte{[]byte("y")}}, &pgproto3.Execute{},
		&pgproto3.Sync{},
		&pgproto3.Query{String: "SELECT 'it''s', X'00', -7, c1 FROM t WHERE id IN (1, 2, 3)"},
	} {
		var err error
		if sent, err = m.Encode(sent); err != nil {
			t.Fatal(err)
		}
	}
	wantStatements := map[string]int{"UPDATE a SET b = $1": 2, "SELECT ?, ?, ?, c1 FROM t WHERE id IN (?)": 1}
	wantTrips := map[string]int{"prepare UPDATE a SET b = $1": 1, "UPDATE a SET b = $1": 1,
		"SELECT ?, ?, ?, c1 FROM t WHERE id IN (?)": 1}
	for _, size := range []int{1, 3, len(sent)} {
		var w wire
		c := w.connection()
		for rest := sent; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			c.Write(rest[:min(size, len(rest))])
		}
		if got := w.statements.take(); !reflect.DeepEqual(got, wantStatements) {
			t.Errorf("in pieces of %d: statements %v", size, got)
		}
		if got := w.trips.take(); !reflect.DeepEqual(got, wantTrips) {
			t.Errorf("in pieces of %d: round trips %v", size, got)
		}
	}
}

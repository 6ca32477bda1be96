package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pipeline contains the messages of one transaction of statements, in PostgreSQL's protocol (chapter 55,
// "Frontend/Backend Protocol"). pgx would encode the arrays twice and drop both buffers after each batch, which is 40 %
// of all bytes that a login allocates; this buffer is kept.
type pipeline struct{ out []byte }

// keptPipeline bounds the kept buffer of a pipeline, in bytes. A batch of logins takes a third of it.
const keptPipeline = 1 << 20

func (p *pipeline) reset() {
	if cap(p.out) > keptPipeline {
		p.out = nil
	}
	p.out = p.out[:0]
}

// execute adds one execution of a prepared statement with the rows of b, an array for each column; b may be nil for a
// statement without parameters.
func (p *pipeline) execute(name string, b *boundStatement) {
	bind := p.begin('B')
	p.out = append(p.out, 0) // the unnamed portal
	p.out = append(append(p.out, name...), 0)
	p.out = append(p.out, 0, 1, 0, 1) // all parameters are binary
	if b == nil {
		p.out = append(p.out, 0, 0)
	} else {
		p.out = binary.BigEndian.AppendUint16(p.out, uint16(len(b.columns)))
		for _, c := range b.columns {
			p.array(b.rows, c)
		}
	}
	p.out = append(p.out, 0, 0) // all results are text
	p.end(bind)
	execute := p.begin('E')
	p.out = append(p.out, 0, 0, 0, 0, 0) // the unnamed portal, all rows
	p.end(execute)
}

// sync ends the implicit transaction.
func (p *pipeline) sync() { p.end(p.begin('S')) }

// begin begins a message of a type and returns the position of its length.
func (p *pipeline) begin(kind byte) (length int) {
	p.out = append(p.out, kind, 0, 0, 0, 0)
	return len(p.out) - 4
}

// end sets a length that includes itself.
func (p *pipeline) end(length int) {
	binary.BigEndian.PutUint32(p.out[length:], uint32(len(p.out)-length))
}

// elementOIDs are the ids of the types of elements, from pg_type.
var elementOIDs = map[string]uint32{"boolean": 16, "bytea": 17, "bigint": 20, "smallint": 21, "text": 25}

// array adds the values of a column as a parameter: an array of one dimension.
func (p *pipeline) array(rows reflect.Value, c column) {
	n, length := rows.Len(), len(p.out)
	p.int32(0)
	p.int32(1) // dimensions
	nulls := len(p.out)
	p.int32(0)
	p.int32(int32(c.oid))
	p.int32(int32(n))
	p.int32(1) // the index of the first element
	for i := range n {
		switch v := rows.Index(i).FieldByIndex(c.index); v.Kind() {
		case reflect.String:
			s := v.String()
			p.int32(int32(len(s)))
			p.out = append(p.out, s...)
		case reflect.Bool:
			p.int32(1)
			p.out = append(p.out, 0)
			if v.Bool() {
				p.out[len(p.out)-1] = 1
			}
		case reflect.Slice:
			if v.IsNil() {
				p.int32(-1)
				p.out[nulls+3] = 1
				continue
			}
			p.int32(int32(v.Len()))
			p.out = append(p.out, v.Bytes()...)
		case reflect.Int16:
			p.int32(2)
			p.out = binary.BigEndian.AppendUint16(p.out, uint16(v.Int()))
		default:
			p.int32(8)
			p.out = binary.BigEndian.AppendUint64(p.out, uint64(v.Int()))
		}
	}
	binary.BigEndian.PutUint32(p.out[length:], uint32(len(p.out)-length-4)) // without itself
}

func (p *pipeline) int32(n int32) { p.out = binary.BigEndian.AppendUint32(p.out, uint32(n)) }

// send writes the messages to conn. After an error nothing was committed: the end of the last message, without which
// the server does not commit, was not sent.
func (p *pipeline) send(ctx context.Context, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { conn.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := conn.Write(p.out)
	return err
}

// answered waits for the answer to one execution. The error is a *pgconn.PgError if the server refused it.
func answered(ctx context.Context, conn *pgconn.PgConn) error {
	return await(ctx, conn, func(m pgproto3.BackendMessage) bool {
		_, complete := m.(*pgproto3.CommandComplete)
		return complete
	})
}

// ended waits until the server has ended the implicit transaction.
func ended(ctx context.Context, conn *pgconn.PgConn) error {
	return await(ctx, conn, func(m pgproto3.BackendMessage) bool {
		_, ready := m.(*pgproto3.ReadyForQuery)
		return ready
	})
}

// await reads messages until one is the last.
func await(ctx context.Context, conn *pgconn.PgConn, last func(pgproto3.BackendMessage) bool) error {
	for {
		m, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return fmt.Errorf("persistence: answer of the server: %w", err)
		}
		if refusal, is := m.(*pgproto3.ErrorResponse); is {
			return pgconn.ErrorResponseToPgError(refusal)
		}
		if last(m) {
			return nil
		}
	}
}

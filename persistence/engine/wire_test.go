package engine

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"castellan/domain/kit/storetest"

	"github.com/jackc/pgx/v5/pgtype"
)

type wireRow struct {
	ID     string
	N      int64
	Small  int16
	Sealed []byte
	Keep   bool
}

func boundWire(rows []wireRow) boundStatement {
	s := parsed(reflect.TypeFor[wireRow](), "UPDATE t SET n = v.n {FROM v} WHERE t.id = v.id")
	return boundStatement{s, reflect.ValueOf(rows), nil, nil}
}

// Arrays are encoded to the same bytes as by pgx.
func TestPipelineArrays(t *testing.T) {
	rows := []wireRow{
		{"a", 1, -2, []byte{0, 1}, true},
		{`'",{}\ NULL ü`, -1 << 63, 1<<15 - 1, []byte{}, false},
		{"", 1<<63 - 1, -1 << 15, []byte("x"), true},
	}
	types := pgtype.NewMap()
	for _, rows := range [][]wireRow{rows, rows[:1], {}, {{Sealed: nil}, {Sealed: []byte{}}, {Sealed: nil}}} {
		b := boundWire(rows)
		values := b.arrays()
		for i, c := range b.columns {
			oid := map[string]uint32{"text": pgtype.TextArrayOID, "bigint": pgtype.Int8ArrayOID,
				"smallint": pgtype.Int2ArrayOID, "bytea": pgtype.ByteaArrayOID, "boolean": pgtype.BoolArrayOID}[c.typ]
			want, err := types.Encode(oid, pgtype.BinaryFormatCode, values[i], nil)
			storetest.Must(t, err)
			if len(rows) == 0 { // pgx leaves the dimension out
				want = binary.BigEndian.AppendUint32(nil, 1)
			}
			var p pipeline
			p.array(reflect.ValueOf(rows), c)
			if length := binary.BigEndian.Uint32(p.out); int(length) != len(p.out)-4 {
				t.Errorf("%s of %d rows: length %d of %d bytes", c.name, len(rows), length, len(p.out)-4)
			}
			got := p.out[4:]
			if len(rows) == 0 {
				got = got[:4]
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s of %d rows:\n% x\nwant\n% x", c.name, len(rows), got, want)
			}
		}
	}
}

// The buffer of a pipeline is reused, and dropped after a huge batch.
func TestPipelineKeepsItsBuffer(t *testing.T) {
	rows := make([]wireRow, 64)
	b := boundWire(rows)
	var p pipeline
	fill := func() {
		p.reset()
		p.execute("name", &b)
		p.sync()
	}
	fill()
	if n := testing.AllocsPerRun(100, fill); n > 0 {
		t.Errorf("%v allocations for a batch like the one before", n)
	}
	p.out = make([]byte, keptPipeline+1)
	if p.reset(); cap(p.out) != 0 {
		t.Errorf("%d bytes are kept", cap(p.out))
	}
}

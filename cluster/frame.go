package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// frame is the unit that nodes exchange: four bytes of length, then these fields as a protobuf message. Fields are only
// added, and unknown fields are skipped. So the previous version of the program can read the frames of this one.
type frame struct {
	op   uint64 // 1
	req  uint64 // 2: the number of the request, also in its answer
	kind string // 3: kind of the actor, or the name of a receiver
	id   string // 4: id of the actor, or of the node that sends a hello
	typ  string // 5: full name of the message in body
	body []byte // 6
	code uint64 // 7: of an answer
	// trace is the caller's position in a trace, as a W3C traceparent; the first version of the program skips it.
	trace string // 8
}

// The operations of a frame. Numbers are never reused.
const (
	opHello    = 1 // the first frame in both directions: id is the sender, kind the intended receiver
	opCall     = 2
	opTell     = 3
	opTellLive = 4
	opPost     = 5
	opRelease  = 6
	opPing     = 7  // req is the sender's clock
	opAnswer   = 8  // to a call, a release, a ping or a status
	opStatus   = 9  // answered with JSON, for operators
	opAsk      = 10 // to a named receiver; older nodes do not answer
)

// The codes of an answer.
const (
	codeOK        = 0
	codeElsewhere = 1 // look up the owner again
	codeBusy      = 2
	codeCrashed   = 3
	codeKind      = 4
	codeStranger  = 5 // to a ping: the sender of the ping is not a member here
	codeLeft      = 6 // to a ping: the sender of the ping is leaving and receives no more calls
	codeJoining   = 7 // of a hello, not of an answer: the sender is joining
)

// maxFrame bounds the size of one frame of a peer.
const maxFrame = 4 << 20

var errFrame = errors.New("cluster: not a frame")

// append appends the encoded frame to b.
func (f *frame) append(b []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	number := func(n protowire.Number, v uint64) {
		if v != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
		}
	}
	text := func(n protowire.Number, s string) {
		if s != "" {
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
		}
	}
	number(1, f.op)
	number(2, f.req)
	text(3, f.kind)
	text(4, f.id)
	text(5, f.typ)
	if len(f.body) > 0 {
		b = protowire.AppendBytes(protowire.AppendTag(b, 6, protowire.BytesType), f.body)
	}
	number(7, f.code)
	text(8, f.trace)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// readFrame reads one frame. Body is a copy; the buffer may be reused.
func readFrame(r io.Reader, buf []byte) (f frame, _ []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, buf, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return f, buf, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	if cap(buf) < int(n) {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		return f, buf, err
	}
	f, err = parseFrame(buf)
	return f, buf, err
}

func parseFrame(b []byte) (f frame, err error) {
	for len(b) > 0 {
		n, wire, size := protowire.ConsumeTag(b)
		if size < 0 {
			return f, errFrame
		}
		b = b[size:]
		var number uint64
		var bytes []byte
		switch wire {
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			bytes, size = protowire.ConsumeBytes(b)
		default:
			size = protowire.ConsumeFieldValue(n, wire, b)
		}
		if size < 0 {
			return f, errFrame
		}
		b = b[size:]
		switch n {
		case 1:
			f.op = number
		case 2:
			f.req = number
		case 3:
			f.kind = string(bytes)
		case 4:
			f.id = string(bytes)
		case 5:
			f.typ = string(bytes)
		case 6:
			f.body = append([]byte(nil), bytes...)
		case 7:
			f.code = number
		case 8:
			f.trace = string(bytes)
		}
	}
	return f, nil
}

// carry puts a message into the frame.
func (f *frame) carry(m proto.Message) (err error) {
	f.typ = string(m.ProtoReflect().Descriptor().FullName())
	f.body, err = proto.Marshal(m)
	return err
}

// message decodes the message that the frame carries. It returns an error for a type that this version of the program
// does not have.
func (f *frame) message() (proto.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(f.typ))
	if err != nil {
		return nil, fmt.Errorf("cluster: message of type %q: %w", f.typ, err)
	}
	m := t.New().Interface()
	return m, proto.Unmarshal(f.body, m)
}
